/* SPDX-License-Identifier: Apache-2.0 */
/* Runs as root, which Landlock also restricts. A forked child enters each domain. If the kernel has
 * no Landlock or an older one, operations that it does not cover succeed. */
#include "common/cell/confine/landlock.h"

#include <criterion/criterion.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[] = "/tmp/landlock.XXXXXX";

static void make_folder(void)
{
	cr_assert(mkdtemp(folder) != NULL);
}

static void remove_folder(void)
{
	char path[64];

	for (const char *const *f = (const char *const[]){ "file", "socket", NULL }; *f; f++) {
		snprintf(path, sizeof(path), "%s/%s", folder, *f);
		unlink(path);
	}
	rmdir(folder);
}

TestSuite(landlock, .init = make_folder, .fini = remove_folder);

static int in_domain(enum landlock_rights rights, const char *below, int (*body)(void))
{
	const pid_t child = fork();
	int status;

	if (!child) {
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		const int r = landlock_enter(rights, below);

		_exit(r && r != -EOPNOTSUPP ? 99 : body());
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static int error_of(int r)
{
	return r < 0 ? errno : 0;
}

static int open_file(void)
{
	return error_of(open("/etc/passwd", O_RDONLY | O_CLOEXEC));
}

static int make_file(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/file", folder);
	return error_of(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
}

static int remove_file(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/file", folder);
	return error_of(unlink(path));
}

static int remove_socket(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/socket", folder);
	return error_of(unlink(path));
}

static int make_socket(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/socket", folder);
	return error_of(bind(fd, (struct sockaddr *)&a, sizeof(a)));
}

static int connect_by_tcp(void)
{
	const struct sockaddr_in a = { .sin_family = AF_INET,
				       .sin_port = htons(9),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const int fd = socket(AF_INET, SOCK_STREAM, 0);

	return error_of(connect(fd, (const struct sockaddr *)&a, sizeof(a)));
}

static int signal_the_parent(void)
{
	return error_of(kill(getppid(), 0));
}

static struct sockaddr_un abstract = { .sun_family = AF_UNIX, .sun_path = "\0landlock.unit" };
static const socklen_t abstract_size = offsetof(struct sockaddr_un, sun_path) + 14;

static int connect_to_the_parent(void)
{
	const int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	return error_of(connect(fd, (struct sockaddr *)&abstract, abstract_size));
}

static int covered(int version, int error)
{
	return landlock_version() >= version ? error : 0;
}

Test(landlock, nothing_is_left_below_no_folder)
{
	const int listening = socket(AF_UNIX, SOCK_STREAM, 0);

	cr_assert_eq(bind(listening, (struct sockaddr *)&abstract, abstract_size), 0);
	cr_assert_eq(listen(listening, 5), 0);
	for (enum landlock_rights r = LANDLOCK_NOTHING; r <= LANDLOCK_NO_FILES; r++) {
		cr_expect_eq(in_domain(r, NULL, open_file), covered(1, EACCES));
		cr_expect_eq(in_domain(r, NULL, make_file), covered(1, EACCES));
		cr_expect_eq(in_domain(r, NULL, make_socket), covered(1, EACCES));
		cr_expect_eq(in_domain(r, NULL, connect_by_tcp),
			     covered(4, EACCES) ?: ECONNREFUSED);
		cr_expect_eq(in_domain(r, NULL, signal_the_parent), covered(6, EPERM));
		cr_expect_eq(in_domain(r, NULL, connect_to_the_parent), covered(6, EPERM));
	}
	close(listening);
}

Test(landlock, only_granted_operations_are_allowed)
{
	cr_expect_eq(in_domain(LANDLOCK_SOCKETS, "/var", make_socket), covered(1, EACCES));
	cr_expect_eq(in_domain(LANDLOCK_SOCKETS, folder, make_socket), 0);
	cr_expect_eq(in_domain(LANDLOCK_SOCKETS, folder, make_file), covered(1, EACCES));
	cr_expect_eq(in_domain(LANDLOCK_SOCKETS, folder, open_file), covered(1, EACCES));
	cr_expect_eq(make_file(), 0);
	cr_expect_eq(in_domain(LANDLOCK_NO_FILES, NULL, remove_file), covered(1, EACCES));
	cr_expect_eq(make_file(), 0);
	cr_expect_eq(in_domain(LANDLOCK_SOCKETS, folder, remove_socket), 0);
	cr_expect_eq(in_domain(LANDLOCK_SOCKETS, folder, remove_file), 0);
}

static int enter_another(void)
{
	const int r = landlock_enter(LANDLOCK_SOCKETS, "/");

	return r && r != -EOPNOTSUPP ? 98 : open_file();
}

Test(landlock, a_later_domain_gives_nothing_back)
{
	cr_expect_eq(in_domain(LANDLOCK_NO_FILES, NULL, enter_another), covered(1, EACCES));
}

static int read_what_is_open(void)
{
	char byte;

	return error_of((int)read(STDIN_FILENO, &byte, 0));
}

Test(landlock, open_files_stay_open)
{
	const int fd = open("/etc/passwd", O_RDONLY);

	cr_assert_eq(dup2(fd, STDIN_FILENO), STDIN_FILENO);
	cr_expect_eq(in_domain(LANDLOCK_NOTHING, NULL, read_what_is_open), 0);
	close(fd);
}

Test(landlock, folder_that_is_not_there_is_an_error)
{
	if (landlock_version() > 0)
		cr_expect_eq(landlock_enter(LANDLOCK_SOCKETS, "/no/such/folder"), -ENOENT);
	cr_expect_eq(open_file(), 0);
}

/* --- some files, some ports --- */

static int rename_file(void)
{
	char from[64], to[64];

	snprintf(from, sizeof(from), "%s/file", folder);
	snprintf(to, sizeof(to), "%s/socket", folder);
	return error_of(rename(from, to));
}

static int make_folder_inside(void)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/folder", folder);
	return error_of(mkdir(path, 0700));
}

static int open_another(void)
{
	return error_of(open("/etc/group", O_RDONLY | O_CLOEXEC));
}

static int write_file(void)
{
	return error_of(open("/etc/passwd", O_WRONLY | O_CLOEXEC));
}

static int in_allowed(const char *path, enum landlock_use use, uint16_t port, int (*body)(void))
{
	const pid_t child = fork();
	int status;

	if (!child) {
		const struct landlock_place place = { .fd = open(path, O_PATH), .use = use };
		const struct landlock_allowed a = { .places = &place,
						    .place_count = 1,
						    .ports = &port,
						    .port_count = port ? 1 : 0,
						    .newest = true };

		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		const int r = landlock_enter_allowed(&a);

		_exit(r && r != -EOPNOTSUPP ? 99 : body());
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

Test(landlock, a_file_that_is_allowed_can_be_read_and_no_other)
{
	cr_expect_eq(in_allowed("/etc/passwd", LANDLOCK_READ, 0, open_file), 0);
	cr_expect_eq(in_allowed("/etc/passwd", LANDLOCK_READ, 0, write_file), covered(1, EACCES));
	cr_expect_eq(in_allowed("/etc/passwd", LANDLOCK_READ, 0, open_another), covered(1, EACCES));
	cr_expect_eq(in_allowed("/etc", LANDLOCK_READ, 0, open_another), 0);
	cr_expect_eq(in_allowed("/etc", LANDLOCK_READ, 0, write_file), covered(1, EACCES));
}

Test(landlock, files_are_kept_only_in_the_folder)
{
	cr_expect_eq(in_allowed(folder, LANDLOCK_KEEP_FILES, 0, make_file), 0);
	cr_expect_eq(in_allowed(folder, LANDLOCK_KEEP_FILES, 0, rename_file), 0);
	cr_expect_eq(in_allowed(folder, LANDLOCK_KEEP_FILES, 0, remove_socket), 0);
	cr_expect_eq(in_allowed(folder, LANDLOCK_KEEP_FILES, 0, make_folder_inside),
		     covered(1, EACCES));
	cr_expect_eq(in_allowed(folder, LANDLOCK_KEEP_FILES, 0, make_socket), covered(1, EACCES));
	cr_expect_eq(in_allowed(folder, LANDLOCK_KEEP_FILES, 0, open_file), covered(1, EACCES));
	cr_expect_eq(in_allowed("/var", LANDLOCK_KEEP_FILES, 0, make_file), covered(1, EACCES));
}

Test(landlock, only_ports_that_are_allowed_are_reached)
{
	cr_expect_eq(in_allowed("/etc", LANDLOCK_READ, 9, connect_by_tcp), ECONNREFUSED);
	cr_expect_eq(in_allowed("/etc", LANDLOCK_READ, 10, connect_by_tcp),
		     covered(4, EACCES) ?: ECONNREFUSED);
	cr_expect_eq(in_allowed("/etc", LANDLOCK_READ, 0, connect_by_tcp),
		     covered(4, EACCES) ?: ECONNREFUSED);
}
