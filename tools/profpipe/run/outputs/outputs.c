/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/outputs/outputs.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/command/log.h"
#include "tools/profpipe/run/rights/user.h"

static void say_wait(const char *path)
{
	log_warning("%s: the pipe has no reader yet; the run begins when it has one", path);
}

int output_open(struct outfile *o, const char *path, mode_t mode, bool grows)
{
	const struct outfile_how how = { .mode = mode, .grows = grows, .on_wait = say_wait };
	struct user u;

	*o = (struct outfile)OUTFILE_NONE;
	if (outfile_is_handed(path))
		return outfile_open(o, path, &how);
	int r = user_become(&u);

	if (!r)
		r = outfile_open(o, path, &how);
	user_return(&u);
	return r;
}

int output_end(struct outfile *o, bool whole)
{
	struct user u;
	int r = 0;

	if (o->fd < 0 || o->kind < OUTFILE_PLACE)
		return outfile_end(o, whole);
	r = user_become(&u);
	if (!r)
		r = outfile_end(o, whole);
	user_return(&u);
	return r;
}

void output_drop(struct outfile *o)
{
	struct user u;

	if (o->fd < 0)
		return;
	if (!user_become(&u))
		outfile_drop(o);
	user_return(&u);
}

bool output_conclude(struct outfile *o, bool whole)
{
	const bool hidden = o->fd >= 0 && o->kind == OUTFILE_HIDDEN;
	const int r = output_end(o, whole);

	if (r && o->hidden[0])
		log_error("%s: cannot be replaced: %s; the new file lies beside it as %s", o->path,
			  strerror(-r), o->hidden);
	else if (r)
		log_error("%s: %s", o->path, outfile_error(r));
	if (hidden && (r || !whole))
		log_warning(o->ino ? "%s: keeps its old contents" : "%s: is not written", o->path);
	return !r;
}

const char *output_error(int r)
{
	return r == -EINVAL ? "SUDO_UID or SUDO_GID is not a number; unset them, or use sudo"
			    : outfile_error(r);
}

int output_open_input(const char *path, int *ret_fd)
{
	struct user u;
	struct stat st;

	if (strcmp(path, "-") == 0) {
		*ret_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
		return *ret_fd < 0 ? -errno : 0;
	}
	int r = user_become(&u), fd = -1;

	if (!r) {
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		r = fd < 0 ? -errno : 0;
	}
	user_return(&u);
	if (r)
		return r;
	if (fstat(fd, &st) < 0 || S_ISDIR(st.st_mode)) {
		close(fd);
		return -EISDIR;
	}
	*ret_fd = fd;
	return 0;
}
