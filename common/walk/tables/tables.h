/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The unwind tables that the walker reads (bpf/tables.h): rows, rules, block indexes and mappings.
 * They lie in BPF maps, which user space writes through mmap.
 *
 * A file has a slot (2..TABLES_SLOTS-1). A process has a sorted array of executable mappings, each
 * of which names a slot. Both live in slabs of one allocator. Freed memory is reused only after
 * TABLES_GRACE_NS: by then no walk reads it, and every sample that names it has been drained.
 *
 * Slots, rules, and memory for rows and mappings are scarce. They have owners, by number, in a
 * ledger that the caller keeps (struct tables_ledger). If the tables are full, rows of the owner
 * who holds most are evicted, those with the fewest samples first. Some memory stays free for
 * owners who hold less than their share, so that their files need not wait for the grace period.
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
/* The slot of all files whose rows were never requested. It is always pending, so a walk that
 * reaches it ends as WALK_ROWS_PENDING. */
#define TABLES_UNASKED 1

struct tables;
struct env;

enum tables_verdict {
	/* The limit is reached. Something may have been evicted: try again after the grace
	 * period. */
	TABLES_FULL = 1,
	/* The extractor sent unacceptable rows: unsorted, outside the span, or with an unknown
	 * rule. */
	TABLES_BAD_ROWS = 2,
	/* The map of processes has no place left. It has one once a process is dropped. */
	TABLES_NO_PLACE = 3,
};

struct tables_config {
	int slabs_fd, files_fd, rules_fd, processes_fd; /* borrowed; all -1: ordinary memory */
	size_t max_bytes;	/* limit for slabs; rounded down to whole slabs, at least one */
	uint32_t max_processes; /* places in the map of processes; 0: TABLES_MAX_PROCESSES */
};
/* Makes empty tables; the caller owns *ret. Returns 0, -ENOMEM, or -errno of a map. */
int tables_new(const struct tables_config *c, struct tables **ret);
void tables_free(struct tables *t);
/* The resources that owners hold in the tables: rules and words. */
enum tables_resource { TABLES_RULES, TABLES_WORDS };
#define TABLES_NOBODY UINT32_MAX
struct tables_ledger {
	/* Records that the owner takes n more, or gives n back if n is negative. */
	void (*hold)(void *ctx, uint32_t owner, enum tables_resource what, int64_t n);
	uint64_t (*held)(void *ctx, uint32_t owner, enum tables_resource what);
	/* Returns the fair share of `all`; taker counts as one who wants more (TABLES_NOBODY: no
	 * owner does). */
	uint64_t (*share)(void *ctx, uint32_t taker, enum tables_resource what, uint64_t all);
	/* Records that the owner did not get what it asked for. */
	void (*refuse)(void *ctx, uint32_t owner, enum tables_resource what);
	void *ctx;
};
/* Sets the ledger, which is borrowed. Call it before the tables hold anything. Without a ledger
 * there are no owners. */
void tables_keep_ledger(struct tables *t, const struct tables_ledger *l);
/* Charges the file in a slot, and its rows, to an owner from now on. */
void tables_file_charge(struct tables *t, uint16_t slot, uint32_t owner);
/* Charges mappings that are published from now on to an owner. */
void tables_charge_mappings(struct tables *t, uint32_t owner);
/* Returns how many slots can be taken now. */
uint32_t tables_free_slots(const struct tables *t);
/* Returns when the file was last sampled, or got its slot or rows. */
uint64_t tables_file_touched(const struct tables *t, uint16_t slot);

/* Frees what has waited longer than the grace period. Call it a few times a second. now_ns: all
 * samples up to this time have been drained. For anything freed since the last call, the grace
 * period begins with this call. */
void tables_tick(struct tables *t, uint64_t now_ns);
/* Sets a new limit for slabs. If there are more, the tables choose the slabs with the fewest recent
 * samples and evict the files in them. These slabs go after the grace period. */
void tables_limit(struct tables *t, size_t max_bytes);
/* Returns the bytes in use, without idle rows, which any new rows may replace. */
uint64_t tables_useful(const struct tables *t);
/* Whether rows of this size fit without evicting others, no matter who owns them. */
bool tables_fit(const struct tables *t, uint64_t bytes);
/* Returns how many bytes this many rows over `span` bytes of text take; 0 if they will be
 * refused. */
uint64_t tables_rows_bytes(uint64_t span, uint64_t rows);
/* Returns how many bytes are missing for rows that do not fit although their files were sampled
 * recently. *ret_all: the same for all files whose rows do not fit. */
uint64_t tables_lacking(const struct tables *t, uint64_t *ret_all);

/* Gives a file a new slot. It has no rows yet, so the walker reports rows-pending there. Returns 0,
 * TABLES_FULL or -ENOMEM. */
int tables_file_new(struct tables *t, uint16_t *ret_slot);
/* Frees a file's rows and slot after the grace period. Call it when no process maps the file any
 * more. */
void tables_file_free(struct tables *t, uint16_t slot);
/* Tells that no rows will come (not ELF, no CFI, extractor failed): the walker uses frame pointers
 * in this file. */
void tables_file_none(struct tables *t, uint16_t slot);
/* Records a sample in the file. Files with the fewest recent samples are evicted first. Their rows
 * can be evicted for mappings, and for rows of files with twice their samples. Rows without samples
 * for ten seconds can be evicted for anything. */
void tables_file_touch(struct tables *t, uint16_t slot, uint64_t now_ns);
/* Tells that no process maps the file now. Until its next sample its score counts little, since it
 * may run again soon or never. */
void tables_file_unmapped(struct tables *t, uint16_t slot);
/* Returns a number that identifies this use of the slot: it changes when another file gets the
 * slot. */
uint32_t tables_file_serial(const struct tables *t, uint16_t slot);
enum file_state tables_file_state(const struct tables *t, uint16_t slot);
/* Returns how many samples touched the file recently. */
uint32_t tables_file_samples(const struct tables *t, uint16_t slot);
/* Tells that the file's rows do not fit: the walker uses frame pointers until they are requested
 * again. */
void tables_file_full(struct tables *t, uint16_t slot);
/* Whether rows of the file are missing for lack of memory. They may have been requested again
 * since. */
bool tables_file_lacks(const struct tables *t, uint16_t slot);
/* Whether the file's rows were refused because its owner's files use more rules than their
 * share. */
bool tables_file_lacks_rules(const struct tables *t, uint16_t slot);
/* Whether to request the file's rows again, after they were evicted or did not fit. Call it when a
 * sample touched the file. */
bool tables_file_again(struct tables *t, uint16_t slot);
/* Returns how many bytes the file's rows need, if it is time to look for space; otherwise 0. */
uint64_t tables_file_needs(const struct tables *t, uint16_t slot);
/* Marks the file as pending, if it is evicted or has no rows. Call it when the rows are
 * requested. */
void tables_file_pending(struct tables *t, uint16_t slot);

/* Stores the rows of a pending file as they arrive: begin, all rules, all rows in chunks, end. The
 * walker sees none of them before the end. Any error or verdict ends the transfer and frees what
 * was taken.
 *
 * The rows come from an extractor that may have been taken over, so sizes and order are checked
 * here. base: file offset, a multiple of a block (TABLES_BLOCK_SHIFT). span: in bytes. Returns 0,
 * enum tables_verdict, -ENOMEM or -errno. */
int tables_rows_begin(struct tables *t, uint16_t slot, uint64_t base, uint64_t span, uint64_t rows,
		      uint64_t rules);
int tables_rows_rules(struct tables *t, uint16_t slot, const struct unwind_rule *r, size_t n);
int tables_rows_chunk(struct tables *t, uint16_t slot, const struct unwind_row_wire *r, size_t n);
int tables_rows_end(struct tables *t, uint16_t slot);
void tables_rows_abort(struct tables *t, uint16_t slot);
/* Whether a transfer has begun and neither ended nor failed. */
bool tables_rows_coming(const struct tables *t, uint16_t slot);

/* Tells that the file contains a runtime; c is the config of this build, as the runtime's program
 * reads it (bpf/runtime.h). Processes published from now on get it. Returns 0, TABLES_FULL or
 * -ENOMEM. */
struct runtime_config;
int tables_file_runtime(struct tables *t, uint16_t slot, const struct runtime_config *c);
/* Returns the config that was set for the slot, borrowed, or NULL. */
const struct runtime_config *tables_runtime(const struct tables *t, uint16_t slot);

/* One mapping of a process: code at [start, end). Its first byte is at file offset `offset` of the
 * file in `slot` (0: no file, e.g. JIT code). */
struct tables_mapping {
	uint64_t start, end, offset;
	uint16_t slot;
};
/* Mappings of a process, which must fit one slab. */
#define TABLES_MAX_MAPPINGS (TABLES_SLAB_WORDS / 8 - TABLES_PROCESS_RUNTIMES_MAX)
/* Publishes the executable mappings of a process, in place of its former ones. They are sorted by
 * start and do not overlap. start_ns: start time of the group leader. heard_ns: all execs of the
 * process before this time are known. *ret_generation: the number in samples that are walked with
 * these mappings, never 0. Returns 0, TABLES_FULL, TABLES_NO_PLACE or -errno. */
int tables_process_set(struct tables *t, uint32_t pid, uint64_t start_ns, uint64_t heard_ns,
		       const struct tables_mapping *m, size_t n, bool selected,
		       uint32_t *ret_generation);
/* Records a sample of the process. A large array of mappings can have rows evicted only if its
 * process was sampled recently. */
void tables_process_touch(struct tables *t, uint32_t pid, uint64_t now_ns);
/* Gives the start time of the process in the map, which the kernel's fork hook or
 * tables_process_set stored. Returns false if there is no entry or no map. */
bool tables_process_start(const struct tables *t, uint32_t pid, uint64_t *ret_start_ns);
/* Returns how many processes can be published. The kernel's hook also adds children, so the map has
 * some more places, which are left to it. */
uint32_t tables_process_places(const struct tables *t);
/* Drops a process that has exited. */
void tables_process_drop(struct tables *t, uint32_t pid);
/* Passes the next entries of the map of processes to `stays`, at most TABLES_SWEPT of them, and
 * drops those for which it returns false. start_ns: start time of the group leader. Returns false
 * at the end of the map; then the next call begins again. */
#define TABLES_SWEPT 128
bool tables_sweep(struct tables *t, bool (*stays)(void *ctx, uint32_t pid, uint64_t start_ns),
		  void *ctx);

/* Figures for the summary. bytes: of all slabs. */
struct tables_figures {
	uint64_t files, rows, rules, processes, bytes, bytes_used, evictions;
	uint64_t sorts; /* for tests: how often the files were sorted in the order of eviction */
};
void tables_figures(const struct tables *t, struct tables_figures *ret);
/* Fills *ret, except read_user and ctx, for a walk in user space. The contents are borrowed. */
void tables_env(struct tables *t, struct env *ret);
/* Sets the mappings for such a walk, in the form of tables_process_set. Only that walk sees them,
 * until the next call. Returns 0, TABLES_FULL or -ENOMEM. */
int tables_walk_maps(struct tables *t, const struct tables_mapping *m, size_t n,
		     struct process_entry *ret);

#endif
