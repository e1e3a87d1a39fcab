/* SPDX-License-Identifier: Apache-2.0 */
/* A forked child enters each root. The tests run as root, like `make check`. If the host forbids
 * namespaces, the tests check the error and that the root is unchanged. */
#include "common/cell/confine/emptyroot.h"

#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/cell/confine/sandbox.h"

#define NOBODY 65534
#define NOT_ALLOWED 50

#define REQUIRE(holds) \
	do { \
		if (!(holds)) { \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #holds); \
			return 1; \
		} \
	} while (0)

static char folder[] = "/tmp/emptyroot.XXXXXX";

static void make_folder(void)
{
	char path[64];

	cr_assert(mkdtemp(folder) != NULL);
	chmod(folder, 0711);
	snprintf(path, sizeof(path), "%s/tool", folder);
	cr_assert_eq(mkdir(path, 0700), 0);
	cr_assert_eq(chown(path, NOBODY, NOBODY), 0);
}

static void remove_folder(void)
{
	char path[64];

	for (const char *const *f = (const char *const[]){ "tool/socket", NULL }; *f; f++) {
		snprintf(path, sizeof(path), "%s/%s", folder, *f);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/tool", folder);
	rmdir(path);
	rmdir(folder);
}

TestSuite(emptyroot, .init = make_folder, .fini = remove_folder);

static int in_child(int (*body)(void))
{
	const pid_t child = fork();
	int status;

	if (!child)
		_exit(body());
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/* Names in a folder, but for "." and "..". -1: it cannot be read. */
static int entries(const char *path)
{
	DIR *d = opendir(path);
	int n = 0;

	if (!d)
		return -1;
	for (const struct dirent *e = readdir(d); e; e = readdir(d))
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0;
	closedir(d);
	return n;
}

static int bind_in_folder(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/tool/socket", folder);
	return bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 1) ? -errno : fd;
}

static int drop(void)
{
	static const struct sandbox nobody = {
		.change_ids = true, .uid = NOBODY, .gid = NOBODY, .caps = SANDBOX_NO_CAPS
	};
	const char *step;

	return sandbox_enter(&nobody, &step);
}

static int reach_out(void)
{
	const struct sockaddr_in a = { .sin_family = AF_INET,
				       .sin_port = htons(9),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	return connect(fd, (const struct sockaddr *)&a, sizeof(a)) ? errno : 0;
}

static int live_in(struct emptyroot *e)
{
	char tool[64];

	snprintf(tool, sizeof(tool), "%s/tool", folder);
	REQUIRE(emptyroot_enter(e) == 0);
	/* The folder is at its path, and nothing else is there. */
	REQUIRE(entries("/") == 1 && entries("/tmp") == 1 && access("/proc", F_OK) < 0);
	const int fd = bind_in_folder();

	REQUIRE(fd >= 0);
	REQUIRE(open("/file", O_WRONLY | O_CREAT, 0600) < 0 && errno == EROFS);
	REQUIRE(emptyroot_close(e) == 0);
	REQUIRE(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	REQUIRE(entries("/") == 1 && entries("/tmp") == 1 && entries(folder) == 0);
	REQUIRE(access(tool, F_OK) < 0 && errno == ENOENT);
	REQUIRE(access("/..", F_OK) == 0 && entries("/..") == 1);
	REQUIRE(entries(".") == 1);
	REQUIRE(!e->network || reach_out() == ENETUNREACH);
	REQUIRE(emptyroot_close(e) == -ENOTCONN);
	return 0;
}

static int live_as_root_made_it(void)
{
	struct emptyroot e;

	if (emptyroot_prepare(&e, folder, false))
		return NOT_ALLOWED;
	REQUIRE(drop() == 0);
	return live_in(&e);
}

Test(emptyroot, nothing_is_there_but_the_folder_and_in_the_end_nothing)
{
	const int r = in_child(live_as_root_made_it);

	cr_expect(r == 0 || r == NOT_ALLOWED, "%d", r);
	/* A file made inside is seen outside. */
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "%s/tool/socket", folder);
	cr_expect(r == NOT_ALLOWED || (stat(path, &st) == 0 && S_ISSOCK(st.st_mode)));
}

static int live_as_nobody_made_it(void)
{
	struct emptyroot e;

	REQUIRE(setresgid(NOBODY, NOBODY, NOBODY) == 0 && setresuid(NOBODY, NOBODY, NOBODY) == 0);
	prctl(PR_SET_DUMPABLE, 1);
	REQUIRE(emptyroot_prepare(&e, folder, false) == -EPERM && e.socket < 0);
	REQUIRE(entries("/etc") > 0);
	if (emptyroot_prepare(&e, folder, true)) {
		REQUIRE(entries("/etc") > 0 && geteuid() == NOBODY && getegid() == NOBODY);
		return NOT_ALLOWED;
	}
	REQUIRE(geteuid() == NOBODY && getegid() == NOBODY);
	REQUIRE(drop() == 0);
	return live_in(&e);
}

Test(emptyroot, without_rights_a_user_namespace_gives_the_same)
{
	const int r = in_child(live_as_nobody_made_it);

	cr_expect(r == 0 || r == NOT_ALLOWED, "%d", r);
}

static int live_in_a_folder_that_is_gone(void)
{
	struct emptyroot e;

	if (emptyroot_prepare(&e, "/tmp/no/such/folder", false))
		return NOT_ALLOWED;
	REQUIRE(emptyroot_enter(&e) == -ENOENT && entries("/etc") > 0);
	REQUIRE(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
	return 0;
}

Test(emptyroot, without_the_folder_the_root_is_what_it_was)
{
	const int r = in_child(live_in_a_folder_that_is_gone);

	cr_expect(r == 0 || r == NOT_ALLOWED, "%d", r);
}

static int live_in_a_folder_too_deep(void)
{
	char deep[4096] = "/tmp/emptyroot.deep";
	struct emptyroot e;
	int r = 0;

	for (int i = 0; i < 80 && (mkdir(deep, 0700) == 0 || errno == EEXIST); i++)
		strcat(deep, "/d");
	mkdir(deep, 0700);
	if (emptyroot_prepare(&e, deep, false))
		r = NOT_ALLOWED;
	else if (emptyroot_enter(&e) >= 0 || access(deep, F_OK) || entries("/etc") <= 0)
		r = 1;
	for (char *last = strrchr(deep, '/'); last > deep + 4; last = strrchr(deep, '/')) {
		rmdir(deep);
		*last = '\0';
	}
	rmdir(deep);
	return r;
}

Test(emptyroot, a_failed_change_of_root_is_undone)
{
	const int r = in_child(live_in_a_folder_too_deep);

	cr_expect(r == 0 || r == NOT_ALLOWED, "%d", r);
}

static int live_without_a_folder(void)
{
	struct emptyroot e;

	if (emptyroot_prepare(&e, NULL, false))
		return NOT_ALLOWED;
	REQUIRE(emptyroot_enter(&e) == 0 && entries("/") == 0);
	REQUIRE(emptyroot_close(&e) == 0 && entries("/") == 0);
	return 0;
}

Test(emptyroot, no_folder_at_all_leaves_nothing)
{
	const int r = in_child(live_without_a_folder);

	cr_expect(r == 0 || r == NOT_ALLOWED, "%d", r);
}

static int wait_for_the_helper(void)
{
	struct emptyroot e;

	if (emptyroot_prepare(&e, folder, false))
		return NOT_ALLOWED;
	/* The privileged process ends with us: the test's parent reads this pipe to its end. */
	return 0;
}

Test(emptyroot, the_privileged_helper_ends_with_the_tool)
{
	int pipe_[2];
	char byte;

	cr_assert_eq(pipe(pipe_), 0);
	const int r = in_child(wait_for_the_helper);

	close(pipe_[1]);
	cr_expect(r == 0 || r == NOT_ALLOWED, "%d", r);
	cr_expect_eq(read(pipe_[0], &byte, 1), 0);
	close(pipe_[0]);
}
