/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs: the memory of the unwind tables (bpf/tables.h), and the allocator of extents in it. The
 * slabs are inner maps of one array of maps, of 2 MiB each.
 *
 * An extent is a range of words in one slab. An array holds the free extents, sorted by position;
 * neighbours are merged, and the first extent that fits is taken. Sizes are rounded up to
 * SLABS_EXTENT_WORDS, so that the many small arrays of mappings leave holes that fit the next one.
 *
 * This process maps slabs only while it uses them, page by page. Otherwise the kernel's pages would
 * count twice, and mapping a whole slab costs more than most uses of it.
 */
#ifndef COMMON_WALK_ROWS_SLABS_H
#define COMMON_WALK_ROWS_SLABS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpf/tables.h"

#define SLABS_EXTENT_WORDS 32u
#define SLABS_PAGE 4096u
#define SLABS_PAGES (TABLES_SLAB_BYTES / SLABS_PAGE)

struct slabs_extent {
	uint32_t position, words;
};
struct slabs_extents {
	struct slabs_extent *data;
	size_t len, cap;
};
/* Inserts an extent at an index. Returns 0 or -ENOMEM. */
int slabs_extents_insert(struct slabs_extents *x, size_t at, struct slabs_extent e);

struct slab_slot {
	int fd;
	char *data; /* TABLES_SLAB_BYTES of address space; ordinary memory if there is no map */
	uint64_t mapped[SLABS_PAGES / 64]; /* a bit for each page of the map in data */
	uint32_t pages;			   /* how many of those bits are set */
	bool used;			   /* since the last slabs_tick */
	bool closing;			   /* to be given back: no more extents are taken in it */
};

struct slabs {
	int map_fd; /* the array of maps, borrowed; -1: ordinary memory */
	struct slab_slot slot[TABLES_MAX_SLABS]; /* data is NULL if the slab does not exist */
	uint32_t count, closing;		 /* numbers of slabs */
	uint32_t max, top; /* max: limit of count; top: first slot that was never
					  * used */
	uint32_t pages;	   /* mapped now, in all slabs */
	uint32_t ticks;	   /* calls of slabs_tick */
	struct slabs_extents free;
	uint64_t bytes, bytes_used; /* bytes: of all slabs; bytes_used: of all extents that are
				     * taken */
};

enum slabs_verdict { SLABS_FULL = 1 /* the limit is reached, or the host lacks memory */ };

/* Prepares at most `max` slabs (1 to TABLES_MAX_SLABS), and makes the first one at once: adding a
 * slab waits about 10 ms for the kernel's grace period, and no process waits yet. Returns 0,
 * SLABS_FULL, -ENOMEM or -errno. */
int slabs_init(struct slabs *s, int map_fd, uint32_t max);
void slabs_done(struct slabs *s);
/* Takes an extent of `words` in one slab. Returns 0, SLABS_FULL or -errno. */
int slabs_take(struct slabs *s, uint32_t words, struct slabs_extent *ret);
/* Gives an extent back. An extent of 0 words is ignored. */
void slabs_release(struct slabs *s, struct slabs_extent e);
/* Returns the address of `words` at a position, or of those that lie in its slab, to read and
 * write. NULL if they cannot be mapped. Valid until the next call. */
uint32_t *slabs_at(struct slabs *s, uint32_t position, uint32_t words);
/* Sets the limit, at least one slab. If there are more slabs now, slabs_excess tells how many must
 * go. */
void slabs_limit(struct slabs *s, uint32_t max);
/* Returns how many slabs exceed the limit, without those that are closing. */
uint32_t slabs_excess(const struct slabs *s);
/* Stops taking extents in slab i. The slab goes once all its extents are released. */
void slabs_close(struct slabs *s, uint32_t i);
bool slabs_closing(const struct slabs *s, struct slabs_extent e);
/* Gives closing slab i back at once if all of it is free, except for unused_words that hold no data
 * in use. Waits until no walk in the kernel reads the slab. Returns whether the slab is gone. */
bool slabs_drop_closing(struct slabs *s, uint32_t i, uint32_t unused_words);
/* Waits until all walks that run in the kernel now have ended, usually for 5 to 30 ms. Returns
 * false if the kernel refuses, or has no slabs. */
bool slabs_await_walks(struct slabs *s);
/* Call it about once a second. Unmaps pages that were idle since the last call, gives back an empty
 * slab, and makes the next slab before it is needed. */
void slabs_tick(struct slabs *s);

#endif
