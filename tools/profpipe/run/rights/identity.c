/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/rights/identity.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/files/smallfile.h"
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"

#define LOCK_PATH "/run/profpipe.lock"
/* The first ids of a range: one for the group and one for each tool's user. */
#define TOOL_IDS (DEPLOY_USERS + 1)
#define SLOW_NS 1000000u
#define SLOW_MAX_NS 1000000000ull
#define RANGES_AT_ONCE 64u /* ranges that are looked at together */
#define TRIES 8		   /* how many times, before no range counts as free */
#define JUMPS 64	   /* locked ranges that are skipped in the search for another one */

/* Adjacent ranges, and whether somebody uses them. */
struct ranges {
	unsigned first;
	bool used[RANGES_AT_ONCE];
};

static unsigned long first_id(unsigned k)
{
	return IDENTITY_BASE + (unsigned long)k * IDENTITY_STEP;
}

static void mark_id(struct ranges *r, unsigned long id)
{
	const unsigned long from = first_id(r->first);

	if (id >= from && (id - from) / IDENTITY_STEP < RANGES_AT_ONCE)
		r->used[(id - from) / IDENTITY_STEP] = true;
}

/* Marks the ranges of all ids on one line of /proc/PID/status. Uid and Gid have the real,
 * effective, saved and file system id; Groups has all groups. */
static void mark_line(const char *text, const char *word, struct ranges *r)
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
		mark_id(r, id);
		at = end;
	}
}

/* A visit to all processes. */
struct visit {
	struct ranges *ranges;
	int proc;
	uint64_t slow_ns; /* time that the processes with a slow status took */
};

static void mark_process(void *ctx, uint32_t pid)
{
	const uint64_t since_ns = clock_mono_ns();
	struct visit *v = ctx;
	char path[32], text[2048];

	if (v->slow_ns > SLOW_MAX_NS)
		return;
	snprintf(path, sizeof(path), "%" PRIu32 "/status", pid);
	if (smallfile_read(v->proc, path, text, sizeof(text)) <= 0)
		return;
	mark_line(text, "\nUid:", v->ranges);
	mark_line(text, "\nGid:", v->ranges);
	mark_line(text, "\nGroups:", v->ranges);
	const uint64_t took_ns = clock_mono_ns() - since_ns;

	v->slow_ns += took_ns > SLOW_NS ? took_ns : 0;
}

/* Marks the ranges that running processes use: other software, or a tool that outlived its
 * launcher. The owner of /proc/PID does not tell, since it is root for undumpable processes. The
 * kernel takes some ten milliseconds for the status of a process with 65,536 groups, which a
 * container's root may have: after SLOW_MAX_NS of these, no more are read. */
static int mark_processes(struct ranges *r)
{
	struct visit v = { .ranges = r, .proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC) };

	if (v.proc < 0)
		return v.proc;
	const int result = procfs_each(v.proc, mark_process, &v);

	close(v.proc);
	return result;
}

/* Marks the ranges in lines "name:first:count", which users may map into their user namespaces.
 * These users could otherwise run programs under the ids of our tools. */
static void mark_delegated(const char *path, struct ranges *r)
{
	FILE *f = fopen(path, "re");
	char line[512];
	unsigned long long first, count;

	while (f && fgets(line, sizeof(line), f)) {
		const char *colon = strchr(line, ':');

		if (!colon || sscanf(colon, ":%llu:%llu", &first, &count) != 2)
			continue;
		for (unsigned k = 0; k < RANGES_AT_ONCE; k++) {
			const unsigned long long ours = first_id(r->first + k);

			r->used[k] |= first < ours + IDENTITY_STEP &&
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
		const unsigned id = (unsigned)first_id(k) + i;

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

/* Each range has one byte of the file. The lock ends when the descriptor is closed. */
static struct flock lock_of(unsigned k, short type)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = k, .l_len = 1 };
}

/* Returns an unlocked range, by chance if few are locked. */
static int choose(int lock, unsigned *ret)
{
	uint32_t k;

	if (getrandom(&k, sizeof(k), 0) != (ssize_t)sizeof(k))
		return -EIO;
	for (int i = 0; i < JUMPS; i++) {
		k = k % IDENTITY_RANGES;
		struct flock held = lock_of(k, F_WRLCK);

		if (fcntl(lock, F_OFD_GETLK, &held) < 0 || held.l_type == F_UNLCK)
			break;
		k = held.l_len ? (uint32_t)(held.l_start + held.l_len) : 0;
	}
	*ret = k;
	return 0;
}

/* Takes one of some adjacent ranges. Returns 0, -EBUSY or -errno. */
static int take_one(struct ranges *of, struct identity *ret)
{
	mark_delegated("/etc/subuid", of);
	mark_delegated("/etc/subgid", of);
	for (unsigned i = 0; i < RANGES_AT_ONCE && of->first + i < IDENTITY_RANGES; i++) {
		const unsigned k = of->first + i;
		struct flock one = lock_of(k, F_WRLCK);

		if (of->used[i] || fcntl(ret->lock, F_OFD_SETLK, &one) < 0)
			continue;
		/* Check again under the lock: processes may have started since. */
		const int r = mark_processes(of);

		if (!r && !of->used[i] && !is_named(k)) {
			ret->separate = true;
			ret->gid = (gid_t)first_id(k);
			for (int t = 0; t < DEPLOY_USERS; t++)
				ret->uid[t] = ret->gid + 1 + (uid_t)t;
			return 0;
		}
		one = lock_of(k, F_UNLCK);
		fcntl(ret->lock, F_OFD_SETLK, &one);
		if (r)
			return r;
	}
	return -EBUSY;
}

int identity_take(struct identity *ret)
{
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
	int r = -EBUSY;

	for (int i = 0; r == -EBUSY && i < TRIES; i++) {
		struct ranges some = { 0 };

		r = choose(ret->lock, &some.first);
		if (!r)
			r = take_one(&some, ret);
	}
	if (r)
		identity_release(ret);
	return r;
}

const char *identity_reason(int r)
{
	static char text[128];

	switch (r) {
	case -EBUSY:
		return "no range of 16 ids from 2000000000 on was found that is not in use by "
		       "runs, processes, users or /etc/subuid";
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
