/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-dump/space/space.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/rows/extract/extract.h"

#define MAX_IMAGE (1u << 20)
#define CHUNK 256 /* rows added at once */

void space_init(struct space *s, struct tables *t, space_reader *read, void *ctx)
{
	*s = (struct space){ .tables = t, .read = read, .ctx = ctx };
}

void space_done(struct space *s)
{
	for (uint32_t i = 0; i < s->file_count; i++) {
		free(s->files[i].path);
		free(s->files[i].build);
		if (s->files[i].fd >= 0)
			close(s->files[i].fd);
	}
	free(s->files);
	free(s->mappings);
	moving_done(&s->moving);
	*s = (struct space){ 0 };
}

void space_clear(struct space *s)
{
	s->mapping_count = 0;
	moving_done(&s->moving);
}

uint32_t space_find(const struct space *s, uint64_t dev, uint64_t inode)
{
	for (uint32_t i = s->file_count; i-- > 0;)
		if (s->files[i].inode == inode && s->files[i].dev == dev)
			return i;
	return SPACE_NO_FILE;
}

int space_grow(void **data, uint32_t count, uint32_t *cap, uint32_t max, size_t size)
{
	if (count < *cap)
		return 0;
	if (count >= max)
		return SPACE_FULL;
	uint32_t wanted = *cap ? *cap * 2 : 64;
	void *p = reallocarray(*data, wanted, size);

	if (!p)
		return -ENOMEM;
	*data = p;
	*cap = wanted;
	return 0;
}

/* Makes rows. If this fails, there are none, and the walker falls back to frame pointers. */
static void load_rows(struct tables *t, uint16_t slot, int fd)
{
	struct rows rows;
	struct extract how;
	struct rows_cursor c;
	struct unwind_row_wire chunk[CHUNK];
	size_t n = 0;
	bool done = false;

	rows_init(&rows);
	int r = fd < 0 ? -EBADF : extract_rows(fd, -1, &rows, &how);

	if (!r && !rows.count)
		r = -ENODATA;
	if (!r)
		r = tables_rows_begin(t, slot, rows.base, rows.span, rows.count, rows.rules.n);
	if (!r)
		r = tables_rows_rules(t, slot, rows.rules.rule, rows.rules.n);
	if (!r)
		rows_cursor_init(&c, &rows);
	while (!r && !done) {
		done = !rows_next(&c, &chunk[n]);
		n += !done;
		if (n && (done || n == CHUNK)) {
			r = tables_rows_chunk(t, slot, chunk, n);
			n = 0;
		}
	}
	if (!r)
		r = tables_rows_end(t, slot);
	if (r)
		tables_file_none(t, slot);
	rows_done(&rows);
}

int space_add(struct space *s, int fd, uint64_t dev, uint64_t inode, const char *path,
	      uint32_t *ret_file)
{
	struct space_file f = { .dev = dev, .inode = inode, .fd = fd };
	int r = space_grow((void **)&s->files, s->file_count, &s->file_cap, SPACE_MAX_FILES,
			   sizeof(*s->files));

	if (!r) {
		f.path = strdup(path);
		r = f.path ? tables_file_new(s->tables, &f.slot) : -ENOMEM;
	}
	if (r) {
		free(f.path);
		if (fd >= 0)
			close(fd);
		return r < 0 ? r : SPACE_FULL;
	}
	load_rows(s->tables, f.slot, fd);
	*ret_file = s->file_count;
	s->files[s->file_count++] = f;
	return 0;
}

int space_map(struct space *s, uint64_t start, uint64_t end, uint64_t offset, uint32_t file)
{
	int r = space_grow((void **)&s->mappings, s->mapping_count, &s->mapping_cap,
			   SPACE_MAX_MAPPINGS, sizeof(*s->mappings));

	if (r)
		return r;
	s->mappings[s->mapping_count++] = (struct space_mapping){
		.start = start, .end = end, .offset = offset, .file = file
	};
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct space_mapping *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

struct tables_mapping *space_tables(const struct space *s)
{
	struct tables_mapping *m = calloc(s->mapping_count + 1u, sizeof(*m));

	for (uint32_t i = 0; m && i < s->mapping_count; i++) {
		const struct space_mapping *from = &s->mappings[i];

		m[i] = (struct tables_mapping){
			.start = from->start,
			.end = from->end,
			.offset = from->offset,
			.slot = from->file == SPACE_NO_FILE ? 0 : s->files[from->file].slot,
		};
	}
	return m;
}

static long read_memory(void *ctx, void *dst, uint32_t size, uint64_t addr)
{
	const struct space *s = ctx;

	return s->read(s->ctx, dst, size, addr);
}

static void copy_object(void *ctx, const struct runtime_copy *how, uint64_t key, uint64_t check,
			uint64_t address, const __u64 *told)
{
	struct space *s = ctx;

	moving_take(&s->moving, how, key, check, address, told);
}

int space_ready(struct space *s)
{
	uint32_t kept = 0;

	if (s->mapping_count)
		qsort(s->mappings, s->mapping_count, sizeof(*s->mappings), by_start);
	for (uint32_t i = 0; i < s->mapping_count; i++) {
		const struct space_mapping *m = &s->mappings[i];

		if (m->start < m->end && (!kept || s->mappings[kept - 1].end <= m->start))
			s->mappings[kept++] = *m;
	}
	s->mapping_count = kept;
	struct tables_mapping *m = space_tables(s);

	if (!m)
		return -ENOMEM;
	int r = tables_walk_maps(s->tables, m, s->mapping_count, &s->entry);

	free(m);
	s->env.read_user = read_memory;
	s->env.object = copy_object;
	s->env.ctx = s;
	tables_env(s->tables, &s->env);
	return r;
}

const struct space_mapping *space_at(const struct space *s, uint64_t address)
{
	uint32_t low = 0, n = s->mapping_count;

	while (n) {
		uint32_t half = n / 2;

		if (s->mappings[low + half].end <= address) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low < s->mapping_count && s->mappings[low].start <= address ? &s->mappings[low]
									   : NULL;
}

int space_image(const struct space *s, uint64_t start, uint64_t end)
{
	uint8_t page[4096];
	int fd = memfd_create("image", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (uint64_t at = start; at < end && at - start < MAX_IMAGE; at += sizeof(page)) {
		if (s->read(s->ctx, page, sizeof(page), at) ||
		    write(fd, page, sizeof(page)) != (ssize_t)sizeof(page))
			break;
	}
	return fd;
}
