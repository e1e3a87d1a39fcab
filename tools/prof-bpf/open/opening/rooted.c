/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/open/opening/rooted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

struct way {
	int root, at[ROOTED_DEPTH]; /* folders on the way without the root, innermost last */
	unsigned depth, links;
	char left[PATH_MAX]; /* remaining part of the path */
	bool (*may_ask)(void *ctx, int fd);
	void *ctx;
};

static int here(const struct way *w)
{
	return w->depth ? w->at[w->depth - 1] : w->root;
}

static void back_to(struct way *w, unsigned depth)
{
	while (w->depth > depth)
		close(w->at[--w->depth]);
}

/* Takes the next name from the remaining path. Returns false if there is none. */
static bool next_name(struct way *w, char name[static NAME_MAX + 1], int *ret_error)
{
	const char *from = w->left + strspn(w->left, "/");
	const size_t len = strcspn(from, "/");

	*ret_error = len > NAME_MAX ? -ENAMETOOLONG : 0;
	if (!len || *ret_error)
		return false;
	memcpy(name, from, len);
	name[len] = '\0';
	memmove(w->left, from + len, strlen(from + len) + 1);
	return true;
}

/* Puts the target of a link before the remaining path. */
static int take_link(struct way *w, int link)
{
	char text[PATH_MAX], left[PATH_MAX];
	struct statfs fs;

	if (++w->links > ROOTED_LINKS || fstatfs(link, &fs) < 0 || fs.f_type == PROC_SUPER_MAGIC)
		return -ELOOP;
	const ssize_t n = readlinkat(link, "", text, sizeof(text) - 1);

	if (n <= 0)
		return n < 0 ? -errno : -ENOENT;
	text[n] = '\0';
	memcpy(left, w->left, strlen(w->left) + 1);
	/* If nothing follows, add no slash: it would require a folder. */
	const int len = snprintf(w->left, sizeof(w->left), "%s%s%s", text, left[0] ? "/" : "",
				 left);

	if (len < 0 || (size_t)len >= sizeof(w->left))
		return -ENAMETOOLONG;
	if (text[0] == '/')
		back_to(w, 0);
	return 0;
}

/* Uses only what the kernel already knows, without asking a server. */
static int look_at(int fd, struct statx *ret)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_TYPE, ret) < 0 ? -errno : 0;
}

static bool is_link(int fd)
{
	struct statx x;

	return look_at(fd, &x) == 0 && S_ISLNK(x.stx_mode);
}

/* Follows one name. A slash after it requires a folder. */
static int step(struct way *w, const char *name, bool follow)
{
	const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
	const bool last = !w->left[0];
	int fd = -1;

	if (strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0) {
		back_to(w, w->depth ? w->depth - 1 : 0);
		return 0;
	}
	if (w->depth == ROOTED_DEPTH)
		return -ENAMETOOLONG;
	if (w->may_ask && !w->may_ask(w->ctx, here(w)))
		return -ETIMEDOUT;
	/* Try it as a folder first: this triggers automounts. */
	if (!last)
		fd = openat(here(w), name, flags | O_DIRECTORY);
	if (last || (fd < 0 && errno == ENOTDIR)) {
		fd = openat(here(w), name, flags);
		if (fd >= 0 && (!last || follow) && is_link(fd)) {
			const int taken = take_link(w, fd);

			close(fd);
			return taken;
		}
		if (fd >= 0 && !last) {
			close(fd);
			return -ENOTDIR;
		}
	}
	if (fd < 0)
		return -errno;
	w->at[w->depth++] = fd;
	return 0;
}

int rooted_open(int root, const char *path, bool follow, bool (*may_ask)(void *ctx, int fd),
		void *ctx)
{
	struct way w = { .root = root, .may_ask = may_ask, .ctx = ctx };
	char name[NAME_MAX + 1];
	int r = 0, error = 0;

	if (!path[0])
		return -ENOENT;
	if (strlen(path) >= sizeof(w.left))
		return -ENAMETOOLONG;
	memcpy(w.left, path, strlen(path) + 1);
	while (!r && next_name(&w, name, &error))
		r = step(&w, name, follow);
	if (!r)
		r = error;
	if (!r && !w.depth) {
		r = fcntl(root, F_DUPFD_CLOEXEC, 3);
		r = r < 0 ? -errno : r;
	} else if (!r) {
		r = w.at[--w.depth];
	}
	back_to(&w, 0);
	return r;
}
