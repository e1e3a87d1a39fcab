/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/open/opening/mounts.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static unsigned feed(const char *text, struct mounts_line *ret, unsigned max)
{
	struct mounts_parser p = { 0 };
	unsigned n = 0;

	for (; *text; text++)
		if (mounts_feed(&p, *text) && n < max)
			ret[n++] = p.line;
	return n;
}

Test(mounts, lines_of_mountinfo_are_read_and_others_are_skipped)
{
	struct mounts_line l[8];
	const unsigned n =
		feed("22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n"
		     "nonsense\n"
		     "36 35 0:45 / /mnt/a\\040-\\040b rw - fuse.sshfs a-b rw,user_id=0\n"
		     "37 35 0:46 /x - /y rw master:1 propagate_from:2 - overlay o rw,lowerdir=/\n"
		     "38 35 046 / / rw - tmpfs t rw\n"
		     "39 35 0:47 / / rw - averyveryverylongnameofatype t rw\n"
		     "\n"
		     "40 35 0:48 / / rw -\n",
		     l, 8);

	cr_assert_geq(n, 4);
	cr_assert(l[0].id == 22 && l[0].dev == (254ull << 32) && !strcmp(l[0].type, "ext4"));
	cr_assert(l[1].id == 36 && l[1].dev == 45 && !strcmp(l[1].type, "fuse.sshfs"));
	cr_assert(l[2].id == 37 && l[2].dev == 46);
	cr_assert_eq(strlen(l[n - 1].type), MOUNTS_TYPE - 1);
}

Test(mounts, types_that_a_user_or_a_server_controls_are_foreign)
{
	static const char *const foreign[] = { "fuse", "fuse.sshfs", "fuseblk", "nfs", "nfs4",
					       "9p",   "cifs",	     "autofs",	"afs", "virtiofs",
					       "",     "ext",	     "unheard" };

	for (size_t i = 0; i < sizeof(foreign) / sizeof(foreign[0]); i++)
		cr_expect_eq(mounts_trust(foreign[i]), MOUNTS_FOREIGN, "%s", foreign[i]);
	cr_expect_eq(mounts_trust("ext4"), MOUNTS_LOCAL);
	cr_expect_eq(mounts_trust("devtmpfs"), MOUNTS_LOCAL);
	cr_expect_eq(mounts_trust("tmpfs"), MOUNTS_LOCAL);
	cr_expect_eq(mounts_trust("overlay"), MOUNTS_LAYERED);
}

Test(mounts, types_whose_files_the_kernel_makes_are_pseudo)
{
	static const char *const pseudo[] = { "proc",	    "sysfs",   "cgroup", "cgroup2",
					      "debugfs",    "tracefs", "bpf",	 "configfs",
					      "securityfs", "devpts" };

	for (size_t i = 0; i < sizeof(pseudo) / sizeof(pseudo[0]); i++)
		cr_expect_eq(mounts_trust(pseudo[i]), MOUNTS_PSEUDO, "%s", pseudo[i]);
}

Test(mounts, files_of_this_host_and_in_memory_are_local)
{
	static struct mounts m;
	const int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC),
		  file = open("/usr/bin/env", O_PATH | O_CLOEXEC),
		  memory = memfd_create("m", MFD_CLOEXEC);
	struct stat st;
	uint64_t dev;

	mounts_init(&m, proc);
	for (unsigned i = 0; i < 2; i++) {
		cr_expect(mounts_of(&m, file, 0, &dev) == MOUNTS_LOCAL);
		cr_expect(fstat(file, &st) == 0 && dev != 0);
		cr_expect(mounts_of(&m, memory, 0, &dev) == MOUNTS_LOCAL);
	}
	cr_expect_eq(mounts_of(&m, proc, 0, &dev), MOUNTS_PSEUDO);
}
