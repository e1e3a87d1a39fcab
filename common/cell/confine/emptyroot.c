/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The child shares the parent's root and working folder (CLONE_FS) and its namespaces. It keeps
 * CAP_SYS_ADMIN and CAP_SYS_CHROOT in them, has only its socket open, and obeys two commands. It
 * ends when the parent ends.
 *
 * pivot_root with "." twice puts the old root onto the new one, from where it is unmounted
 * (pivot_root(2)). A root that is an initramfs cannot be moved; there the new root is moved over
 * it.
 */
#include "common/cell/confine/emptyroot.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/command/exits.h"

#define ENTER 'e'
#define CLOSE 'c'
#define BARE (MS_NOSUID | MS_NODEV | MS_NOEXEC)
#define APART (CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)

/* --- namespaces --- */

static int write_text(const char *path, const char *text)
{
	const int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	const int r = write(fd, text, strlen(text)) < 0 ? -errno : 0;

	close(fd);
	return r;
}

/* Enters a user namespace in which our own ids exist. */
static int enter_user(void)
{
	const uid_t uid = geteuid();
	const gid_t gid = getegid();
	char map[64];

	if (unshare(CLONE_NEWUSER))
		return -errno;
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	int r = write_text("/proc/self/uid_map", map);

	if (!r)
		r = write_text("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	return r ? r : write_text("/proc/self/gid_map", map);
}

static int enter_namespaces(bool *ret_network)
{
	if (unshare(APART))
		return -errno;
	*ret_network = unshare(CLONE_NEWNET) == 0;
	return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ? -errno : 0;
}

/* Let a child try it first: a security module may forbid everything in a user namespace, and we
 * could not leave it again. */
static bool user_namespace_works(void)
{
	int status;
	bool network;
	const pid_t pid = fork();

	if (pid == 0) {
		const bool works = !enter_user() && !enter_namespaces(&network) &&
				   !mount("none", "/proc", "tmpfs", BARE, NULL);

		_exit(works ? EXITS_DONE : EXITS_FAILED);
	}
	if (pid < 0)
		return false;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return WIFEXITED(status) && WEXITSTATUS(status) == EXITS_DONE;
}

/* --- the child --- */

/* Makes the folder's path below the working folder, which is to become the root. */
static int make_path(const char *folder, char *path, size_t size)
{
	const size_t len = strlen(folder);

	if (folder[0] != '/' || len >= size)
		return -EINVAL;
	memcpy(path, folder + 1, len);
	for (char *p = strchr(path, '/');; p = strchr(p + 1, '/')) {
		if (p)
			*p = '\0';
		if (path[0] && mkdir(path, 0755) && errno != EEXIST)
			return -errno;
		if (path[0] && chmod(path, 0755))
			return -errno;
		if (!p)
			return 0;
		*p = '/';
	}
}

static int change_root(void)
{
	if (syscall(SYS_pivot_root, ".", ".") == 0)
		return umount2(".", MNT_DETACH) || chdir("/") ? -errno : 0;
	if (errno != EINVAL || mount(".", "/", NULL, MS_MOVE, NULL))
		return -errno;
	return chroot(".") || chdir("/") ? -errno : 0;
}

static int enter(const char *folder)
{
	const char *const over = folder ? folder : "/proc";
	char path[PATH_MAX];
	int tree = -1, r = 0;

	if (folder) {
		tree = open_tree(AT_FDCWD, folder, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
		if (tree < 0)
			return -errno;
	}
	const bool mounted = mount("none", over, "tmpfs", BARE,
				   "size=64k,nr_inodes=64,mode=0755") == 0;

	if (!mounted || chdir(over))
		r = -errno;
	if (!r && folder)
		r = make_path(folder, path, sizeof(path));
	if (!r && folder && move_mount(tree, "", AT_FDCWD, path, MOVE_MOUNT_F_EMPTY_PATH))
		r = -errno;
	if (!r && folder) /* a mount that is more restricted on the host remains so */
		(void)mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | BARE, NULL);
	if (!r)
		r = change_root();
	if (!r)
		(void)mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | BARE, NULL);
	else if (mounted && chdir("/") == 0) /* make the folder visible again */
		(void)umount2(over, MNT_DETACH);
	if (tree >= 0)
		close(tree);
	return r;
}

static int keep_mounting(void)
{
	capng_clear(CAPNG_SELECT_BOTH);
	if (capng_updatev(CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED, CAP_SYS_ADMIN,
			  CAP_SYS_CHROOT, -1))
		return -EINVAL;
	return capng_apply(CAPNG_SELECT_CAPS) ? -EPERM : 0;
}

static void serve(int socket, const char *folder)
{
	char what;
	int r;

	while (recv(socket, &what, 1, 0) == 1) {
		r = what == ENTER ? enter(folder)
		    : folder	  ? (umount2(folder, MNT_DETACH) ? -errno : 0)
				  : 0;
		if (send(socket, &r, sizeof(r), MSG_NOSIGNAL) < 0)
			return;
	}
}

static void be_child(int socket, const char *folder)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_DUMPABLE, 0);
	if (dup2(socket, 0) == 0 && close_range(1, ~0u, 0) == 0 && keep_mounting() == 0)
		serve(0, folder);
	_exit(EXITS_DONE);
}

/* --- the parent --- */

static int ask(struct emptyroot *e, char what)
{
	int answer;

	if (e->socket < 0)
		return -ENOTCONN;
	if (send(e->socket, &what, 1, MSG_NOSIGNAL) < 0)
		return -errno;
	return recv(e->socket, &answer, sizeof(answer), 0) == sizeof(answer) ? answer : -EPIPE;
}

static void forget(struct emptyroot *e)
{
	if (e->socket < 0)
		return;
	close(e->socket);
	e->socket = -1;
	while (waitpid(e->child, NULL, 0) < 0 && errno == EINTR)
		;
}

int emptyroot_prepare(struct emptyroot *e, const char *folder, bool user)
{
	int pair[2];

	*e = EMPTYROOT_NONE;
	int r = enter_namespaces(&e->network);

	if (r == -EPERM && user && user_namespace_works()) {
		r = enter_user();
		if (!r)
			r = enter_namespaces(&e->network);
	}
	if (r || chdir("/"))
		return r ? r : -errno;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	e->child = (pid_t)syscall(SYS_clone, CLONE_FS | SIGCHLD, NULL, NULL, NULL, NULL);
	if (e->child == 0)
		be_child(pair[1], folder);
	r = e->child < 0 ? -errno : 0;
	close(pair[1]);
	if (r)
		close(pair[0]);
	else
		e->socket = pair[0];
	return r;
}

int emptyroot_enter(struct emptyroot *e)
{
	const int r = ask(e, ENTER);

	if (r)
		forget(e);
	return r;
}

int emptyroot_close(struct emptyroot *e)
{
	const int r = ask(e, CLOSE);

	forget(e);
	return r;
}
