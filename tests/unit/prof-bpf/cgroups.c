/* SPDX-License-Identifier: Apache-2.0 */
/* Cgroups, in a folder that stands for the mount of the unified hierarchy. */
#include "tools/prof-bpf/host/processes/cgroups.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

static char mount_dir[] = "/tmp/cgroups.XXXXXX";
static struct cgroups cgroups;

static uint64_t make(const char *path)
{
	struct stat st;

	cr_assert(mkdirat(cgroups.root, path, 0755) == 0 &&
		  fstatat(cgroups.root, path, &st, 0) == 0);
	return st.st_ino;
}

static void begin(void)
{
	struct stat st;

	cgroups_init(&cgroups, NULL);
	cr_assert(mkdtemp(mount_dir));
	cgroups.root = open(mount_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cr_assert_eq(fstat(cgroups.root, &st), 0);
	cgroups.dev = st.st_dev;
}

static void end(void)
{
	char command[64];

	cgroups_done(&cgroups);
	snprintf(command, sizeof(command), "rm -r %s", mount_dir);
	cr_assert_eq(system(command), 0);
}

Test(cgroups, the_kernels_number_is_the_inode_of_the_folder, .init = begin, .fini = end)
{
	const uint64_t a = make("a.slice"), b = make("a.slice/b.scope");
	struct stat st;

	cr_assert_eq(fstatat(cgroups.root, ".", &st, 0), 0);
	cr_expect_eq(cgroups_kernel_id(&cgroups, STR_LIT("/a.slice")), a);
	cr_expect_eq(cgroups_kernel_id(&cgroups, STR_LIT("/a.slice/b.scope")), b);
	cr_expect_eq(cgroups_kernel_id(&cgroups, STR_LIT("/")), st.st_ino);
	cr_expect_eq(cgroups_kernel_id(&cgroups, STR_LIT("/gone")), 0);
}

Test(cgroups, a_path_out_of_the_mount_has_no_number, .init = begin, .fini = end)
{
	make("a");
	for (const char *const *p =
		     (const char *const[]){ "/..", "/../a", "/a/..", "/a/../a", "a", "", NULL };
	     *p; p++)
		cr_expect_eq(cgroups_kernel_id(&cgroups, str_from(*p)), 0, "%s", *p);
	make("..a");
	cr_expect_neq(cgroups_kernel_id(&cgroups, STR_LIT("/..a")), 0);
	cgroups.dev++;
	cr_expect_eq(cgroups_kernel_id(&cgroups, STR_LIT("/a")), 0, "another file system is there");
}

Test(cgroups, a_cgroup_recreated_at_a_path_is_another_one, .init = begin, .fini = end)
{
	const uint64_t first = make("a");
	struct host_cgroup *a = cgroups_get(&cgroups, STR_LIT("/a"), true),
			   *same = cgroups_get(&cgroups, STR_LIT("/a"), true),
			   *old = cgroups_get(&cgroups, STR_LIT("/a"), false);

	cr_assert(a && a == same && old);
	cr_expect(a->kernel_id == first && old != a && old->kernel_id == 0);
	make("b"); /* so that the inode is not the same again */
	cr_assert_eq(unlinkat(cgroups.root, "a", AT_REMOVEDIR), 0);
	make("c");
	make("a");
	struct host_cgroup *b = cgroups_get(&cgroups, STR_LIT("/a"), true);

	cr_assert(b && b != a && b->id != a->id && b->kernel_id != first);
	cgroups_put(&cgroups, a);
	cgroups_put(&cgroups, same);
	cgroups_put(&cgroups, old);
	cgroups_put(&cgroups, b);
	cr_expect_null(cgroups.by_key, "nothing is kept");
}

Test(cgroups, a_folder_that_is_no_unified_hierarchy_is_not_used)
{
	struct cgroups c;

	cgroups_init(&c, "/tmp");
	cr_expect_eq(c.root, -1);
	cr_expect_eq(cgroups_kernel_id(&c, STR_LIT("/")), 0);
	cgroups_done(&c);
}
