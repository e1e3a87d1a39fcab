/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwind tables that the walker reads: rows, rules, block indexes and mappings, in BPF maps that user space writes through mmap.
 *
 * A file has a slot (1..TABLES_MAX_FILES-1); a process has a sorted array of executable mappings, each naming a slot. Both live in slabs of one allocator. What is freed
 * is used again only after TABLES_GRACE_NS, when no walk can still be reading it and every sample that names it has been drained.
 */
#ifndef PROFPIPE_TABLES_H
#define PROFPIPE_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpf/tables.h"


#define TABLES_GRACE_NS 2000000000ull

struct tables;

enum tables_verdict {
	TABLES_FULL = 1,	/* the memory ceiling is reached and nothing can be evicted */
	TABLES_BAD_ROWS = 2,	/* what the extractor sent is not acceptable: unsorted, out of span, unknown rule */
};

/* A new slot for a file, without rows yet (the walker says rows-pending there). 0, TABLES_FULL, -ENOMEM. */
int tables_file_new(struct tables *t, uint16_t *ret_slot);
/* The file is not mapped any more by anybody, or was evicted: its rows and slot are freed after the grace period. */
void tables_file_free(struct tables *t, uint16_t slot);
/* No rows will come (not ELF, no CFI, extractor failed): the walker uses frame pointers there. */
void tables_file_none(struct tables *t, uint16_t slot);

/* One mapping of a process: code at [start, end), whose first byte is at file offset `offset` of the file in `slot` (0: no file, e.g. JIT code). */
struct tables_mapping {
	uint64_t start, end, offset;
	uint16_t slot;
};
/* Publishes the executable mappings of a process (sorted by start, not overlapping), replacing what it had. start_ns: of the group leader. *ret_generation: what samples walked with them carry. 0, TABLES_FULL, -errno. */
int tables_process_set(struct tables *t, uint32_t pid, uint64_t start_ns, const struct tables_mapping *m, size_t n, bool selected, uint32_t *ret_generation);
/* The process is gone. */
void tables_process_drop(struct tables *t, uint32_t pid);
/* Evicted slots: at the ceiling, tables_* pick the files least recently sampled (tables_file_touch) and drop their rows; the walker says rows-pending there until they are asked for again.
 * Takes one such slot that was sampled since its eviction, so that its rows are requested again; 0 when there is none. */
void tables_file_touch(struct tables *t, uint16_t slot, uint64_t now_ns);
uint16_t tables_take_wanted(struct tables *t);

#endif
