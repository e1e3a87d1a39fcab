/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs: the memory of the unwind tables (bpf/tables.h), taken from the kernel 2 MiB at a time as
 * inner maps of one array of maps, and the allocator of extents in them.
 *
 * An extent is a run of words in one slab. Free extents stand in one array sorted by position and
 * are merged with their neighbours; the first that fits is taken. Sizes are rounded to
 * EXTENT_WORDS, so that the many small arrays of mappings leave holes that fit the next one. Slabs
 * are mapped into this process only while they are used, page by page: the kernel's pages would
 * otherwise count twice, and mapping all of one costs more than most uses of it.
 */
#ifndef PROFPIPE_SLABS_H
#define PROFPIPE_SLABS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpf/tables.h"

#define EXTENT_WORDS 32u
#define SLAB_PAGE 4096u
#define SLAB_PAGES (SLAB_BYTES / SLAB_PAGE)

struct extent {
	uint32_t position, words;
};
struct extents {
	struct extent *data;
	size_t len, cap;
};
/* 0, -ENOMEM. */
int extents_insert(struct extents *x, size_t at, struct extent e);

struct slab_slot {
	int fd;
	char *data; /* SLAB_BYTES of address space; ordinary memory when there is no map */
	uint64_t mapped[SLAB_PAGES / 64]; /* a bit a page of it that is the map's */
	uint32_t pages;			  /* of those bits */
	bool used;			  /* since the last tick */
	bool closing;			  /* nothing more is taken of it: it is to go */
};

struct slabs {
	int map_fd;			 /* the array of maps, borrowed; -1: ordinary memory */
	struct slab_slot slot[SLAB_MAX]; /* without data: none */
	uint32_t count, closing;	 /* of them */
	uint32_t max, top;		 /* their ceiling, and the first number never used */
	uint32_t pages;			 /* mapped now, of all slabs */
	struct extents free;
	uint64_t bytes, bytes_used; /* of all slabs, and of what was taken of them */
};

enum slabs_verdict { SLABS_FULL = 1 /* the ceiling is reached, or the host's memory is */ };

/* max: slabs, 1 to SLAB_MAX. The first is made at once: entering one waits for the kernel's grace
 * period, some 10 ms, better now than when a process waits for it. SLABS_FULL, -ENOMEM, -errno. */
int slabs_init(struct slabs *s, int map_fd, uint32_t max);
void slabs_done(struct slabs *s);
/* Takes words of one slab. 0, SLABS_FULL, -errno. */
int slabs_take(struct slabs *s, uint32_t words, struct extent *ret);
/* Gives an extent back; one of no words is none. */
void slabs_release(struct slabs *s, struct extent e);
/* Where `words` from a position on, or those of them in its slab, can be written and read. NULL
 * when they cannot be mapped. Holds until other words are asked for. */
uint32_t *slabs_at(struct slabs *s, uint32_t position, uint32_t words);
/* Another ceiling, of at least one slab. It may lie below what there is: slabs_excess are to go. */
void slabs_limit(struct slabs *s, uint32_t max);
/* How many slabs there are above the ceiling, those that are closing not among them. */
uint32_t slabs_excess(const struct slabs *s);
/* Nothing more is taken of slab i, which goes when all of it was released. */
void slabs_close(struct slabs *s, uint32_t i);
bool slabs_closing(const struct slabs *s, struct extent e);
/* Gives slab i back at once, if it is closing and all of it is free but for so many words, which
 * nobody uses: waits until no walk in the kernel reads it. Whether it is gone. */
bool slabs_drop_closing(struct slabs *s, uint32_t i, uint32_t unused_words);
/* Once a second or so: unmaps what was idle since the last call, gives back a slab that nothing
 * lies in, and makes the next slab before it is needed. */
void slabs_tick(struct slabs *s);

#endif
