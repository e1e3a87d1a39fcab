/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An address space to walk in: its executable mappings, the files behind them with their rows in
 * tables (common/walk/tables/tables.h), and a reader of its memory. A dump uses it in place of the
 * kernel's tables.
 *
 * The files and the memory are untrusted.
 */
#ifndef PROF_DUMP_SPACE_SPACE_H
#define PROF_DUMP_SPACE_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpf/walk/env.h"
#include "common/names/runtime/runtime.h"
#include "common/walk/tables/tables.h"
#include "tools/prof-dump/process/message.h"
#include "tools/prof-dump/space/moving.h"

#define SPACE_MAX_MAPPINGS (1u << 16) /* the ceiling of tables_walk_maps */
#define SPACE_MAX_FILES 4096u
#define SPACE_MAX_FRAMES (1u << 20) /* of one stack */
#define SPACE_NO_FILE UINT32_MAX

struct space_file {
	uint64_t dev, inode; /* the caller's identity of the file */
	char *path;
	int fd; /* -1: the file cannot be opened */
	uint16_t slot;
	bool described;
	struct runtime_build *build; /* the runtime in the file; owned; NULL: none known */
};

struct space_mapping {
	uint64_t start, end, offset; /* bytes */
	uint32_t file;		     /* index, or SPACE_NO_FILE */
};

/* A reader for struct env: returns 0, or a negative number if it cannot read [addr, addr +
 * size). */
typedef long space_reader(void *ctx, void *dst, uint32_t size, uint64_t addr);

struct space {
	struct tables *tables; /* borrowed */
	space_reader *read;
	void *ctx;
	struct env env;
	struct moving moving; /* objects of stacks that were walked */
	bool pcs_only;	      /* stacks show each frame's pc, and not what runtimes know about it */
	struct process_entry entry;
	struct space_file *files;
	struct space_mapping *mappings;
	uint32_t file_count, file_cap, mapping_count, mapping_cap;
};

enum space_verdict {
	SPACE_FULL = 1, /* one of the ceilings above was reached */
};

void space_init(struct space *s, struct tables *t, space_reader *read, void *ctx);
void space_done(struct space *s);
/* Removes the mappings but keeps the files. */
void space_clear(struct space *s);
/* The index of the file added as (dev, inode), or SPACE_NO_FILE. */
uint32_t space_find(const struct space *s, uint64_t dev, uint64_t inode);
/* Takes fd (-1: the file cannot be opened) and makes its rows. Copies path. Returns 0, SPACE_FULL
 * or -ENOMEM. */
int space_add(struct space *s, int fd, uint64_t dev, uint64_t inode, const char *path,
	      uint32_t *ret_file);
/* Adds an executable mapping. Returns 0, SPACE_FULL or -ENOMEM. */
int space_map(struct space *s, uint64_t start, uint64_t end, uint64_t offset, uint32_t file);
/* Call it after the last mapping: sorts them; where they overlap, the first one counts. Returns the
 * errors of tables_walk_maps. */
int space_ready(struct space *s);
/* The mappings in the form of tables_process_set. The caller frees them. NULL: no memory. */
struct tables_mapping *space_tables(const struct space *s);
/* The mapping that contains an address, or NULL. */
const struct space_mapping *space_at(const struct space *s, uint64_t address);
/* Makes a file of memory at [start, end), for the vDSO. Returns a descriptor or -errno. */
int space_image(const struct space *s, uint64_t start, uint64_t end);

/* Makes room for one more item of `size` bytes in an array of *cap. Returns 0, SPACE_FULL if it has
 * max, or -ENOMEM. */
int space_grow(void **data, uint32_t count, uint32_t *cap, uint32_t max, size_t size);

#endif
