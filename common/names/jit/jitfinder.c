/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/jit/jitfinder.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>
#include "bpf/sample.h"
#include "common/base/files/smallfile.h"
#include "common/base/system/clock.h"

#define WRITTEN_SLACK_NS 2000000000u /* some file systems round times to two seconds */
#define MAPS_MAX 131072		     /* lines */

/* The allowed owners of the file, and its minimum mtime (CLOCK_REALTIME). */
struct owner {
	uint32_t uids[2];
	uint64_t since_ns;
	uint32_t pid; /* innermost pid */
};

static bool is_owned(const struct stat *st, const struct owner *o)
{
	bool own = st->st_uid == o->uids[0] || st->st_uid == o->uids[1];
	/* Root may have written the file for the user. A hard link to another file of root is
	 * refused. */
	bool roots = st->st_uid == 0 && st->st_nlink == 1 && st->st_mode & S_IROTH;

	return S_ISREG(st->st_mode) && (own || roots) &&
	       clock_timespec_ns(st->st_mtim) + WRITTEN_SLACK_NS >= o->since_ns;
}

static int open_owned(int root, const char *path, const struct owner *o)
{
	struct open_how how = { .flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	struct statfs fs;
	struct stat st;
	int fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !is_owned(&st, o) || fstatfs(fd, &fs) < 0 ||
	    (uint32_t)fs.f_type == FUSE_SUPER_MAGIC) {
		close(fd);
		return -EACCES;
	}
	return fd;
}

static bool is_same(int dir, uint64_t start_ns)
{
	char text[1024];
	uint64_t ticks;
	const char *at;

	if (smallfile_read(dir, "stat", text, sizeof(text)) < 0)
		return false;
	/* The name may contain anything, but ends at the last parenthesis. The start time is the
	 * 20th field after it. */
	at = strrchr(text, ')');
	for (int i = 0; at && i < 20; i++)
		at = strchr(at + 1, ' ');
	if (!at || sscanf(at, " %" SCNu64, &ticks) != 1)
		return false;
	return ticks * SAMPLE_START_TICK_NS ==
	       start_ns / SAMPLE_START_TICK_NS * SAMPLE_START_TICK_NS;
}

static int read_owner(int dir, struct owner *o)
{
	char text[8192], *at, *end;
	const ssize_t n = smallfile_read(dir, "status", text, sizeof(text));

	if (n < 0)
		return (int)n;
	at = strstr(text, "\nUid:\t");
	if (!at || sscanf(at + 6, "%" SCNu32 " %" SCNu32, &o->uids[0], &o->uids[1]) != 2)
		return -EINVAL;
	at = strstr(text, "\nNSpid:");
	if (!at)
		return 0;
	for (at += 7; *at == '\t'; at = end) {
		o->pid = (uint32_t)strtoul(at + 1, &end, 10);
		if (end == at + 1)
			return -EINVAL;
	}
	return 0;
}

bool jitfinder_dump_path(char *line, char **ret_path)
{
	char *path = strchr(line, '/'), *base;
	size_t len;

	if (!path)
		return false;
	path[strcspn(path, "\n")] = '\0';
	base = strrchr(path, '/') + 1;
	if (strncmp(base, "jit-", 4) != 0)
		return false;
	len = strspn(base + 4, "0123456789");
	if (len == 0 || strcmp(base + 4 + len, ".dump") != 0)
		return false;
	*ret_path = path;
	return true;
}

static int open_dump(int dir, int root, const struct owner *o)
{
	int fd = openat(dir, "maps", O_RDONLY | O_CLOEXEC), r = -ENOENT;
	FILE *f = fd < 0 ? NULL : fdopen(fd, "r");
	char *line = NULL, *path;
	size_t cap = 0;

	if (!f) {
		if (fd >= 0)
			close(fd);
		return -EACCES;
	}
	for (int i = 0; i < MAPS_MAX && r == -ENOENT && getline(&line, &cap, f) > 0; i++)
		if (jitfinder_dump_path(line, &path))
			r = open_owned(root, path, o);
	free(line);
	fclose(f);
	return r;
}

/* Converts the start of a process to wall clock time. */
static uint64_t began_ns(uint64_t start_ns)
{
	uint64_t age_ns = clock_boot_ns() - start_ns;

	return clock_wall_ns() - age_ns;
}

static int open_map(int root, const struct owner *o)
{
	char path[40];

	snprintf(path, sizeof(path), "/tmp/perf-%" PRIu32 ".map", o->pid);
	return open_owned(root, path, o);
}

static int open_of_gone(enum msg_jit_kind kind, const struct msg_process *p, struct owner *o)
{
	int root, r;

	if (kind != MSG_JIT_PERF_MAP)
		return -ENOENT;
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return -errno;
	o->uids[0] = o->uids[1] = (uint32_t)p->uid;
	r = open_map(root, o);
	close(root);
	return r;
}

int jitfinder_open(enum msg_jit_kind kind, const struct msg_process *p, bool same_boot)
{
	struct owner o = { .pid = (uint32_t)p->pid, .since_ns = began_ns(p->start_ns) };
	int dir, root = -1, r = -ESRCH;
	char path[32];

	if (!same_boot)
		return -ESRCH;
	snprintf(path, sizeof(path), "/proc/%" PRIu32, o.pid);
	dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir >= 0 && is_same(dir, p->start_ns)) {
		r = read_owner(dir, &o);
		if (r == 0) {
			root = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
			r = root < 0 ? -errno : 0;
		}
		if (r == 0)
			r = kind == MSG_JIT_DUMP ? open_dump(dir, root, &o) : open_map(root, &o);
	}
	if (root >= 0)
		close(root);
	if (dir >= 0)
		close(dir);
	return root < 0 && r < 0 ? open_of_gone(kind, p, &o) : r;
}
