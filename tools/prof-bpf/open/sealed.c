// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <unistd.h>
#include "common/walk/procfs.h"
#include "tools/prof-bpf/open/request.h"
#include "tools/prof-bpf/open/sealed.h"

#define MAPPINGS 65536 /* of a process, searched for those of one file */

static int memory_file(void)
{
	int fd = memfd_create("profpipe", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd < 0 ? -errno : fd;
}

/* Seals a memfd (taken), and returns a read-only descriptor: a memfd's own is writable. */
static int seal(int copy, int *ret_reader)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", copy);
	int fd = fcntl(copy, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
			 ? -1
			 : open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : 0;
	close(copy);
	if (!r)
		*ret_reader = fd;
	return r;
}

int sealed_copy(int fd, uint64_t size, int *ret_fd)
{
	if (size > OPENER_COPY_MAX)
		return OPENER_TOO_LARGE;
	int copy = memory_file();
	if (copy < 0)
		return copy;
	while (size) {
		ssize_t n = sendfile(copy, fd, NULL, size);

		if (n <= 0) {
			int r = n < 0 ? -errno : -EIO;

			close(copy);
			return r;
		}
		size -= (uint64_t)n;
	}
	return seal(copy, ret_fd);
}

/* --- copies of what a process has mapped --- */

struct mapped {
	uint64_t dev, inode, size;
	int memory, to;
	int error;
};

static void copy_pages(void *ctx, const struct procfs_mapping *m)
{
	struct mapped *c = ctx;
	uint64_t length = m->end - m->start;
	char page[4096];

	if (c->error || m->kind != PROCFS_FILE || !m->readable || m->writable ||
	    m->inode != c->inode || ((uint64_t)m->dev_major << 32 | m->dev_minor) != c->dev)
		return;
	if (length > OPENER_COPY_MAX || m->offset > OPENER_COPY_MAX - length) {
		c->error = OPENER_TOO_LARGE;
		return;
	}
	for (uint64_t at = 0; at < length; at += sizeof(page)) {
		/* Pages behind the file's end are unreadable. */
		if (pread(c->memory, page, sizeof(page), (off_t)(m->start + at)) !=
		    (ssize_t)sizeof(page))
			continue;
		if (pwrite(c->to, page, sizeof(page), (off_t)(m->offset + at)) !=
		    (ssize_t)sizeof(page)) {
			c->error = -EIO;
			return;
		}
		if (m->offset + at + sizeof(page) > c->size)
			c->size = m->offset + at + sizeof(page);
	}
}

int sealed_copy_of_mapped(int proc, uint32_t pid, uint64_t dev, uint64_t inode, uint64_t *ret_size,
			  int *ret_fd)
{
	struct mapped c = { .dev = dev, .inode = inode };
	char path[32];

	snprintf(path, sizeof(path), "%u/mem", pid);
	c.memory = openat(proc, path, O_RDONLY | O_CLOEXEC);
	if (c.memory < 0)
		return -errno;
	c.to = memory_file();
	c.error = c.to < 0 ? c.to : 0;
	if (!c.error) {
		ssize_t n = procfs_read_all_maps(proc, pid, MAPPINGS, copy_pages, &c);

		c.error = n < 0 ? (int)n : c.error;
	}
	close(c.memory);
	if (!c.error && !c.size)
		c.error = -EACCES;
	if (c.error) {
		if (c.to >= 0)
			close(c.to);
		return c.error;
	}
	*ret_size = c.size;
	return seal(c.to, ret_fd);
}
