/* SPDX-License-Identifier: Apache-2.0 */
#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>
#include "tests/walker/process.h"
#include "tools/prof-deltas/extract.h"

#define MAX_FILES 1024
#define MAX_MAPPINGS 16384

static struct {
	dev_t dev;
	ino_t ino;
	uint16_t slot;
} files[MAX_FILES];
static size_t file_count;
static struct tables_mapping mappings[MAX_MAPPINGS];
static size_t mapping_count;
static pid_t pid;

long process_read(void *ctx, void *dst, uint32_t size, uint64_t addr)
{
	struct iovec to = { dst, size }, from = { (void *)addr, size };

	return process_vm_readv(pid, &to, 1, &from, 1, 0) == (ssize_t)size ? 0 : -1;
}

static uint16_t load(struct tables *t, int fd)
{
	struct rows rows;
	struct extract how;
	struct rows_cursor c;
	struct unwind_row_wire row;
	uint16_t slot;

	if (tables_file_new(t, &slot))
		errx(1, "no slot");
	rows_init(&rows);
	if (extract_rows(fd, &rows, &how) || !rows.count ||
	    tables_rows_begin(t, slot, rows.base, rows.span, rows.count, rows.rules.n) ||
	    tables_rows_rules(t, slot, rows.rules.rule, rows.rules.n)) {
		tables_file_none(t, slot);
	} else {
		rows_cursor_init(&c, &rows);
		while (rows_next(&c, &row)) {
			int r = tables_rows_chunk(t, slot, &row, 1);

			if (r)
				errx(1, "row at %#x refused: %d", row.offset, r);
		}
		if (tables_rows_end(t, slot))
			errx(1, "rows refused at their end");
	}
	rows_done(&rows);
	return slot;
}

/* The vDSO is in no file: its bytes are read from the process. */
static int vdso_file(uint64_t start, uint64_t end)
{
	int fd = memfd_create("vdso", MFD_CLOEXEC);
	char page[4096];

	for (uint64_t a = start; a < end; a += sizeof(page)) {
		if (process_read(NULL, page, sizeof(page), a) ||
		    write(fd, page, sizeof(page)) != sizeof(page))
			break;
	}
	return fd;
}

const struct tables_mapping *process_load(struct tables *t, pid_t which, size_t *ret_n)
{
	char path[64], *line = NULL;
	size_t cap = 0;

	pid = which;
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *f = fopen(path, "re");
	if (!f)
		err(1, "%s", path);
	while (getline(&line, &cap, f) > 0) {
		uint64_t start, end, offset;
		unsigned major, minor;
		unsigned long inode;
		char perms[8], name[256] = "";

		if (sscanf(line, "%lx-%lx %7s %lx %x:%x %lu %255[^\n]", &start, &end, perms,
			   &offset, &major, &minor, &inode, name) < 7)
			continue;
		if (perms[2] != 'x' || mapping_count == MAX_MAPPINGS)
			continue;
		struct tables_mapping *m = &mappings[mapping_count++];
		*m = (struct tables_mapping){ .start = start, .end = end, .offset = offset };
		bool vdso = strstr(name, "[vdso]") != NULL;
		if (!inode && !vdso)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/map_files/%lx-%lx", pid, start, end);
		int fd = vdso ? vdso_file(start, end) : open(path, O_RDONLY | O_CLOEXEC);
		struct stat st;
		if (fd < 0 || fstat(fd, &st) < 0)
			err(1, "%s", path);
		size_t i = 0;
		while (i < file_count && (files[i].dev != st.st_dev || files[i].ino != st.st_ino))
			i++;
		if (i == file_count) {
			if (i == MAX_FILES)
				errx(1, "too many files");
			files[i].dev = st.st_dev;
			files[i].ino = st.st_ino;
			files[i].slot = load(t, fd);
			file_count++;
		}
		m->slot = files[i].slot;
		close(fd);
	}
	free(line);
	fclose(f);
	*ret_n = mapping_count;
	return mappings;
}
