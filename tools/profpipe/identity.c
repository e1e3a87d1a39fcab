/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/identity.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOCK_FILE "/run/profpipe.lock"

static bool in_range(unsigned long id, unsigned k)
{
	const unsigned long first = IDENTITY_BASE + k * IDENTITY_STEP;

	return id >= first && id < first + IDENTITY_STEP;
}

/* Marks the ranges of the ids on one line of /proc/PID/status: real, effective, saved, of the file
 * system. */
static void mark_line(const char *text, const char *word, bool used[static IDENTITY_RANGES])
{
	const char *at = strstr(text, word);

	if (!at)
		return;
	at += strlen(word);
	for (int i = 0; i < 4; i++) {
		char *end;
		const unsigned long id = strtoul(at, &end, 10);

		for (unsigned k = 0; end != at && k < IDENTITY_RANGES; k++)
			used[k] |= in_range(id, k);
		at = end;
	}
}

/* Which ranges some process lives in: another's software may use them, or a tool may have outlived
 * its launcher. The owner of /proc/PID would not do: undumpable processes hide there behind root.
 */
static int mark_used(bool used[static IDENTITY_RANGES])
{
	DIR *d = opendir("/proc");
	char path[300], text[2048];

	if (!d)
		return -errno;
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "%s/status", e->d_name);
		const int fd = openat(dirfd(d), path, O_RDONLY | O_CLOEXEC);
		const ssize_t n = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

		if (fd >= 0)
			close(fd);
		if (n <= 0)
			continue;
		text[n] = '\0';
		mark_line(text, "\nUid:", used);
		mark_line(text, "\nGid:", used);
	}
	closedir(d);
	return 0;
}

int identity_take(struct identity *ret)
{
	bool used[IDENTITY_RANGES] = { 0 };

	*ret = (struct identity){ .lock = -1, .gid = getgid() };
	for (int i = 0; i < DEPLOY_TOOLS; i++)
		ret->uid[i] = getuid();
	if (geteuid() != 0)
		return 0;
	ret->lock = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (ret->lock < 0)
		return -errno;
	int r = mark_used(used);

	for (unsigned k = 0; !r && k < IDENTITY_RANGES; k++) {
		/* One byte a range; the lock goes with its descriptor. */
		struct flock one = {
			.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = k, .l_len = 1
		};

		if (used[k] || fcntl(ret->lock, F_OFD_SETLK, &one) < 0)
			continue;
		ret->separate = true;
		ret->gid = IDENTITY_BASE + k * IDENTITY_STEP;
		for (int i = 0; i < DEPLOY_TOOLS; i++)
			ret->uid[i] = ret->gid + 1 + (uid_t)i;
		return 0;
	}
	identity_release(ret);
	return r ? r : -EBUSY;
}

void identity_release(struct identity *i)
{
	if (i->lock >= 0)
		close(i->lock);
	i->lock = -1;
}
