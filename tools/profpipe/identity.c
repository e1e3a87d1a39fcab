/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tools/profpipe/identity.h"

/* Whether a process of a uid in [first, first + IDENTITY_STEP) lives: a range that somebody else's software uses is not ours. */
static bool in_use(uid_t first)
{
	DIR *d = opendir("/proc");
	struct stat st;
	bool used = false;

	for (struct dirent *e = d ? readdir(d) : NULL; e && !used; e = readdir(d)) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9' || fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		used = st.st_uid >= first && st.st_uid < first + IDENTITY_STEP;
	}
	if (d)
		closedir(d);
	return used;
}

int identity_take(struct identity *ret)
{
	char path[64];

	ret->lock = -1;
	ret->gid = getgid();
	for (int i = 0; i < DEPLOY_TOOLS; i++)
		ret->uid[i] = getuid();
	if (geteuid() != 0)
		return 0;
	for (unsigned k = 0; k < IDENTITY_RANGES; k++) {
		uid_t first = IDENTITY_BASE + k * IDENTITY_STEP;

		snprintf(path, sizeof(path), "/run/profpipe-ids.%u", k);
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0)
			return -errno;
		if (flock(fd, LOCK_EX | LOCK_NB) < 0 || in_use(first)) {
			close(fd);
			continue;
		}
		ret->lock = fd;
		ret->gid = first;
		for (int i = 0; i < DEPLOY_TOOLS; i++)
			ret->uid[i] = first + 1 + (uid_t)i;
		return 0;
	}
	return -EBUSY;
}

void identity_release(struct identity *i)
{
	if (i->lock >= 0)
		close(i->lock);
	i->lock = -1;
}
