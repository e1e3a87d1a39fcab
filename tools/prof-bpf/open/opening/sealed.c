/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/open/opening/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/procfs.h"
#include "tools/prof-bpf/open/opening/opener_request.h"

#define MAPPINGS 65536 /* mappings of a process that are searched for those of one file */
#define PIECE 32768u   /* bytes read at once */

/* A copy that is being made. */
struct copy {
	int to;
	uint64_t max, bytes, size;
};

static int copy_begin(struct copy *c, uint64_t max)
{
	*c = (struct copy){ .to = memfd_create("profpipe", MFD_CLOEXEC | MFD_ALLOW_SEALING),
			    .max = max };
	return c->to < 0 ? -errno : 0;
}

static bool is_zero(const uint8_t *at, size_t n)
{
	return at[0] == 0 && memcmp(at, at + 1, n - 1) == 0;
}

/* Adds what was read at an offset. Only whole pages of zeros become holes. */
static int copy_add(struct copy *c, const uint8_t *from, size_t n, uint64_t offset)
{
	for (size_t at = 0; at < n;) {
		const size_t in_page = NUMBERS_PAGE - (offset + at) % NUMBERS_PAGE,
			     len = n - at < in_page ? n - at : in_page;

		if (!is_zero(from + at, len)) {
			c->bytes += NUMBERS_PAGE;
			if (c->bytes > c->max)
				return OPENER_NO_ROOM;
			if (pwrite(c->to, from + at, len, (off_t)(offset + at)) != (ssize_t)len)
				return errno ? -errno : -EIO;
		}
		at += len;
	}
	return 0;
}

static int reopen(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* Ends the copy: seals it, and opens it for its readers. r: an earlier error, or 0. */
static int copy_end(struct copy *c, int r, struct sealed *ret)
{
	struct sealed s = { .fd = -1, .probe = -1, .size = c->size };
	struct stat st;
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", c->to);
	/* The memfd's own descriptor is writable, so open the copy again read-only. */
	if (!r &&
	    (ftruncate(c->to, (off_t)c->size) || fstat(c->to, &st) ||
	     fcntl(c->to, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)))
		r = -errno;
	if (!r) {
		s.bytes = (uint64_t)st.st_blocks * 512;
		r = s.fd = reopen(path);
	}
	if (r >= 0 && s.fd >= 0)
		r = s.probe = reopen(path);
	if (r >= 0 && s.fd >= 0)
		r = flock(s.fd, LOCK_SH | LOCK_NB) ? -errno : 0;
	close(c->to);
	if (!r) {
		*ret = s;
		return 0;
	}
	if (s.fd >= 0)
		close(s.fd);
	if (s.probe >= 0)
		close(s.probe);
	return r;
}

/* --- of a file --- */

static int copy_extent(struct copy *c, int fd, uint64_t from, uint64_t to)
{
	uint8_t piece[PIECE];
	int r = 0;

	while (from < to && !r) {
		const uint64_t want = numbers_smaller(to - from, PIECE);
		const ssize_t n = pread(fd, piece, want, (off_t)from);

		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		r = copy_add(c, piece, (size_t)n, from);
		from += (uint64_t)n;
	}
	return r;
}

static int copy_extents(struct copy *c, int fd, uint64_t size)
{
	uint64_t at = 0;
	int r = 0;

	while (at < size && !r) {
		const off_t data = lseek(fd, (off_t)at, SEEK_DATA);
		const off_t hole = data >= 0 ? lseek(fd, data, SEEK_HOLE) : -1;
		uint64_t end = size;

		if (data < 0 && errno == ENXIO)
			break; /* only a hole is left */
		if (data >= 0)
			at = (uint64_t)data;
		if (hole > data && (uint64_t)hole < size)
			end = (uint64_t)hole;
		r = at < end ? copy_extent(c, fd, at, end) : 0;
		at = end;
	}
	return r;
}

int sealed_copy(int fd, uint64_t size, uint64_t max, struct sealed *ret)
{
	struct copy c;

	if (size > OPENER_COPY_MAX)
		return OPENER_TOO_LARGE;
	const int r = copy_begin(&c, max);

	if (r)
		return r;
	c.size = size;
	return copy_end(&c, copy_extents(&c, fd, size), ret);
}

/* --- copying what a process has mapped --- */

struct sealed_mapped {
	uint64_t dev, inode;
	uint32_t pid;
	struct copy *copy; /* NULL: only look for a part */
	int r;
	bool found;
};

/* Reads with process_vm_readv, not /proc/PID/mem: a read there that waits for a page would block
 * the process's own calls of mmap, and with them the readers of its maps. */
static ssize_t read_memory(uint32_t pid, uint64_t at, uint8_t *to, size_t n)
{
	const struct iovec local = { .iov_base = to, .iov_len = n },
			   remote = { .iov_base = (void *)(uintptr_t)at, .iov_len = n };

	return process_vm_readv((pid_t)pid, &local, 1, &remote, 1, 0);
}

static void copy_pages(void *ctx, const struct procfs_mapping *m)
{
	struct sealed_mapped *w = ctx;
	const uint64_t length = m->end - m->start;
	uint8_t piece[PIECE];

	if (w->r || m->kind != PROCFS_FILE || !m->readable || m->writable || m->inode != w->inode ||
	    ((uint64_t)m->dev_major << 32 | m->dev_minor) != w->dev)
		return;
	w->found = true;
	if (!w->copy)
		return;
	if (length > OPENER_COPY_MAX || m->offset > OPENER_COPY_MAX - length) {
		w->r = OPENER_TOO_LARGE;
		return;
	}
	for (uint64_t at = 0; at < length && !w->r;) {
		const size_t want = length - at < PIECE ? (size_t)(length - at) : PIECE;
		ssize_t n = read_memory(w->pid, m->start + at, piece, want);

		/* Pages after the file's end are unreadable. */
		if (n < (ssize_t)NUMBERS_PAGE) {
			if (n < 0 && errno != EFAULT)
				w->r = -errno;
			at += NUMBERS_PAGE;
			continue;
		}
		n -= n % (ssize_t)NUMBERS_PAGE;
		w->r = copy_add(w->copy, piece, (size_t)n, m->offset + at);
		at += (uint64_t)n;
		if (m->offset + at > w->copy->size)
			w->copy->size = m->offset + at;
	}
}

static int each_mapped(int proc, struct sealed_mapped *w)
{
	const ssize_t n = procfs_read_all_maps(proc, w->pid, MAPPINGS, copy_pages, w);

	return n < 0 ? (int)n : w->r ? w->r : !w->found ? -EACCES : 0;
}

int sealed_find_mapped(int proc, uint32_t pid, uint64_t dev, uint64_t inode)
{
	struct sealed_mapped w = { .dev = dev, .inode = inode, .pid = pid };

	return each_mapped(proc, &w);
}

int sealed_copy_of_mapped(int proc, uint32_t pid, uint64_t dev, uint64_t inode, uint64_t max,
			  struct sealed *ret)
{
	struct copy c;
	struct sealed_mapped w = { .dev = dev, .inode = inode, .pid = pid, .copy = &c };
	int r = copy_begin(&c, max);

	if (r)
		return r;
	r = each_mapped(proc, &w);
	if (!r && !c.size)
		r = -EACCES;
	return copy_end(&c, r, ret);
}
