/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwind tables that the walker reads (bpf/tables.h): rows, rules, block indexes and mappings.
 * They lie in BPF maps, which user space writes through mmap.
 *
 * A file has a slot (2..TABLES_SLOTS-1). A process has a sorted array of executable mappings,
 * each of which names a slot. Both live in slabs of one allocator. Freed room is reused only after
 * TABLES_GRACE_NS: by then no walk reads it, and every sample that names it has been drained.
 *
 * Slots, rules, and room for rows and mappings are scarce. They have owners, by number, in a ledger
 * that the caller keeps (struct tables_ledger). If the tables are full, the owner who holds most
 * gives way: first the rows with the fewest samples. Some room stays free for owners who hold less
 * than their share, so that theirs need not wait for the grace period.
 *
 * Without map descriptors (all -1) the tables lie in ordinary memory, for walks in user space.
 */
#ifndef COMMON_WALK_TABLES_TABLES_H
#define COMMON_WALK_TABLES_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpf/tables.h"

#define TABLES_GRACE_NS 2000000000ull
/* The slot of all files whose rows nobody has requested. It is always pending, so a walk that
 * reaches it ends as WALK_ROWS_PENDING. */
#define TABLES_UNASKED 1

struct tables;
struct env;

enum tables_verdict {
	/* The ceiling is reached. Something may have been evicted: try again after the grace
	 * period. */
	TABLES_FULL = 1,
	/* The extractor sent unacceptable rows: unsorted, outside the span, or with an unknown
	 * rule. */
	TABLES_BAD_ROWS = 2,
};

struct tables_config {
	int slabs_fd, files_fd, rules_fd, processes_fd; /* borrowed; all -1: ordinary memory */
	size_t max_bytes; /* for slabs; rounded down to whole slabs, at least one */
};
/* -ENOMEM, or the error of a map. The caller owns *ret. */
int tables_new(const struct tables_config *c, struct tables **ret);
void tables_free(struct tables *t);
/* The resources that owners hold in the tables: rules and words. */
enum tables_resource { TABLES_RULES, TABLES_WORDS };
#define TABLES_NOBODY UINT32_MAX
struct tables_ledger {
	/* The owner takes n more, or gives back if n is negative. */
	void (*hold)(void *ctx, uint32_t owner, enum tables_resource what, int64_t n);
	uint64_t (*held)(void *ctx, uint32_t owner, enum tables_resource what);
	/* The fair share of `all`; taker counts as one who wants more (TABLES_NOBODY: nobody
	 * does). */
	uint64_t (*share)(void *ctx, uint32_t taker, enum tables_resource what, uint64_t all);
	/* The owner did not get what it asked for. */
	void (*refuse)(void *ctx, uint32_t owner, enum tables_resource what);
	void *ctx;
};
/* Borrowed. Call it before anything is in the tables. Without it there are no owners. */
void tables_keep_ledger(struct tables *t, const struct tables_ledger *l);
/* Charges the file in a slot, and its rows, to an owner from now on. */
void tables_file_charge(struct tables *t, uint16_t slot, uint32_t owner);
/* Charges mappings that are published from now on to an owner. */
void tables_charge_mappings(struct tables *t, uint32_t owner);
/* How many slots can be taken now. */
uint32_t tables_free_slots(const struct tables *t);
/* When the file was last sampled, or got its slot or rows. */
uint64_t tables_file_touched(const struct tables *t, uint16_t slot);

/* Frees what has waited longer than the grace period. Call it a few times a second. now_ns: all
 * samples up to this time have been drained. For what was freed since the last call, the grace
 * period begins with this call. */
void tables_tick(struct tables *t, uint64_t now_ns);
/* Sets a new ceiling for slabs. If there are more, the tables choose the slabs with the fewest
 * recent samples and evict the files in them. These slabs go after the grace period. */
void tables_limit(struct tables *t, size_t max_bytes);
/* Bytes in use, without idle rows, which any new rows may replace. */
uint64_t tables_useful(const struct tables *t);
/* Whether rows of this size fit without evicting others, whoever their owner is. */
bool tables_fit(const struct tables *t, uint64_t bytes);
/* Bytes that this many rows over `span` bytes of text take; 0 if they will be refused. */
uint64_t tables_rows_bytes(uint64_t span, uint64_t rows);
/* Bytes needed by rows that have no room although their files were sampled recently. *ret_all: the
 * same for all files without room, whenever they were sampled. */
uint64_t tables_lacking(const struct tables *t, uint64_t *ret_all);

/* Gives a file a new slot. It has no rows yet, so the walker reports rows-pending there. 0,
 * TABLES_FULL, -ENOMEM. */
int tables_file_new(struct tables *t, uint16_t *ret_slot);
/* No process maps the file any more: frees its rows and slot after the grace period. */
void tables_file_free(struct tables *t, uint16_t slot);
/* No rows will come (not ELF, no CFI, extractor failed): the walker uses frame pointers there. */
void tables_file_none(struct tables *t, uint16_t slot);
/* Records a sample in the file. Files with the fewest recent samples are evicted first. Their rows
 * make room for mappings, and for rows of files with twice their samples. Rows without samples for
 * ten seconds make room for anything. */
void tables_file_touch(struct tables *t, uint16_t slot, uint64_t now_ns);
/* No process maps the file now. Until its next sample its score counts little, since it may run
 * again soon or never. */
void tables_file_unmapped(struct tables *t, uint16_t slot);
/* Identifies this use of the slot: the number changes when the slot goes to another file. */
uint32_t tables_file_serial(const struct tables *t, uint16_t slot);
enum file_state tables_file_state(const struct tables *t, uint16_t slot);
/* How many samples touched the file recently. */
uint32_t tables_file_samples(const struct tables *t, uint16_t slot);
/* There is no room for the file's rows: the walker uses frame pointers until they are requested
 * again. */
void tables_file_full(struct tables *t, uint16_t slot);
/* Whether rows of the file are missing for lack of memory. They may have been requested again by
 * now. */
bool tables_file_lacks(const struct tables *t, uint16_t slot);
/* Whether its rows had no room because its owner's files use more rules than their share. */
bool tables_file_lacks_rules(const struct tables *t, uint16_t slot);
/* Called when a sample touched the file. Whether to request its rows again, after they were evicted
 * or found no room. */
bool tables_file_again(struct tables *t, uint16_t slot);
/* Bytes that its rows need, if it is time to look for room; else 0. */
uint64_t tables_file_needs(const struct tables *t, uint16_t slot);
/* Marks the file as pending, if it is evicted or has no rows: its rows are being requested. */
void tables_file_pending(struct tables *t, uint16_t slot);

/* Stores the rows of a pending file as they arrive: begin, all rules, all rows in chunks, end. The
 * walker sees nothing before the end. Any error or verdict ends the transfer and frees what was
 * taken.
 *
 * The rows come from an extractor that may have been taken over, so sizes and order are checked
 * here. base: file offset, a multiple of a block (BLOCK_SHIFT). span: in bytes. 0, enum
 * tables_verdict, -ENOMEM, -errno. */
int tables_rows_begin(struct tables *t, uint16_t slot, uint64_t base, uint64_t span, uint64_t rows,
		      uint64_t rules);
int tables_rows_rules(struct tables *t, uint16_t slot, const struct unwind_rule *r, size_t n);
int tables_rows_chunk(struct tables *t, uint16_t slot, const struct unwind_row_wire *r, size_t n);
int tables_rows_end(struct tables *t, uint16_t slot);
void tables_rows_abort(struct tables *t, uint16_t slot);
/* Whether a transfer has begun and neither ended nor failed. */
bool tables_rows_coming(const struct tables *t, uint16_t slot);

/* The file holds a runtime; c is the config of this build, as the runtime's program reads it
 * (bpf/runtime.h). Processes published from now on get it. 0, TABLES_FULL, -ENOMEM. */
struct runtime_config;
int tables_file_runtime(struct tables *t, uint16_t slot, const struct runtime_config *c);
/* The config that was set for the slot, or NULL. Borrowed. */
const struct runtime_config *tables_runtime(const struct tables *t, uint16_t slot);

/* One mapping of a process: code at [start, end). Its first byte is at file offset `offset` of the
 * file in `slot` (0: no file, e.g. JIT code). */
struct tables_mapping {
	uint64_t start, end, offset;
	uint16_t slot;
};
#define TABLES_MAX_MAPPINGS (SLAB_WORDS / 8 - PROCESS_RUNTIMES_MAX) /* of a process: one slab */
/* Publishes the executable mappings of a process, in place of its former ones. They are sorted by
 * start and do not overlap. start_ns: of the group leader. heard_ns: all execs of the process
 * before this time are known. *ret_generation: the number in samples that were walked with these
 * mappings, never 0. 0, TABLES_FULL, -errno. */
int tables_process_set(struct tables *t, uint32_t pid, uint64_t start_ns, uint64_t heard_ns,
		       const struct tables_mapping *m, size_t n, bool selected,
		       uint32_t *ret_generation);
/* Records a sample of the process. A large array of mappings may displace rows only if its process
 * was sampled recently. */
void tables_process_touch(struct tables *t, uint32_t pid, uint64_t now_ns);
/* The start time of the process in the map, entered by the kernel's fork hook or by
 * tables_process_set. False if there is no entry or no map. */
bool tables_process_start(const struct tables *t, uint32_t pid, uint64_t *ret_start_ns);
/* Whether no further process can be published. */
bool tables_processes_full(const struct tables *t);
/* The process has exited. */
void tables_process_drop(struct tables *t, uint32_t pid);

/* Counts for the summary. bytes: of all slabs. */
struct tables_figures {
	uint64_t files, rows, rules, processes, bytes, bytes_used, evictions;
};
void tables_figures(const struct tables *t, struct tables_figures *ret);
/* Fills *ret, except read_user and ctx, for a walk in user space. Borrowed. */
void tables_env(struct tables *t, struct env *ret);
/* Gives such a walk mappings, as tables_process_set takes them. Only the walk sees them, until the
 * next call. 0, TABLES_FULL, -ENOMEM. */
int tables_walk_maps(struct tables *t, const struct tables_mapping *m, size_t n,
		     struct process_entry *ret);

#endif
