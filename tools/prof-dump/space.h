/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An address space to be walked in: its executable mappings, the files behind them with their rows
 * in tables (common/walk/tables.h), and a reader of its memory. What the kernel's tables are to
 * the walker when it samples, this is to a dump.
 *
 * The files and the memory are a stranger's.
 */
#ifndef PROF_DUMP_SPACE_H
#define PROF_DUMP_SPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpf/env.h"
#include "common/walk/tables.h"
#include "tools/prof-dump/half.h"
#include "common/names/runtime/runtime.h"

#define SPACE_MAX_MAPPINGS (1u << 16) /* what tables_walk_maps takes */
#define SPACE_MAX_FILES 4096u
#define SPACE_MAX_FRAMES (1u << 20) /* of one stack */
#define SPACE_NO_FILE UINT32_MAX

struct space_file {
	uint64_t dev, inode; /* as the caller told files apart */
	char *path;
	int fd; /* -1 where there is none */
	uint16_t slot;
	bool described;
	struct runtime_build *build; /* of the runtime that it holds; owned; NULL: none is known */
};

struct space_mapping {
	uint64_t start, end, offset; /* bytes */
	uint32_t file;		     /* number, or SPACE_NO_FILE */
};

/* As struct env wants it: 0, or negative where not all of [addr, addr + size) can be read. */
typedef long space_reader(void *ctx, void *dst, uint32_t size, uint64_t addr);

struct space {
	struct tables *tables; /* borrowed */
	space_reader *read;
	void *ctx;
	struct env env;
	struct process_entry entry;
	struct space_file *files;
	struct space_mapping *mappings;
	uint32_t file_count, file_cap, mapping_count, mapping_cap;
};

enum space_verdict {
	SPACE_FULL = 1, /* a ceiling above */
};

void space_init(struct space *s, struct tables *t, space_reader *read, void *ctx);
void space_done(struct space *s);
/* Forgets the mappings, keeps the files. */
void space_clear(struct space *s);
/* The number of a file that was added as (dev, inode), or SPACE_NO_FILE. */
uint32_t space_find(const struct space *s, uint64_t dev, uint64_t inode);
/* Takes fd (-1: the file cannot be had) and makes rows of it; path is copied. 0, SPACE_FULL,
 * -ENOMEM. */
int space_add(struct space *s, int fd, uint64_t dev, uint64_t inode, const char *path,
	      uint32_t *ret_file);
/* Adds an executable mapping. 0, SPACE_FULL, -ENOMEM. */
int space_map(struct space *s, uint64_t start, uint64_t end, uint64_t offset, uint32_t file);
/* After the last mapping: sorts them; of those that overlap the first counts. Errors of
 * tables_walk_maps. */
int space_ready(struct space *s);
/* Those as tables_process_set takes them: to be freed. NULL: no memory. */
struct tables_mapping *space_tables(const struct space *s);
/* The mapping of an address, or NULL. */
const struct space_mapping *space_at(const struct space *s, uint64_t address);
/* A file made of [start, end) of the memory: the vDSO. A descriptor, or -errno. */
int space_image(const struct space *s, uint64_t start, uint64_t end);

struct stack_frame {
	uint64_t pc;   /* of an interpreted frame: the address of the runtime's object */
	uint64_t mark; /* of an interpreted frame: position and check (bpf/runtime.h) */
	uint32_t file; /* of an interpreted frame: which holds its runtime */
	bool interpreted;
	bool exact; /* the pc itself, not a return address */
	bool by_fp; /* found by frame pointer, for want of rows: a guess */
	bool loop;  /* native, in the loop of an interpreter */
};

struct stack {
	uint32_t tid;
	uint16_t partial;	    /* enum half_partial */
	uint16_t reason;	    /* enum walk_reason: how it ended */
	struct stack_frame *frames; /* leaf first; owned */
	uint32_t count;
};
/* Walks from a thread's registers: its native frames, and those of the runtimes that files with a
 * `build` hold. 0, -ENOMEM. */
int stack_walk(struct space *s, const struct half_thread *t, struct stack *ret);
void stack_done(struct stack *s);

#endif
