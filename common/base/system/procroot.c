/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/system/procroot.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <unistd.h>

#define BARE (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC)

/* Whether /proc shows the pid namespace of this process. A new instance would. */
static bool is_ours(void)
{
	char self[16] = "";

	return readlink("/proc/self", self, sizeof(self) - 1) > 0 && atol(self) == getpid();
}

/* Returns a mount that is attached nowhere, or -errno. */
static int make(void)
{
	/* Otherwise this host is misconfigured, which prof-bpf tells. */
	if (!is_ours())
		return -ENOENT;
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

int procroot_open(void)
{
	int r = make();

	if (r >= 0)
		return r;
	r = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return r < 0 ? -errno : r;
}

int procroot_take(void)
{
	const int made = make();

	if (made < 0)
		return made;
	const int r =
		unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) < 0 ||
				move_mount(made, "", AT_FDCWD, "/proc", MOVE_MOUNT_F_EMPTY_PATH) < 0
			? -errno
			: 0;

	close(made);
	return r;
}
