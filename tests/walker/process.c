/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/walker/process.h"

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "common/base/system/procfs.h"
#include "tools/prof-dump/caller.h"

static pid_t pid;
static int memory = -1;
static int (*find_runtime)(struct tables *t, struct space_file *f);

void process_find_runtimes(int (*describe)(struct tables *t, struct space_file *f))
{
	find_runtime = describe;
}

long process_read(void *ctx, void *dst, uint32_t size, uint64_t addr)
{
	return addr <= INT64_MAX && pread(memory, dst, size, (off_t)addr) == (ssize_t)size ? 0 : -1;
}

void process_turn_to(pid_t which)
{
	char path[64];

	pid = which;
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	if (memory >= 0)
		close(memory);
	memory = open(path, O_RDONLY | O_CLOEXEC);
	if (memory < 0)
		err(1, "%s", path);
}

void process_open(struct space *s, struct tables *t, pid_t which)
{
	process_turn_to(which);
	space_init(s, t, process_read, NULL);
}

static void take(void *ctx, const struct procfs_mapping *m)
{
	struct space *s = ctx;
	uint64_t dev = (uint64_t)m->dev_major << 32 | m->dev_minor;
	uint32_t file = SPACE_NO_FILE;
	char name[4096];

	if (m->kind == PROCFS_FILE || m->kind == PROCFS_VDSO) {
		file = space_find(s, dev, m->inode);
		int fd = -1;

		if (file == SPACE_NO_FILE)
			fd = m->kind == PROCFS_VDSO ? space_image(s, m->start, m->end)
						    : caller_open(pid, m);
		snprintf(name, sizeof(name), "%.*s", (int)m->name.len, m->name.data);
		if (file == SPACE_NO_FILE &&
		    (fd < 0 || space_add(s, fd, dev, m->inode, name, &file)))
			errx(1, "%s: %s", name, strerror(fd < 0 ? -fd : 0));
	}
	if (space_map(s, m->start, m->end, m->offset, file))
		errx(1, "too many mappings");
}

void process_load(struct space *s)
{
	int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	space_clear(s);
	ssize_t n = procfs_read_maps(proc, (uint32_t)pid, SPACE_MAX_MAPPINGS, take, s);

	close(proc);
	s->pcs_only = find_runtime;
	for (uint32_t i = 0; find_runtime && i < s->file_count; i++) {
		if (find_runtime(s->tables, &s->files[i]))
			errx(1, "no memory");
	}
	if (n < 0 || space_ready(s))
		errx(1, "the mappings of %d cannot be read", pid);
}
