/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/rights/identity.h"

#include <cap-ng.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/files/smallfile.h"
#include "common/base/system/clock.h"

#define LOCK_PATH "/run/profpipe.lock"
/* The first ids of a range: one for the group and one for each tool's user. */
#define TOOL_IDS (DEPLOY_USERS + 1)
#define SLOW_NS 1000000u
#define SLOW_MAX_NS 1000000000ull

static bool in_range(unsigned long id, unsigned k)
{
	const unsigned long first = IDENTITY_BASE + k * IDENTITY_STEP;

	return id >= first && id < first + IDENTITY_STEP;
}

/* Marks the ranges of all ids on one line of /proc/PID/status. Uid and Gid have the real,
 * effective, saved and file system id; Groups has all groups. */
static void mark_line(const char *text, const char *word, bool used[static IDENTITY_RANGES])
{
	const char *at = strstr(text, word);

	if (!at)
		return;
	at += strlen(word);
	const size_t len = strcspn(at, "\n");

	for (const char *line = at; (size_t)(at - line) < len;) {
		char *end;
		const unsigned long id = strtoul(at, &end, 10);

		if (end == at || (size_t)(end - line) > len)
			break;
		for (unsigned k = 0; k < IDENTITY_RANGES; k++)
			used[k] |= in_range(id, k);
		at = end;
	}
}

/* Marks the ranges that running processes use: other software, or a tool that outlived its
 * launcher. The owner of /proc/PID does not tell, since it is root for undumpable processes. The
 * kernel takes some ten milliseconds for the status of a process with 65,536 groups, which a
 * container's root may have: after SLOW_MAX_NS of these, no more are read. */
static int mark_processes(bool used[static IDENTITY_RANGES])
{
	DIR *d = opendir("/proc");
	char path[300], text[2048];
	uint64_t slow_ns = 0;

	if (!d)
		return -errno;
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9' || slow_ns > SLOW_MAX_NS)
			continue;
		const uint64_t since_ns = clock_mono_ns();

		snprintf(path, sizeof(path), "%s/status", e->d_name);
		if (smallfile_read(dirfd(d), path, text, sizeof(text)) <= 0)
			continue;
		mark_line(text, "\nUid:", used);
		mark_line(text, "\nGid:", used);
		mark_line(text, "\nGroups:", used);
		const uint64_t took_ns = clock_mono_ns() - since_ns;

		slow_ns += took_ns > SLOW_NS ? took_ns : 0;
	}
	closedir(d);
	return 0;
}

/* Marks the ranges in lines "name:first:count", which users may map into their user namespaces.
 * These users could otherwise run programs under the ids of our tools. */
static void mark_delegated(const char *path, bool used[static IDENTITY_RANGES])
{
	FILE *f = fopen(path, "re");
	char line[512];
	unsigned long long first, count;

	while (f && fgets(line, sizeof(line), f)) {
		const char *colon = strchr(line, ':');

		if (!colon || sscanf(colon, ":%llu:%llu", &first, &count) != 2)
			continue;
		for (unsigned k = 0; k < IDENTITY_RANGES; k++) {
			const unsigned long long ours = IDENTITY_BASE + k * IDENTITY_STEP;

			used[k] |= first < ours + IDENTITY_STEP &&
				   (first >= ours || ours - first < count);
		}
	}
	if (f)
		fclose(f);
}

/* Whether one of the ids of the range has a name in a user database of the host. */
static bool is_named(unsigned k)
{
	for (unsigned i = 0; i < TOOL_IDS; i++) {
		const unsigned id = IDENTITY_BASE + k * IDENTITY_STEP + i;

		if (getpwuid(id) || getgrgid(id))
			return true;
	}
	return false;
}

/* Opens the lock file, which must belong to root, and only in /run. In a folder that all users may
 * write to, any user could create the file and so prevent root from sampling. */
static int open_lock(void)
{
	struct stat st;
	const int fd = open(
		LOCK_PATH, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);

	if (fd < 0)
		return errno == EISDIR || errno == ENXIO ? -ELOOP : -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    st.st_nlink == 1)
		return fd;
	close(fd);
	return -ELOOP;
}

/* uid 0 alone does not suffice to become other users and to give them their folders. */
static bool may_change(void)
{
	return capng_get_caps_process() == 0 &&
	       capng_have_capability(CAPNG_EFFECTIVE, CAP_SETUID) &&
	       capng_have_capability(CAPNG_EFFECTIVE, CAP_SETGID) &&
	       capng_have_capability(CAPNG_EFFECTIVE, CAP_CHOWN);
}

int identity_take(struct identity *ret)
{
	bool used[IDENTITY_RANGES] = { 0 };

	*ret = (struct identity){ .lock = -1, .gid = getgid() };
	for (int i = 0; i < DEPLOY_USERS; i++)
		ret->uid[i] = getuid();
	if (geteuid() != 0)
		return 0;
	if (!may_change())
		return -ENOTSUP;
	ret->lock = open_lock();
	if (ret->lock < 0)
		return ret->lock;
	int r = 0;

	mark_delegated("/etc/subuid", used);
	mark_delegated("/etc/subgid", used);
	for (unsigned k = 0; !r && k < IDENTITY_RANGES; k++) {
		/* Each range has one byte of the file. The lock ends when the descriptor is
		 * closed. */
		struct flock one = {
			.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = k, .l_len = 1
		};

		if (used[k] || fcntl(ret->lock, F_OFD_SETLK, &one) < 0)
			continue;
		/* Check again under the lock: processes may have started since. */
		r = mark_processes(used);
		if (r || used[k] || is_named(k)) {
			one.l_type = F_UNLCK;
			fcntl(ret->lock, F_OFD_SETLK, &one);
			continue;
		}
		ret->separate = true;
		ret->gid = IDENTITY_BASE + k * IDENTITY_STEP;
		for (int i = 0; i < DEPLOY_USERS; i++)
			ret->uid[i] = ret->gid + 1 + (uid_t)i;
		return 0;
	}
	identity_release(ret);
	return r ? r : -EBUSY;
}

const char *identity_reason(int r)
{
	static char text[128];

	switch (r) {
	case -EBUSY:
		return "all 64 ranges of ids from 2000000000 on are in use by runs, processes, "
		       "users or /etc/subuid";
	case -ENOTSUP:
		return "root lacks CAP_SETUID, CAP_SETGID or CAP_CHOWN here, "
		       "which the tools' own users need";
	case -ELOOP:
		return LOCK_PATH " does not belong to root alone";
	default:
		snprintf(text, sizeof(text), LOCK_PATH " cannot be made: %s", strerror(-r));
		return text;
	}
}

const char *identity_remedy(int r)
{
	switch (r) {
	case -EBUSY:
		return "end other runs, or free a range of 16";
	case -ENOTSUP:
		return "grant them";
	case -ELOOP:
		return "rm -r " LOCK_PATH;
	default:
		return "make /run a folder that root can write to, "
		       "or mount -t tmpfs -o mode=755 tmpfs /run";
	}
}

void identity_release(struct identity *i)
{
	if (i->lock >= 0)
		close(i->lock);
	i->lock = -1;
}
