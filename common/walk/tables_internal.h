/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the unwind tables (tables.h) that share one struct: what waits for the grace period
 * (tables_waiting.c), the slots of files (tables_files.c), their rows (tables_rows.c), and the
 * mappings of processes (tables_processes.c). Each uses only those named before it; tables.c uses
 * all.
 */
#ifndef PROFPIPE_TABLES_INTERNAL_H
#define PROFPIPE_TABLES_INTERNAL_H

#include <uthash.h>
#include "common/walk/array.h"
#include "common/walk/incoming.h"
#include "common/walk/rules.h"
#include "common/walk/slabs.h"
#include "common/walk/tables.h"

#define TABLES_IDLE_NS \
	10000000000ull /* of who was not sampled for so long the score is no matter */
#define TABLES_AGAIN_NS \
	1000000000ull /* between two looks whether rows are worth their room by now */
#define TABLES_LARGE_WORDS \
	16384u /* an array of mappings of so many is a large one: 2,048 of them */

struct table_file {
	uint8_t state; /* enum file_state, as in the map */
	uint32_t serial;
	bool unmapped;
	bool lacking;	/* rows went for want of memory, and have not come again */
	bool resting;	/* FILE_PENDING: nobody used its rows, and they are not asked for yet */
	uint32_t score; /* samples, of late; as of the period scored_at */
	uint64_t scored_at;
	uint64_t again_ns; /* FILE_EVICTED: its rows are not asked for before */
	uint64_t words;	   /* of its rows and index, as far as that is known */
	uint64_t touched_ns, rows;
	struct extents extents; /* index and rows */
	uint32_t *rules;	/* distinct rule numbers that it holds a count on */
	uint32_t rule_count;
	struct incoming *in;
	struct runtime_config *runtime; /* owned; NULL: it holds none */
	struct extent runtime_extent;
};

struct table_process {
	uint32_t pid;
	uint64_t touched_ns; /* by a sample; 0: never */
	struct process_entry entry;
	struct extent maps;
	UT_hash_handle hh;
};

/* Freed, and waiting for the grace period. */
struct waiting {
	enum { WAITING_EXTENT, WAITING_SLOT, WAITING_RULE } what;
	struct extent extent;
	bool mappings;	 /* of the extent: they were in it */
	uint32_t number; /* of a slot or a rule */
	uint64_t since_ns;
};

struct tables {
	struct tables_config config;
	struct slabs slabs;
	struct waiting *waiting;
	size_t waiting_len, waiting_head, waiting_cap;
	size_t waiting_new; /* so many, the last of them, were freed since the last tick */
	uint64_t waiting_words;
	uint64_t large_words;	  /* of large arrays of mappings, those that wait included */
	struct array files;	  /* of struct file_entry, by slot */
	struct table_file *state; /* likewise */
	uint16_t *free_slots;
	uint32_t free_slot_count, next_slot;
	struct rules rules;
	struct table_process *processes;
	void *walk_maps; /* a slab of our own memory, or NULL */
	uint32_t generation, serial;
	uint64_t now_ns, slabs_ns; /* when the slabs were looked after last */
	struct tables_figures figures;
};

/* Who takes words. */
struct taker {
	uint64_t spare; /* words that it leaves to others */
	uint64_t worth; /* samples: the rows of files with less than half of that may go for it */
	uint64_t all;	/* words, with those that it takes next */
};
#define WORTH_ANY UINT64_MAX

static inline bool extent_is_large(const struct extent *e)
{
	return e->words >= TABLES_LARGE_WORDS;
}

static inline struct file_entry *tables_file_at(struct tables *t, uint16_t slot)
{
	return (struct file_entry *)t->files.data + slot;
}

static inline bool tables_slot_live(const struct tables *t, uint16_t slot)
{
	return slot > 0 && slot < TABLES_MAX_FILES && t->state[slot].state != FILE_FREE;
}

/* Frees something after the grace period. */
void tables_wait(struct tables *t, struct waiting w);
void tables_wait_extent(struct tables *t, struct extent e);
/* Likewise, an array of mappings. */
void tables_wait_maps(struct tables *t, struct extent e);
/* Frees an array of mappings at once, since nobody has seen it. */
void tables_release_maps(struct tables *t, struct extent e);
/* Frees what has waited long enough, as of t->now_ns. */
void tables_release_waiting(struct tables *t);
/* Closing slabs in which nothing lives go at once. */
void tables_drop_closing(struct tables *t);

void tables_file_set_state(struct tables *t, uint16_t slot, enum file_state state);
void tables_file_drop_rows(struct tables *t, uint16_t slot);
void tables_file_drop_incoming(struct tables *t, uint16_t slot);
void tables_file_drop_runtime(struct tables *t, uint16_t slot);
void tables_file_evict(struct tables *t, uint16_t slot);
/* How often a file was sampled of late. */
uint32_t tables_file_score(const struct table_file *f, uint64_t now_ns);
/* Whether nobody uses its rows, as far as that is known. */
bool tables_file_is_idle(const struct tables *t, const struct table_file *f);

/* Words of all slabs, at the ceiling. */
uint64_t tables_all_words(const struct tables *t);
/* What rows leave to mappings. */
uint64_t tables_spare_words(const struct tables *t);
/* Takes words of one slab. TABLES_FULL: something is evicted, where that is worth it, for a later
 * try to find. */
int tables_take(struct tables *t, uint32_t words, struct taker by, struct extent *ret);
/* Evicts rows that nobody uses before others need their room. */
void tables_keep_room(struct tables *t);

/* Copies the mappings of all processes that lie in closing slabs into others. */
void tables_move_processes(struct tables *t);

#endif
