/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/files/lender.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <libgen.h>
#include <limits.h>
#include <poll.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/files/fd.h"
#include "common/cell/confine/baseline.h"
#include "common/cell/confine/landlock.h"
#include "common/cell/confine/sandbox.h"
#include "common/cell/keeper.h"
#include "common/wire/bus/scm.h"

#define ANSWER_MS 1000
#define MAX_FILES (2 * LENDER_FILES + 16)
#define MEMORY (64ull << 20)
/* Flags that allow more than reading. O_PATH needs no right, so it would reveal which files
 * exist. */
#define NOT_READING (SECCOMP_OPEN_WRITES | O_PATH)

static const struct seccomp_rule lender_calls[] = {
	CALL_IF("openat", SECCOMP_CLEAR(2, NOT_READING)),
	CALL("sendmsg"),
	CALL("recvfrom"),
	SECCOMP_END,
};

/* --- in the lender --- */

/* Opens a file. The checks are made on the open file, not on its name, which may lead to another
 * file a moment later. */
static int open_one(const struct lender_file *f, uid_t caller, int *ret_fd)
{
	/* O_NONBLOCK, so that opening a FIFO does not hang. */
	int fd = open(f->path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	struct stat st;
	int r = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		r = -errno;
	else if (!S_ISREG(st.st_mode))
		r = LENDER_NO_FILE;
	else if (f->secret && st.st_uid != 0 && st.st_uid != caller)
		r = LENDER_OWNER;
	/* The group root may have access: systemd sets it on files of LoadCredential=. */
	else if (f->secret && ((st.st_mode & (S_IRWXO | S_IWGRP | S_IXGRP)) ||
			       ((st.st_mode & S_IRGRP) && st.st_gid != 0)))
		r = LENDER_READABLE;
	if (r)
		fd_close(&fd);
	*ret_fd = fd;
	return r;
}

static void serve(const struct lender_file *files, size_t n, uid_t caller)
{
	uint32_t number;

	while (recv(KEEPER_SOCKET, &number, sizeof(number), 0) == sizeof(number)) {
		int fd = -1;
		const int32_t r = number < n ? open_one(&files[number], caller, &fd)
					     : LENDER_NO_FILE;

		if (!keeper_answer(&r, sizeof(r), fd))
			return;
	}
}

/* Opens the folder that contains the file, because another file may replace the file later. Returns
 * a descriptor or -errno. */
static int open_folder(const char *path)
{
	char copy[PATH_MAX];
	const size_t len = strlen(path);

	if (len >= sizeof(copy))
		return -ENAMETOOLONG;
	memcpy(copy, path, len + 1);
	const int fd = open(dirname(copy), O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Gives up access to all folders but those of the files and of the targets of their links. */
static int forget_other_files(const struct lender_file *files, size_t n)
{
	struct landlock_place places[2 * LENDER_FILES];
	size_t count = 0;
	char real[PATH_MAX];

	for (size_t i = 0; i < n; i++) {
		const int folder = open_folder(files[i].path);

		if (folder >= 0)
			places[count++] = (struct landlock_place){ .fd = folder };
		const int other = realpath(files[i].path, real) ? open_folder(real) : -errno;

		if (other >= 0)
			places[count++] = (struct landlock_place){ .fd = other };
	}
	const int r = landlock_enter_allowed(&(struct landlock_allowed){
		.places = places, .place_count = count, .newest = true });

	for (size_t i = 0; i < count; i++)
		close(places[i].fd);
	return r == -EOPNOTSUPP ? 0 : r;
}

static _Noreturn void lend(int socket, const struct lender_file *files, size_t n)
{
	const struct seccomp_rule *const lists[] = { baseline_calls, baseline_files, lender_calls };
	const struct sandbox sandbox = { .caps = SANDBOX_NO_CAPS,
					 .max_files = MAX_FILES,
					 .max_memory = MEMORY };
	const uid_t caller = getuid();
	const char *step;

	prctl(PR_SET_NAME, "prof-send-files", 0, 0, 0);
	keeper_ignore_signals();
	/* Only root may do this; other callers keep their groups. */
	(void)!setgroups(0, NULL);
	if (keeper_hold(&socket, 1, true) || sandbox_enter(&sandbox, &step) ||
	    forget_other_files(files, n))
		_exit(EXITS_FAILED);
	const int r = seccomp_enter(lists, sizeof(lists) / sizeof(lists[0]), false);

	if (r && r != -EOPNOTSUPP)
		_exit(EXITS_FAILED);
	serve(files, n, caller);
	_exit(EXITS_DONE);
}

/* --- in prof-send --- */

int lender_start(struct lender *l, const struct lender_file *files, size_t n)
{
	int socket;

	if (n > LENDER_FILES)
		return -E2BIG;
	const pid_t pid = keeper_fork(&socket);

	if (pid < 0)
		return pid;
	if (pid == 0)
		lend(socket, files, n);
	*l = (struct lender){ .socket = socket, .pid = pid };
	return 0;
}

static int lost(struct lender *l)
{
	fd_close(&l->socket);
	return LENDER_LOST;
}

static bool has_answer(const struct lender *l, int ms)
{
	struct pollfd p = { .fd = l->socket, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

static int take_answer(struct lender *l, int *ret_fd)
{
	int32_t r;
	int fd = -1;
	const ssize_t n = scm_receive(l->socket, &r, sizeof(r), &fd, 1, 0);

	if (n != sizeof(r) || (r == 0) != (fd >= 0)) {
		fd_close(&fd);
		return lost(l);
	}
	*ret_fd = fd;
	return r;
}

/* Drops a late answer: the call that asked for it has returned. */
static int settle(struct lender *l)
{
	int fd = -1;

	if (l->owes && !has_answer(l, 0))
		return LENDER_LATE;
	if (l->owes)
		(void)take_answer(l, &fd);
	fd_close(&fd);
	l->owes = false;
	return l->socket < 0 ? LENDER_LOST : 0;
}

int lender_borrow(struct lender *l, unsigned number, int *ret_fd)
{
	const uint32_t order = number;
	const int r = settle(l);

	if (r)
		return r;
	if (send(l->socket, &order, sizeof(order), MSG_NOSIGNAL) != sizeof(order))
		return lost(l);
	l->owes = !has_answer(l, ANSWER_MS);
	return l->owes ? LENDER_LATE : take_answer(l, ret_fd);
}

void lender_end(struct lender *l)
{
	fd_close(&l->socket);
}

const char *lender_error(int r)
{
	switch (r) {
	case LENDER_NO_FILE:
		return "is not a regular file; name a file";
	case LENDER_READABLE:
		return "others can read it; run chmod 600";
	case LENDER_OWNER:
		return "belongs to another user, who could change it; give it to root or to "
		       "yourself";
	case LENDER_LOST:
		return "the process that opens it has ended; start prof-send again";
	case LENDER_LATE:
		return "its file system does not answer; move it to another one";
	default:
		return strerror(r < 0 ? -r : EIO);
	}
}
