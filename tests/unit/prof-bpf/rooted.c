/* SPDX-License-Identifier: Apache-2.0 */
/* The oracle is openat2 with RESOLVE_IN_ROOT, over a tree of folders, files and links of every
 * kind, and random paths of their names. */
#include "tools/prof-bpf/open/opening/rooted.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static char top[] = "/tmp/rooted.XXXXXX";
static int root;

static void make_link(const char *to, const char *name)
{
	cr_assert_eq(symlinkat(to, root, name), 0);
}

static void make_file(const char *name)
{
	const int fd = openat(root, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0);
	close(fd);
}

static void set_up(void)
{
	cr_assert(mkdtemp(top));
	root = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	cr_assert_geq(root, 0);
	cr_assert_eq(mkdirat(root, "a", 0755), 0);
	cr_assert_eq(mkdirat(root, "a/b", 0755), 0);
	cr_assert_eq(mkdirat(root, "a/b/c", 0755), 0);
	make_file("f");
	make_file("a/f");
	make_file("a/b/c/f");
	make_link("/a", "la");
	make_link("b/../b/c", "a/lc");
	make_link("../../../../a/f", "a/b/up");
	make_link("f", "lf");
	make_link("la/b", "llb");
	make_link("nothing", "gone");
	make_link("self", "self");
	make_link("/", "lr");
	make_link("f/", "slash");
}

static void clean_up(void)
{
	static const char *const made[] = { "a/b/c/f", "a/b/up", "a/lc", "a/f",	 "f",  "la",
					    "lf",      "llb",	 "gone", "self", "lr", "slash" };

	for (size_t i = 0; i < sizeof(made) / sizeof(made[0]); i++)
		unlinkat(root, made[i], 0);
	unlinkat(root, "a/b/c", AT_REMOVEDIR);
	unlinkat(root, "a/b", AT_REMOVEDIR);
	unlinkat(root, "a", AT_REMOVEDIR);
	rmdir(top);
	close(root);
}

TestSuite(rooted, .init = set_up, .fini = clean_up);

static int by_kernel(const char *path, bool follow)
{
	const struct open_how how = { .flags = (uint64_t)(O_PATH | O_CLOEXEC |
							  (follow ? 0 : O_NOFOLLOW)),
				      .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	const int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static void compare(const char *path, bool follow)
{
	const int ours = rooted_open(root, path, follow, NULL, NULL),
		  theirs = by_kernel(path, follow);
	struct stat a = { 0 }, b = { 0 };

	if (theirs < 0) {
		cr_assert_eq(ours, theirs, "%s: %d, the kernel says %d", path, ours, theirs);
		return;
	}
	cr_assert_geq(ours, 0, "%s: %d", path, ours);
	fstatat(ours, "", &a, AT_EMPTY_PATH);
	fstatat(theirs, "", &b, AT_EMPTY_PATH);
	cr_assert(a.st_ino == b.st_ino && a.st_dev == b.st_dev, "%s leads elsewhere", path);
	cr_assert_eq(fcntl(ours, F_GETFD), FD_CLOEXEC);
	cr_assert(fcntl(ours, F_GETFL) & O_PATH);
	close(ours);
	close(theirs);
}

Test(rooted, leads_where_the_kernel_leads)
{
	static const char *const names[] = { "a",   "b",    "c",  "f",	  "la", "lc", "up",   "lf",
					     "llb", "gone", "lr", "self", "..", ".",  "slash" };
	const unsigned count = sizeof(names) / sizeof(names[0]);
	char path[256];

	srand(1);
	for (int i = 0; i < 20000; i++) {
		size_t at = 0;

		path[0] = '\0';
		for (int n = rand() % 6; n >= 0; n--)
			at += (size_t)snprintf(path + at, sizeof(path) - at, "%s%s",
					       rand() % 8 ? "/" : "//",
					       names[(unsigned)rand() % count]);
		if (rand() % 8 == 0)
			snprintf(path + at, sizeof(path) - at, "/");
		compare(path + rand() % 2, rand() % 2);
	}
}

Test(rooted, the_root_itself_and_nothing)
{
	compare("/", true);
	compare("..", true);
	compare("", true);
	compare("lr", true);
}

Test(rooted, never_leaves_the_root)
{
	struct stat host, got;
	const int fd = rooted_open(root, "/../../../../../..", true, NULL, NULL);

	cr_assert_geq(fd, 0);
	cr_assert_eq(stat("/", &host), 0);
	cr_assert_eq(fstat(fd, &got), 0);
	cr_assert(got.st_ino != host.st_ino || got.st_dev != host.st_dev);
	close(fd);
}

Test(rooted, links_of_proc_lead_nowhere)
{
	const int host = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);

	cr_assert_eq(rooted_open(host, "/proc/self/root/etc/passwd", true, NULL, NULL), -ELOOP);
	cr_assert_eq(rooted_open(host, "/proc/self/exe", true, NULL, NULL), -ELOOP);
	cr_assert_eq(rooted_open(host, "/proc/self", true, NULL, NULL), -ELOOP);
	close(host);
}

Test(rooted, long_and_deep_paths_are_refused_and_leak_nothing)
{
	const int before = dup(root);
	char path[8192], deep[3 * ROOTED_DEPTH + 3];

	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	cr_assert_eq(rooted_open(root, path, true, NULL, NULL), -ENAMETOOLONG);
	path[300] = '\0';
	cr_assert_eq(rooted_open(root, path, true, NULL, NULL), -ENAMETOOLONG);
	close(before);
	/* Deeper than our own bound; the kernel has none. */
	int at = fcntl(root, F_DUPFD_CLOEXEC, 3);
	for (int i = 0; i <= ROOTED_DEPTH; i++) {
		cr_assert_eq(mkdirat(at, "d", 0755), 0);
		const int next = openat(at, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
		close(at);
		at = next;
		memcpy(deep + 2 * i, "/d", 3);
	}
	close(at);
	cr_assert_eq(rooted_open(root, deep, true, NULL, NULL), -ENAMETOOLONG);
	const int fd = rooted_open(root, deep + 2, true, NULL, NULL);
	cr_assert_geq(fd, 0);
	close(fd);
	for (int i = ROOTED_DEPTH; i >= 0; i--) {
		deep[2 * i + 2] = '\0';
		cr_assert_eq(unlinkat(root, deep + 1, AT_REMOVEDIR), 0);
	}
	const int after = dup(root);
	cr_assert_eq(after, before);
	close(after);
}
