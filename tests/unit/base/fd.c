/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/files/fd.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define LARGE (1u << 20) /* more than a pipe holds */

static int file_of(const char *text)
{
	const int fd = memfd_create("fd", MFD_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(fd_write_all(fd, text, strlen(text)), 0);
	return fd;
}

Test(fd, an_empty_one_is_closed_without_harm)
{
	int fd = file_of("x"), none = -1;
	const int was = fd;

	fd_close(&fd);
	cr_assert_eq(fd, -1);
	cr_assert_eq(fcntl(was, F_GETFD), -1);
	fd_close(&none);
	cr_assert_eq(none, -1);
}

Test(fd, a_place_is_read_until_the_file_ends)
{
	int fd = file_of("123456");
	char bytes[8] = { 0 };

	cr_assert_eq(fd_pread_all(fd, bytes, 3, 2), 3);
	cr_assert_str_eq(bytes, "345");
	cr_assert_eq(fd_pread_all(fd, bytes, sizeof(bytes), 4), 2);
	cr_assert_eq(memcmp(bytes, "565", 3), 0);
	cr_assert_eq(fd_pread_all(fd, bytes, sizeof(bytes), 6), 0);
	cr_assert_eq(fd_pread_all(fd, bytes, 0, 1), 0);
	/* The position is behind what was written. */
	cr_assert_eq(lseek(fd, 0, SEEK_CUR), 6);
	fd_close(&fd);
}

Test(fd, errors_of_reading_and_writing_are_passed_on)
{
	char byte;
	int ends[2];

	cr_assert_eq(fd_pread_all(-1, &byte, 1, 0), -EBADF);
	cr_assert_eq(fd_read_all(-1, &byte, 1), -EBADF);
	cr_assert_eq(fd_write_all(-1, "x", 1), -EBADF);
	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	cr_assert_eq(fd_pread_all(ends[0], &byte, 1, 0), -ESPIPE);
	int fd = file_of("x");

	cr_assert_eq(fd_pread_all(fd, &byte, 1, UINT64_MAX), -EINVAL);
	fd_close(&fd);
	signal(SIGPIPE, SIG_IGN);
	fd_close(&ends[0]);
	cr_assert_eq(fd_write_all(ends[1], "x", 1), -EPIPE);
	fd_close(&ends[1]);
}

Test(fd, a_pipe_takes_and_gives_more_than_it_holds)
{
	static char sent[LARGE], got[LARGE + 1];
	int ends[2];

	for (size_t i = 0; i < LARGE; i++)
		sent[i] = (char)(i * 7 + i / 251);
	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	const pid_t writer = fork();

	cr_assert_geq(writer, 0);
	if (!writer) {
		close(ends[0]);
		_exit(fd_write_all(ends[1], sent, LARGE) != 0);
	}
	fd_close(&ends[1]);
	cr_assert_eq(fd_read_all(ends[0], got, sizeof(got)), LARGE);
	cr_assert_eq(memcmp(got, sent, LARGE), 0);
	int status = -1;

	cr_assert_eq(waitpid(writer, &status, 0), writer);
	cr_assert_eq(status, 0);
	fd_close(&ends[0]);
}
