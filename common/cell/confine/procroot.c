/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cell/confine/procroot.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "common/base/files/fd.h"

#define BARE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

/* Whether /proc shows the pid namespace of this process. A new instance would. */
static bool is_ours(void)
{
	char self[16] = "";

	return readlink("/proc/self", self, sizeof(self) - 1) > 0 && atol(self) == getpid();
}

/* Whether procroot_leave will be allowed. libcap-ng would read /proc to find out. */
static bool may_leave(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct have[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &head, have) == 0 &&
	       have[CAP_TO_INDEX(CAP_SYS_ADMIN)].effective & CAP_TO_MASK(CAP_SYS_ADMIN) &&
	       have[CAP_TO_INDEX(CAP_SYS_CHROOT)].effective & CAP_TO_MASK(CAP_SYS_CHROOT);
}

/* Returns a mount that is attached nowhere, or -errno. */
static int make(void)
{
	/* Otherwise this host is misconfigured, which prof-bpf tells. */
	if (!is_ours())
		return -ENOENT;
	if (!may_leave())
		return -EPERM;
	const int context = fsopen("proc", FSOPEN_CLOEXEC);

	if (context < 0)
		return -errno;
	int r = fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0);

	if (r == 0)
		r = fsmount(context, FSMOUNT_CLOEXEC, BARE);
	if (r < 0)
		r = -errno;
	close(context);
	return r;
}

/* Where this process was before. -1: nowhere else. */
static struct {
	int space, root, here;
} former = { -1, -1, -1 };

static void forget(void)
{
	fd_close(&former.space);
	fd_close(&former.root);
	fd_close(&former.here);
}

/* proc: an instance of procfs. */
static int remember(int proc)
{
	former.space = openat(proc, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
	if (former.space >= 0)
		former.root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (former.root >= 0)
		former.here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return former.here < 0 ? -errno : 0;
}

/* The old instance goes first, since a mount on top of it would wait for the lock of its root
 * folder. It cannot go if it is locked to what is mounted below; then this waits if it must. */
static int replace(int proc)
{
	if (mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0)
		return -errno;
	(void)umount2("/proc", MNT_DETACH);
	return move_mount(proc, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) < 0 ? -errno : 0;
}

int procroot_take(void)
{
	int made = make();

	if (made < 0)
		return made;
	int r = remember(made);

	if (!r && unshare(CLONE_NEWNS) < 0)
		r = -errno;
	if (r) {
		forget();
	} else {
		r = replace(made);
		if (r)
			(void)procroot_leave();
	}
	close(made);
	return r;
}

int procroot_leave(void)
{
	if (former.space < 0)
		return 0;
	/* A change of the namespace also changes the root and the working folder. */
	const int r = setns(former.space, CLONE_NEWNS) < 0 || fchdir(former.root) < 0 ||
				      chroot(".") < 0 || fchdir(former.here) < 0
			      ? -errno
			      : 0;

	forget();
	return r;
}
