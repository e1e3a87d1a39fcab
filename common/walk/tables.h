/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwind tables that the walker reads (bpf/tables.h): rows, rules, block indexes and mappings,
 * in BPF maps that user space writes through mmap.
 *
 * A file has a slot (1..TABLES_MAX_FILES-1); a process has a sorted array of executable mappings,
 * each naming a slot. Both live in slabs of one allocator. What is freed is used again only after
 * TABLES_GRACE_NS, when no walk can still be reading it and every sample that names it has been
 * drained.
 *
 * With no map descriptors (all -1) the tables lie in ordinary memory, for walks in user space.
 */
#ifndef PROFPIPE_TABLES_H
#define PROFPIPE_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpf/tables.h"

#define TABLES_GRACE_NS 2000000000ull

struct tables;
struct env;

enum tables_verdict {
	TABLES_FULL = 1, /* the ceiling is reached; something may have been evicted meanwhile: try
			    again after the grace period */
	TABLES_BAD_ROWS = 2, /* what the extractor sent is not acceptable: unsorted, out of span,
				unknown rule */
};

struct tables_config {
	int slabs_fd, files_fd, rules_fd, processes_fd; /* borrowed; all -1: ordinary memory */
	size_t max_bytes; /* of slabs; rounded down to whole ones, at least one */
};
/* -ENOMEM, or what a map refused. The caller owns *ret. */
int tables_new(const struct tables_config *c, struct tables **ret);
void tables_free(struct tables *t);
/* Frees what has been waiting longer than the grace period. now_ns: samples up to then have been
 * drained; the grace period of what was freed since the last call begins with this one. Called a
 * few times a second. */
void tables_tick(struct tables *t, uint64_t now_ns);
/* Another ceiling of slabs, from now on. What is above it is handed back: the files in the slabs
 * that were sampled least are evicted, and the slabs go after the grace period. */
void tables_limit(struct tables *t, size_t max_bytes);
/* Bytes in use, but for rows that would go for any that come. */
uint64_t tables_useful(const struct tables *t);
/* Whether rows of so many bytes have room without others' going. */
bool tables_fit(const struct tables *t, uint64_t bytes);
/* What so many rows take that span so many bytes of text; 0: they will be refused. */
uint64_t tables_rows_bytes(uint64_t span, uint64_t rows);
/* Bytes that rows would take which were sampled of late, and had no room. *ret_all: whenever they
 * were sampled. */
uint64_t tables_lacking(const struct tables *t, uint64_t *ret_all);

/* A new slot for a file, without rows yet (the walker says rows-pending there). 0, TABLES_FULL,
 * -ENOMEM. */
int tables_file_new(struct tables *t, uint16_t *ret_slot);
/* The file is not mapped any more by anybody: its rows and slot are freed after the grace period.
 */
void tables_file_free(struct tables *t, uint16_t slot);
/* No rows will come (not ELF, no CFI, extractor failed): the walker uses frame pointers there. */
void tables_file_none(struct tables *t, uint16_t slot);
/* A sample touched the file. What is touched least of late is evicted first, and for mappings or
 * for what is touched twice as often; for anything, when it was not touched for ten seconds. */
void tables_file_touch(struct tables *t, uint16_t slot, uint64_t now_ns);
/* No process maps it any more. Until it is touched again its samples count for little: it may run
 * again in a moment, or never. */
void tables_file_unmapped(struct tables *t, uint16_t slot);
/* Which use of the slot this is: another number after it was freed and given to another file. */
uint32_t tables_file_serial(const struct tables *t, uint16_t slot);
enum file_state tables_file_state(const struct tables *t, uint16_t slot);
/* There was no room for its rows: the walker uses frame pointers there, until they are asked for
 * again. */
void tables_file_full(struct tables *t, uint16_t slot);
/* Its rows went, or did not come, for want of memory; they may be asked for again by now. */
bool tables_file_lacks(const struct tables *t, uint16_t slot);
/* A sample touched a file: whether its rows are to be asked for again, since they were evicted, or
 * had no room. */
bool tables_file_again(struct tables *t, uint16_t slot);
/* What room that takes, where it is time to look; else 0. */
uint64_t tables_file_needs(const struct tables *t, uint16_t slot);
/* Marks an evicted file, or one without rows, as pending again: they are being asked for. */
void tables_file_pending(struct tables *t, uint16_t slot);

/* The rows of a pending file, as they come: begin, all rules, all rows in chunks, end; nothing is
 * seen by the walker before the end. An error or verdict of any ends the affair, and what was taken
 * is freed. base: file offset, a multiple of a block (BLOCK_SHIFT); span in bytes. Sizes and order
 * are checked here: the rows come from an extractor that may have been taken over. 0, enum
 * tables_verdict, -ENOMEM, -errno. */
int tables_rows_begin(struct tables *t, uint16_t slot, uint64_t base, uint64_t span, uint64_t rows,
		      uint64_t rules);
int tables_rows_rules(struct tables *t, uint16_t slot, const struct unwind_rule *r, size_t n);
int tables_rows_chunk(struct tables *t, uint16_t slot, const struct unwind_row_wire *r, size_t n);
int tables_rows_end(struct tables *t, uint16_t slot);
void tables_rows_abort(struct tables *t, uint16_t slot);

/* The file holds a runtime: the config of this build, as the runtime's program reads it
 * (bpf/runtime.h). Processes published from now on have it. 0, TABLES_FULL, -ENOMEM. */
struct runtime_config;
int tables_file_runtime(struct tables *t, uint16_t slot, const struct runtime_config *c);
/* What was set, by slot; NULL: none. Borrowed. */
const struct runtime_config *tables_runtime(const struct tables *t, uint16_t slot);

/* One mapping of a process: code at [start, end), whose first byte is at file offset `offset` of
 * the file in `slot` (0: no file, e.g. JIT code). */
struct tables_mapping {
	uint64_t start, end, offset;
	uint16_t slot;
};
#define TABLES_MAX_MAPPINGS (SLAB_WORDS / 8 - PROCESS_RUNTIMES_MAX) /* of a process: a slab */
/* Publishes the executable mappings of a process (sorted by start, not overlapping), replacing what
 * it had. start_ns: of the group leader. heard_ns: its execs before that are known.
 * *ret_generation: what samples walked with them carry, never 0. 0, TABLES_FULL, -errno. */
int tables_process_set(struct tables *t, uint32_t pid, uint64_t start_ns, uint64_t heard_ns,
		       const struct tables_mapping *m, size_t n, bool selected,
		       uint32_t *ret_generation);
/* A sample of the process came. Its mappings, where they are many, take the place of rows only when
 * that was of late. */
void tables_process_touch(struct tables *t, uint32_t pid, uint64_t now_ns);
/* The start that the kernel's hook on forks, or who published it, entered for a pid. False: there
 * is no entry, or no kernel. */
bool tables_process_start(const struct tables *t, uint32_t pid, uint64_t *ret_start_ns);
/* The process is gone. */
void tables_process_drop(struct tables *t, uint32_t pid);

/* The figures of the tables, for the summary. bytes: of all slabs taken. */
struct tables_figures {
	uint64_t files, rows, rules, processes, bytes, bytes_used, evictions;
};
void tables_figures(const struct tables *t, struct tables_figures *ret);
/* The tables as a walk in user space sees them: all of *ret but read_user and ctx. Borrowed. */
void tables_env(struct tables *t, struct env *ret);
/* For such a walk: mappings as tables_process_set takes them, that only it sees, and only until the
 * next call. 0, TABLES_FULL, -ENOMEM. */
int tables_walk_maps(struct tables *t, const struct tables_mapping *m, size_t n,
		     struct process_entry *ret);

#endif
