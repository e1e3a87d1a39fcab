/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <linux/fs.h>
#include <stddef.h>
#include <sys/mman.h>
#include "tests/redteam/attempts.h"

static const char *self_fd(int fd, char *ret)
{
	char digits[4] = { (char)('0' + fd / 100), (char)('0' + fd / 10 % 10),
			   (char)('0' + fd % 10), 0 };

	append(append(ret, "/proc/self/fd/"), fd > 99 ? digits : fd > 9 ? digits + 1 : digits + 2);
	return ret;
}

long write_held(void)
{
	const int fd = takeover_held;

	return CALL(SYS_write, fd, "redteam", 7);
}

long pwrite_held(void)
{
	const int fd = takeover_held;

	return CALL(SYS_pwrite64, fd, "redteam", 7, 0);
}

long truncate_held(void)
{
	const int fd = takeover_held;

	return CALL(SYS_ftruncate, fd, 0);
}

long allocate_held(void)
{
	const int fd = takeover_held;

	return CALL(SYS_fallocate, fd, 0, 0, 4096);
}

long mode_of_held(void)
{
	const int fd = takeover_held;

	return CALL(SYS_fchmod, fd, 04777);
}

long owner_of_held(void)
{
	const int fd = takeover_held;

	return CALL(SYS_fchown, fd, 0, 0);
}

long attribute_of_held(void)
{
	const int fd = takeover_held;

	return CALL(SYS_fsetxattr, fd, "user.redteam", "x", 1, 0);
}

long times_of_held(void)
{
	const int fd = takeover_held;

	return CALL(SYS_utimensat, fd, 0, 0, 0);
}

long map_held_writable(void)
{
	const int fd = takeover_held;

	const long at = CALL(SYS_mmap, 0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return at < 0 && at > -4096 ? at : 0;
}

long map_held_executable(void)
{
	const int fd = takeover_held;

	const long at = CALL(SYS_mmap, 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	return at < 0 && at > -4096 ? at : 0;
}

long reopen_held(void)
{
	const int fd = takeover_held;
	char path[64];

	return CALL(SYS_openat, AT_FDCWD, self_fd(fd, path), O_RDWR);
}

long link_held(void)
{
	char path[160];
	const int fd = takeover_held;

	return CALL(SYS_linkat, fd, "", AT_FDCWD, beside(path), AT_EMPTY_PATH);
}

long execute_held(void)
{
	const int fd = takeover_held;
	char *const none[] = { NULL };

	return CALL(SYS_execveat, fd, "", none, none, AT_EMPTY_PATH);
}

long flags_of_held(void)
{
	const int fd = takeover_held;
	long flags = 0x40; /* not to be dumped */

	return CALL(SYS_ioctl, fd, FS_IOC_SETFLAGS, &flags);
}

long lease_held(void)
{
	const int fd = takeover_held;

	return CALL(SYS_fcntl, fd, F_SETLEASE, F_RDLCK);
}

long lock_held(void)
{
	const int fd = takeover_held;

	return CALL(SYS_flock, fd, 2 | 4 /* LOCK_EX | LOCK_NB */);
}

long module_from_held(void)
{
	const int fd = takeover_held;

	return CALL(SYS_finit_module, fd, "", 0);
}
