/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/system/procfs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "common/base/text/hex.h"

/* include/linux/sched.h; shown in stat's flags */
#define PF_EXITING 0x00000004u
#define PF_KTHREAD 0x00200000u
#define STAT_MAX 2048u
#define STATUS_MAX 4096u
#define ROLLUP_MAX 4096u
#define STATM_MAX 256u
#define CHILDREN_MAX 4096u

/* The kernel appends it to the paths of files and cgroups that were removed. */
static const struct str deleted = STR_LIT(" (deleted)");

/* Takes a number from the beginning of s: at least one digit, at most 64 bits. */
static bool take_number(struct str *s, unsigned base, uint64_t *ret)
{
	uint64_t n = 0;
	uint32_t i = 0;

	for (; i < s->len; i++) {
		const int digit = hex_lower(s->data[i]);

		if (digit < 0 || (unsigned)digit >= base)
			break;
		if (__builtin_mul_overflow(n, (uint64_t)base, &n) ||
		    __builtin_add_overflow(n, (uint64_t)digit, &n))
			return false;
	}
	if (!i)
		return false;
	s->data += i;
	s->len -= i;
	*ret = n;
	return true;
}

static void skip_blanks(struct str *s)
{
	while (s->len && *s->data == ' ')
		*s = (struct str){ .data = s->data + 1, .len = s->len - 1 };
}

static bool take_char(struct str *s, char c)
{
	if (!s->len || *s->data != c)
		return false;
	s->data++;
	s->len--;
	return true;
}

/* In paths, the kernel escapes only line feeds, as \012. A path that contains this text literally
 * looks the same. */
static uint32_t unescape(char *s, uint32_t len)
{
	uint32_t to = 0;

	for (uint32_t i = 0; i < len; i++) {
		if (s[i] == '\\' && len - i >= 4 && memcmp(s + i, "\\012", 4) == 0) {
			s[to++] = '\n';
			i += 3;
		} else {
			s[to++] = s[i];
		}
	}
	return to;
}

enum procfs_name procfs_name_kind(struct str *name, bool *ret_deleted)
{
	*ret_deleted = false;
	if (name->len && name->data[0] == '/' && !str_starts(*name, "//")) {
		if (str_ends_with(*name, deleted) && name->len > deleted.len) {
			name->len -= deleted.len;
			*ret_deleted = true;
		}
		return PROCFS_FILE;
	}
	if (str_eq(*name, STR_LIT("[vdso]")))
		return PROCFS_VDSO;
	if (str_eq(*name, STR_LIT("[vsyscall]")))
		return PROCFS_VSYSCALL;
	if (str_eq(*name, STR_LIT("[uprobes]")))
		return PROCFS_UPROBES;
	return PROCFS_ANON;
}

int procfs_parse_mapping(char *line, size_t len, struct procfs_mapping *ret)
{
	struct procfs_mapping m = { 0 };
	struct str s = { .data = line, .len = (uint32_t)len };
	uint64_t dev_major, dev_minor;

	if (len > PROCFS_LINE_MAX)
		return PROCFS_MALFORMED;
	if (!take_number(&s, 16, &m.start) || !take_char(&s, '-') || !take_number(&s, 16, &m.end) ||
	    !take_char(&s, ' ') || s.len < 5)
		return PROCFS_MALFORMED;
	bool executable = s.data[2] == 'x';
	m.readable = s.data[0] == 'r';
	m.writable = s.data[1] == 'w';
	if (s.data[4] != ' ' || m.start >= m.end)
		return PROCFS_MALFORMED;
	s.data += 5;
	s.len -= 5;
	if (!take_number(&s, 16, &m.offset) || !take_char(&s, ' ') ||
	    !take_number(&s, 16, &dev_major) || !take_char(&s, ':') ||
	    !take_number(&s, 16, &dev_minor) || !take_char(&s, ' ') ||
	    !take_number(&s, 10, &m.inode))
		return PROCFS_MALFORMED;
	if (dev_major > UINT32_MAX || dev_minor > UINT32_MAX)
		return PROCFS_MALFORMED;
	m.dev_major = (uint32_t)dev_major;
	m.dev_minor = (uint32_t)dev_minor;
	while (take_char(&s, ' '))
		;
	if (s.len) {
		char *name = line + (s.data - line);

		s.len = unescape(name, s.len);
	}
	m.name = s;
	m.kind = procfs_name_kind(&m.name, &m.deleted);
	/* A path without an inode is only a name that a process gave to anonymous memory. */
	if (m.kind == PROCFS_FILE && !m.inode && !m.dev_major && !m.dev_minor)
		m.kind = PROCFS_ANON;
	*ret = m;
	return executable ? 0 : PROCFS_SKIP;
}

int procfs_parse_stat(struct span text, struct procfs_stat *ret)
{
	struct procfs_stat st = { 0 };
	struct str s = { .data = (const char *)text.data, .len = (uint32_t)text.len };
	uint64_t n, ticks = 0, field[23] = { 0 };

	if (text.len > STAT_MAX)
		return PROCFS_MALFORMED;
	if (!take_number(&s, 10, &n) || n > UINT32_MAX || !take_char(&s, ' ') ||
	    !take_char(&s, '('))
		return PROCFS_MALFORMED;
	st.pid = (uint32_t)n;
	/* The name may contain anything, so the last parenthesis ends it. */
	const char *end = s.len ? memrchr(s.data, ')', s.len) : NULL;
	if (!end)
		return PROCFS_MALFORMED;
	size_t len = (size_t)(end - s.data);
	for (size_t i = 0; i < len && st.comm_len < sizeof(st.comm); i++) {
		char c = s.data[i];

		/* Here the kernel escapes only line feeds and backslashes. */
		if (c == '\\' && i + 1 < len && (s.data[i + 1] == 'n' || s.data[i + 1] == '\\')) {
			i++;
			c = s.data[i] == 'n' ? '\n' : '\\';
		}
		st.comm[st.comm_len++] = c;
	}
	s.len -= (uint32_t)len + 1;
	s.data = end + 1;
	if (s.len < 3 || s.data[0] != ' ' || s.data[2] != ' ')
		return PROCFS_MALFORMED;
	st.state = s.data[1];
	s.data += 2;
	s.len -= 2;
	for (unsigned i = 4; i <= 22; i++) {
		if (!take_char(&s, ' '))
			return PROCFS_MALFORMED;
		(void)take_char(&s, '-');
		if (!take_number(&s, 10, &field[i]))
			return PROCFS_MALFORMED;
	}
	if (field[4] > UINT32_MAX || field[20] > UINT32_MAX ||
	    __builtin_mul_overflow(field[22], (uint64_t)PROCFS_TICK_NS, &st.start_ns))
		return PROCFS_MALFORMED;
	for (unsigned i = 14; i <= 17; i++) {
		if (__builtin_add_overflow(ticks, field[i], &ticks))
			return PROCFS_MALFORMED;
	}
	if (__builtin_mul_overflow(ticks, (uint64_t)PROCFS_TICK_NS, &st.cpu_ns))
		return PROCFS_MALFORMED;
	st.parent_pid = (uint32_t)field[4];
	st.kernel = field[9] & PF_KTHREAD;
	st.exiting = field[9] & PF_EXITING;
	st.threads = (uint32_t)field[20];
	*ret = st;
	return 0;
}

/* Finds the value in a line of status: the text after the name and a tab. */
static bool status_value(struct span text, const char *name, struct str *ret)
{
	const uint8_t *p = text.data;
	size_t left = text.len;

	/* The first line is the comm. The kernel escapes its line feeds, so a comm cannot forge a
	 * line. */
	while (left) {
		const uint8_t *nl = memchr(p, '\n', left);
		struct str s = { .data = (const char *)p,
				 .len = (uint32_t)(nl ? (size_t)(nl - p) : left) };

		if (str_starts(s, name)) {
			s.data += strlen(name);
			s.len -= (uint32_t)strlen(name);
			*ret = s;
			return true;
		}
		if (!nl)
			break;
		left -= (size_t)(nl + 1 - p);
		p = nl + 1;
	}
	return false;
}

int procfs_parse_status_uid(struct span text, uint32_t *ret_uid)
{
	uint64_t uid;
	struct str s;

	if (!status_value(text, "Uid:\t", &s) || !take_number(&s, 10, &uid) || uid > UINT32_MAX ||
	    !take_char(&s, '\t'))
		return PROCFS_MALFORMED;
	*ret_uid = (uint32_t)uid;
	return 0;
}

int procfs_parse_status_ids(struct span text, struct procfs_ids *ret)
{
	uint64_t uid, effective, pid = 0;
	struct str s;

	if (!status_value(text, "Uid:\t", &s) || !take_number(&s, 10, &uid) || uid > UINT32_MAX ||
	    !take_char(&s, '\t') || !take_number(&s, 10, &effective) || effective > UINT32_MAX)
		return PROCFS_MALFORMED;
	/* One number for each pid namespace, the innermost last. A kernel without pid namespaces
	 * lacks this line. */
	if (!status_value(text, "NSpid:\t", &s) && !status_value(text, "Pid:\t", &s))
		return PROCFS_MALFORMED;
	do {
		if (!take_number(&s, 10, &pid) || !pid || pid > INT32_MAX)
			return PROCFS_MALFORMED;
	} while (take_char(&s, '\t'));
	*ret = (struct procfs_ids){ .uid = (uint32_t)uid,
				    .effective_uid = (uint32_t)effective,
				    .inner_pid = (uint32_t)pid };
	return 0;
}

ssize_t procfs_stream_maps(struct procfs_source from, size_t max,
			   void (*fn)(void *ctx, const struct procfs_mapping *m), void *ctx)
{
	char buffer[PROCFS_LINE_MAX + 4096];
	size_t have = 0;
	ssize_t found = 0;
	bool skipping = false; /* inside a line longer than any valid one */

	for (;;) {
		ssize_t n = from.read(from.ctx, buffer + have, sizeof(buffer) - have);

		if (n < 0)
			return n;
		if (n == 0)
			return found;
		have += (size_t)n;
		size_t at = 0;
		for (;;) {
			char *nl = memchr(buffer + at, '\n', have - at);

			if (!nl)
				break;
			size_t len = (size_t)(nl - (buffer + at));
			struct procfs_mapping m;

			int r = skipping ? PROCFS_MALFORMED
					 : procfs_parse_mapping(buffer + at, len, &m);
			if (r == 0 || (from.all && r == PROCFS_SKIP)) {
				if ((size_t)found >= max)
					return found;
				fn(ctx, &m);
				found++;
			}
			skipping = false;
			at += len + 1;
		}
		memmove(buffer, buffer + at, have - at);
		have -= at;
		if (have > PROCFS_LINE_MAX) {
			skipping = true;
			have = 0;
		}
	}
}

static int open_entry(int proc, uint32_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "%u/%s", pid, name);
	int fd = openat(proc, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return fd < 0 ? -errno : fd;
}

static ssize_t read_fd(void *ctx, void *to, size_t n)
{
	ssize_t r;

	do
		r = read(*(int *)ctx, to, n);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

static ssize_t read_maps(int proc, uint32_t pid, bool all, size_t max,
			 void (*fn)(void *ctx, const struct procfs_mapping *m), void *ctx)
{
	int fd = open_entry(proc, pid, "maps");

	if (fd < 0)
		return fd;
	ssize_t r = procfs_stream_maps(
		(struct procfs_source){ .read = read_fd, .ctx = &fd, .all = all }, max, fn, ctx);
	close(fd);
	return r;
}

ssize_t procfs_read_maps(int proc, uint32_t pid, size_t max,
			 void (*fn)(void *ctx, const struct procfs_mapping *m), void *ctx)
{
	return read_maps(proc, pid, false, max, fn, ctx);
}

ssize_t procfs_read_all_maps(int proc, uint32_t pid, size_t max,
			     void (*fn)(void *ctx, const struct procfs_mapping *m), void *ctx)
{
	return read_maps(proc, pid, true, max, fn, ctx);
}

/* A read that returns less has reached the end of the file: proc returns as much as fits, and the
 * files read here have short lines or are returned at once. */
#define SMALL_END 1024

/* Reads at most the first `size` bytes. Returns their number, or -errno. */
static ssize_t read_from_start(int fd, uint8_t *to, size_t size)
{
	size_t have = 0;
	ssize_t n = 0;

	while (have < size) {
		do
			n = pread(fd, to + have, size - have, (off_t)have);
		while (n < 0 && errno == EINTR);
		if (n <= 0)
			break;
		have += (size_t)n;
		if (n < SMALL_END)
			break;
	}
	return n < 0 ? -errno : (ssize_t)have;
}

/* Reads at most the first `size` bytes of a file of proc. Returns their number, or -errno. */
static ssize_t read_small(int proc, uint32_t pid, const char *name, uint8_t *to, size_t size)
{
	const int fd = open_entry(proc, pid, name);

	if (fd < 0)
		return fd;
	const ssize_t n = read_from_start(fd, to, size);

	close(fd);
	return n;
}

static int read_stat(int proc, uint32_t pid, const char *name, struct procfs_stat *ret)
{
	uint8_t text[STAT_MAX];
	ssize_t n = read_small(proc, pid, name, text, sizeof(text));

	return n < 0 ? (int)n
		     : procfs_parse_stat((struct span){ .data = text, .len = (size_t)n }, ret);
}

int procfs_read_stat(int proc, uint32_t pid, struct procfs_stat *ret)
{
	return read_stat(proc, pid, "stat", ret);
}

int procfs_read_thread_stat(int proc, uint32_t pid, struct procfs_stat *ret)
{
	char name[32];

	snprintf(name, sizeof(name), "task/%u/stat", pid);
	return read_stat(proc, pid, name, ret);
}

int procfs_read_uid(int proc, uint32_t pid, uint32_t *ret_uid)
{
	uint8_t text[STATUS_MAX];
	ssize_t n = read_small(proc, pid, "status", text, sizeof(text));

	return n < 0 ? (int)n
		     : procfs_parse_status_uid((struct span){ .data = text, .len = (size_t)n },
					       ret_uid);
}

int procfs_read_ids(int proc, uint32_t pid, struct procfs_ids *ret)
{
	uint8_t text[4 * STATUS_MAX]; /* NSpid follows the list of groups */
	ssize_t n = read_small(proc, pid, "status", text, sizeof(text));

	return n < 0 ? (int)n
		     : procfs_parse_status_ids((struct span){ .data = text, .len = (size_t)n },
					       ret);
}

ssize_t procfs_read_link(int proc, uint32_t pid, const char *link, char ret[static PATH_MAX])
{
	char path[64];

	snprintf(path, sizeof(path), "%u/%s", pid, link);
	const ssize_t n = readlinkat(proc, path, ret, PATH_MAX);

	return n < 0 ? -errno : n;
}

/* How useful a line of a cgroup file is; 0: not at all. */
static int rank_cgroup(struct str controllers, struct str path)
{
	if (!path.len)
		return 0;
	if (path.len == 1)
		return controllers.len ? 1 : 2;
	return !controllers.len ? 5 : str_eq(controllers, STR_LIT("name=systemd")) ? 4 : 3;
}

/* Source: cgroups(7); proc_cgroup_show of kernel/cgroup/cgroup.c. No name has a line feed. */
int procfs_parse_cgroup(struct str text, struct str *ret_path, bool *ret_unified)
{
	struct str best = { 0 };
	bool unified = false;
	int rank = 0;

	while (text.len) {
		const char *end = memchr(text.data, '\n', text.len);
		const uint32_t len = end ? (uint32_t)(end - text.data) : text.len;
		const char *first = memchr(text.data, ':', len);
		const char *second = first ? memchr(first + 1, ':',
						    len - (size_t)(first + 1 - text.data))
					   : NULL;

		if (second) {
			const struct str controllers = { .data = first + 1,
							 .len = (uint32_t)(second - first - 1) };
			struct str path = { .data = second + 1,
					    .len = (uint32_t)(text.data + len - second - 1) };

			if (str_ends_with(path, deleted) && path.len > deleted.len)
				path.len -= deleted.len;
			if (rank_cgroup(controllers, path) > rank) {
				rank = rank_cgroup(controllers, path);
				best = path;
				unified = !controllers.len;
			}
		}
		text.data += len + (end != NULL);
		text.len -= len + (end != NULL);
	}
	if (!rank)
		return PROCFS_SKIP;
	*ret_path = best;
	*ret_unified = unified;
	return 0;
}

int procfs_read_cgroup(int proc, uint32_t pid, char text[static PROCFS_CGROUP_MAX],
		       struct str *ret_path, bool *ret_unified)
{
	const ssize_t n = read_small(proc, pid, "cgroup", (uint8_t *)text, PROCFS_CGROUP_MAX);

	return n < 0 ? (int)n
		     : procfs_parse_cgroup((struct str){ .data = text, .len = (uint32_t)n },
					   ret_path, ret_unified);
}

/* Source: show_smap of fs/proc/task_mmu.c. */
int procfs_read_pss(int proc, uint32_t pid, uint64_t *ret)
{
	static const char head[] = "\nPss:";
	uint8_t text[ROLLUP_MAX];
	ssize_t n = read_small(proc, pid, "smaps_rollup", text, sizeof(text));
	const uint8_t *at = n > 0 ? memmem(text, (size_t)n, head, strlen(head)) : NULL;
	uint64_t kib;

	if (n < 0)
		return (int)n;
	if (!at)
		return PROCFS_MALFORMED;
	at += strlen(head);
	struct str s = { .data = (const char *)at, .len = (uint32_t)(text + n - at) };
	skip_blanks(&s);
	if (!take_number(&s, 10, &kib) || kib > UINT64_MAX >> 10)
		return PROCFS_MALFORMED;
	*ret = kib << 10;
	return 0;
}

int procfs_open_statm(int proc, uint32_t pid)
{
	return open_entry(proc, pid, "statm");
}

int procfs_open_children(int proc, uint32_t pid)
{
	char name[40];

	snprintf(name, sizeof(name), "task/%u/children", pid);
	return open_entry(proc, pid, name);
}

/* Source: proc_pid_statm of fs/proc/array.c. */
int procfs_statm_resident(int statm, uint64_t *ret)
{
	uint8_t text[STATM_MAX];
	ssize_t n = read_from_start(statm, text, sizeof(text));
	struct str s = { .data = (const char *)text, .len = n > 0 ? (uint32_t)n : 0 };
	uint64_t size, pages, bytes;

	if (n < 0)
		return (int)n;
	if (!take_number(&s, 10, &size))
		return PROCFS_MALFORMED;
	skip_blanks(&s);
	if (!take_number(&s, 10, &pages) ||
	    __builtin_mul_overflow(pages, (uint64_t)getpagesize(), &bytes))
		return PROCFS_MALFORMED;
	*ret = bytes;
	return 0;
}

int procfs_children_each(int children, size_t max, void (*fn)(void *ctx, uint32_t pid), void *ctx)
{
	uint8_t text[CHILDREN_MAX];
	ssize_t n = read_from_start(children, text, sizeof(text));
	struct str s = { .data = (const char *)text, .len = n > 0 ? (uint32_t)n : 0 };
	uint64_t child;

	for (; max && take_number(&s, 10, &child) && child <= INT32_MAX; max--) {
		/* The buffer may have truncated the number at its end. */
		if (!s.len)
			break;
		skip_blanks(&s);
		fn(ctx, (uint32_t)child);
	}
	return n < 0 ? (int)n : 0;
}

int procfs_each_child(int proc, uint32_t pid, size_t max, void (*fn)(void *ctx, uint32_t pid),
		      void *ctx)
{
	const int fd = procfs_open_children(proc, pid);

	if (fd < 0)
		return fd;
	const int r = procfs_children_each(fd, max, fn, ctx);

	close(fd);
	return r;
}

int procfs_each(int proc, void (*fn)(void *ctx, uint32_t pid), void *ctx)
{
	int fd = openat(proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	DIR *d = fdopendir(fd);
	if (!d) {
		close(fd);
		return -ENOMEM;
	}
	for (;;) {
		struct dirent *e = readdir(d);

		if (!e)
			break;
		struct str s = str_from(e->d_name);
		uint64_t pid;

		if (take_number(&s, 10, &pid) && !s.len && pid && pid <= INT32_MAX)
			fn(ctx, (uint32_t)pid);
	}
	closedir(d);
	return 0;
}
