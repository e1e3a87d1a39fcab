/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of the unwind tables (tables.h), which share one struct:
 *
 * - tables_waiting.c: freed slots and extents that wait for the grace period
 * - tables_owners.c: the ledger of what owners hold
 * - tables_files.c: the slots of files
 * - tables_rows.c: the rows of files
 * - tables_processes.c: the mappings of processes
 * - tables.c: everything that needs several parts
 *
 * Each part uses only the parts above it in this list.
 */
#ifndef COMMON_WALK_TABLES_TABLES_INTERNAL_H
#define COMMON_WALK_TABLES_TABLES_INTERNAL_H

#include "common/base/tables/hashtable.h"
#include "common/walk/rows/array.h"
#include "common/walk/rows/incoming.h"
#include "common/walk/rows/rules.h"
#include "common/walk/rows/slabs.h"
#include "common/walk/tables/tables.h"

/* A file without samples for this long is idle; its score no longer counts. */
#define TABLES_IDLE_NS 10000000000ull
/* Interval between two checks whether the rows of a file are worth their memory again. */
#define TABLES_AGAIN_NS 1000000000ull
/* Arrays of mappings with at least this many words (2,048 mappings) are large. */
#define TABLES_LARGE_WORDS 16384u

struct victim;

struct table_file {
	uint8_t state; /* enum file_state, as in the map */
	uint32_t serial;
	bool unmapped;
	uint32_t owner;
	uint64_t held; /* words that the owner is charged for it */
	bool lacks_rules;
	bool lacking;	/* rows were evicted or refused for lack of memory, and have not come
			 * back */
	bool displaced; /* rows were evicted while samples needed them, and have not come back */
	/* TABLES_FILE_PENDING: idle rows were evicted and have not been requested again */
	bool resting;
	uint32_t score; /* recent samples, as of the period scored_at */
	uint64_t scored_at;
	uint64_t again_ns; /* TABLES_FILE_EVICTED: rows are not requested again before this time */
	uint64_t words;	   /* of its rows and index; 0 until known */
	uint64_t touched_ns, rows;
	struct slabs_extents extents; /* of index and rows */
	uint32_t *rules;	      /* distinct rule numbers; each holds one count in rules */
	uint32_t rule_count;
	struct incoming *in;
	struct runtime_config *runtime; /* owned; NULL if the file holds no runtime */
	struct slabs_extent runtime_extent;
};

struct table_process {
	uint32_t pid;
	uint64_t touched_ns; /* time of the last sample; 0: none yet */
	uint32_t owner;	     /* owner who is charged for maps */
	struct process_entry entry;
	struct slabs_extent maps;
	UT_hash_handle hh;
};

#define TABLES_REFUSALS 64
#define TABLES_OWNERS 4096 /* numbers of owners are below this */

/* Something that was freed and waits for the grace period. */
struct tables_waiting {
	enum { TABLES_WAITING_EXTENT, TABLES_WAITING_SLOT, TABLES_WAITING_RULE } what;
	struct slabs_extent extent;
	bool mappings;	 /* the extent held mappings */
	uint32_t owner;	 /* of an extent: who is charged until it is free; TABLES_NOBODY: no
			  * owner */
	uint32_t number; /* of a slot or a rule */
	uint64_t since_ns;
};

struct tables {
	struct tables_config config;
	struct slabs slabs;
	struct tables_waiting *waiting;
	size_t waiting_len, waiting_head, waiting_cap;
	size_t waiting_new; /* entries at the end that were freed since the last tick */
	uint64_t waiting_words;
	uint64_t waiting_of[TABLES_OWNERS]; /* words that wait and are charged, by owner */
	uint64_t large_words;	  /* words in large arrays of mappings, including those that wait */
	struct array files;	  /* struct file_entry, by slot */
	struct table_file *state; /* by slot */
	uint16_t *free_slots;
	uint32_t free_slot_count, next_slot;
	struct rules rules;
	struct table_process *processes;
	bool sweeps;			    /* tables_sweep is not at the beginning of the map, */
	uint32_t sweep_at;		    /* but here */
	const struct tables_ledger *ledger; /* NULL: there are no owners */
	uint32_t maps_owner;		    /* owner of mappings that are published next */
	struct victim *victims;		    /* files with rows, in the order of eviction, */
	size_t victim_count;
	bool sorted; /* and whether this order is still valid */
	/* Requests for which nothing could be evicted, by the owner's number modulo
	 * TABLES_REFUSALS. They hold for one round: evictions and sorting begin another. */
	struct tables_refusal {
		uint64_t round, worth, lacking;
		uint32_t owner;
	} refusals[TABLES_REFUSALS];
	uint64_t round;	 /* from 1 on, once the files are sorted */
	void *walk_maps; /* a slab of ordinary memory, or NULL */
	uint32_t generation, serial;
	uint64_t now_ns, slabs_ns;     /* slabs_ns: time of the last slabs_tick */
	uint64_t hurry_ns;	       /* tables_hurry does nothing before this time */
	uint64_t lowered_ns, raise_ns; /* for tables_limit. lowered_ns: when the limit was last
				        * lowered, or 0; raise_ns: since when higher limits are
				        * requested, or 0 */
	uint32_t raise_to;	       /* the lowest limit since raise_ns */
	struct tables_figures figures;
};

/* The taker of words: its owner, and how much may be evicted for it. */
struct tables_taker {
	uint64_t spare; /* words that must stay free for others */
	uint64_t worth; /* in samples; rows of files with less than half of it may be evicted */
	uint64_t all;	/* all words that it needs, including those of later calls */
	uint32_t owner;
	bool displaced; /* as in struct table_file: it must leave the fair part free for others */
};
#define TABLES_WORTH_ANY UINT64_MAX

static inline bool tables_extent_is_large(const struct slabs_extent *e)
{
	return e->words >= TABLES_LARGE_WORDS;
}

static inline struct file_entry *tables_file_at(struct tables *t, uint16_t slot)
{
	return (struct file_entry *)t->files.data + slot;
}

static inline bool tables_slot_live(const struct tables *t, uint16_t slot)
{
	return slot > 0 && slot < TABLES_MAX_FILES && t->state[slot].state != TABLES_FILE_FREE;
}

/* Call the ledger's functions, if there is a ledger. */
void tables_hold(struct tables *t, uint32_t owner, enum tables_resource what, int64_t n);
void tables_refuse(struct tables *t, uint32_t owner, enum tables_resource what);
/* Whether the owner would hold more than its share of `all` if it took n more. */
bool tables_is_large(const struct tables *t, uint32_t owner, enum tables_resource what, uint64_t n,
		     uint64_t all);

/* Frees something after the grace period. */
void tables_wait(struct tables *t, struct tables_waiting w);
void tables_wait_extent(struct tables *t, struct slabs_extent e, uint32_t owner);
void tables_wait_maps(struct tables *t, struct slabs_extent e, uint32_t owner);
/* Frees an array of mappings at once. Only for arrays that no walk can have seen. */
void tables_release_maps(struct tables *t, struct slabs_extent e);
/* Frees everything that has waited long enough by t->now_ns. */
void tables_release_waiting(struct tables *t);
/* Makes waiting memory usable at once, if the kernel tells that no walk reads it any more. Waits
 * for the kernel, at most a small part of the time. Returns false if nothing became usable. */
bool tables_hurry(struct tables *t);
/* Gives back closing slabs without data in use. */
void tables_drop_closing(struct tables *t);

void tables_file_set_state(struct tables *t, uint16_t slot, enum file_state state);
/* Drops a file's rows. Returns how many numbers of rules become free. */
uint32_t tables_file_drop_rows(struct tables *t, uint16_t slot);
void tables_file_drop_incoming(struct tables *t, uint16_t slot);
void tables_file_drop_runtime(struct tables *t, uint16_t slot);
/* Evicts a file's rows. Returns how many numbers of rules become free. */
uint32_t tables_file_evict(struct tables *t, uint16_t slot);
/* Returns how often the file was sampled recently. */
uint32_t tables_file_score(const struct table_file *f, uint64_t now_ns);
/* Whether the file's rows are probably not needed: no process maps it, or it had no samples for
 * TABLES_IDLE_NS. */
bool tables_file_is_idle(const struct tables *t, const struct table_file *f);

/* Returns the words of all slabs at the limit. */
uint64_t tables_all_words(const struct tables *t);
/* Returns the words that rows leave free for mappings. */
uint64_t tables_spare_words(const struct tables *t);
/* Takes words in one slab. Returns 0, TABLES_FULL or -errno. On TABLES_FULL it has evicted rows if
 * that is worth it, so a later call may succeed. */
int tables_take(struct tables *t, uint32_t words, struct tables_taker by, struct slabs_extent *ret);
/* Evicts rows in advance, since freed memory becomes usable only after the grace period: idle rows,
 * and rows of owners who hold more than their share. */
void tables_keep_room(struct tables *t);

/* Copies the mappings of processes out of closing slabs. */
void tables_move_processes(struct tables *t);

#endif
