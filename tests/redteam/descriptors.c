/* SPDX-License-Identifier: Apache-2.0 */
/* Attempts through the descriptor of a file that the tool holds. */
#include <fcntl.h>
#include <linux/fs.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
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
	long flags = 0x40; /* excluded from core dumps */

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

AS_CALL(direct_held, SYS_fcntl, takeover_held, F_SETFL, O_DIRECT)
AS_CALL(append_held, SYS_fcntl, takeover_held, F_SETFL, O_APPEND)
AS_CALL(signal_by_held, SYS_fcntl, takeover_held, F_SETOWN, takeover_orders->victim)
AS_CALL(clone_held, SYS_ioctl, takeover_held, FICLONE, takeover_held)
AS_CALL(seal_held, SYS_fcntl, takeover_held, F_ADD_SEALS, F_SEAL_WRITE)
AS_CALL(send_into_held, SYS_sendfile, takeover_held, takeover_held, 0, 16)

long record_lock_held(void)
{
	const struct flock lock = { .l_type = F_RDLCK };

	return CALL(SYS_fcntl, takeover_held, F_OFD_SETLK, &lock);
}

long copy_into_held(void)
{
	int64_t from = 0, to = 1 << 20;

	return CALL(SYS_copy_file_range, takeover_held, &from, takeover_held, &to, 16, 0);
}

/* Several holes of the kernel involved pages of a file in a pipe. */
static long through_pipe(int from, int to, bool into)
{
	int fds[2];
	long r = CALL(SYS_pipe2, fds, 0);

	if (r < 0)
		return r;
	if (into)
		CALL(SYS_write, fds[1], "redteam", 7);
	r = CALL(SYS_splice, into ? fds[0] : from, 0, into ? to : fds[1], 0, 7, 0);
	CALL(SYS_close, fds[0]);
	CALL(SYS_close, fds[1]);
	return r;
}

long splice_into_held(void)
{
	return through_pipe(-1, takeover_held, true);
}

long splice_held(void)
{
	return through_pipe(takeover_held, -1, false);
}

long handle_of_held(void)
{
	struct {
		unsigned bytes;
		int type;
		unsigned char handle[128];
	} h = { .bytes = 128 };
	int mount = 0;

	return CALL(SYS_name_to_handle_at, takeover_held, "", &h, &mount, AT_EMPTY_PATH);
}

static long shared(void)
{
	return CALL(SYS_mmap, 0, 4096, PROT_READ, MAP_SHARED, takeover_held, 0);
}

long remap_held_writable(void)
{
	const long at = shared();

	return address_or_error(at) ? at : CALL(SYS_mprotect, at, 4096, PROT_READ | PROT_WRITE);
}

long punch_held(void)
{
	const long at = shared();

	return address_or_error(at) ? at : CALL(SYS_madvise, at, 4096, MADV_REMOVE);
}
