/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slabs: the memory of the unwind tables (bpf/tables.h), taken from the kernel 2 MiB at a time as
 * inner maps of one array of maps, and the allocator of extents in them.
 *
 * An extent is a run of words in one slab. Free extents stand in one array sorted by position and
 * are merged with their neighbours; the first that fits is taken. Sizes are rounded to
 * EXTENT_WORDS, so that the many small arrays of mappings leave holes that fit the next one. Slabs
 * are mapped into this process only while they are used: the kernel's pages would otherwise count
 * twice.
 */
#ifndef PROFPIPE_SLABS_H
#define PROFPIPE_SLABS_H

#include <stddef.h>
#include <stdint.h>
#include "bpf/tables.h"

#define EXTENT_WORDS 32u

struct extent {
	uint32_t position, words;
};
struct extents {
	struct extent *data;
	size_t len, cap;
};
/* 0, -ENOMEM. */
int extents_insert(struct extents *x, size_t at, struct extent e);
void extents_done(struct extents *x);

struct slab_slot {
	int fd;
	void *data;    /* mapped now, or NULL; ordinary memory for good when there is no map */
	uint64_t used; /* tick of last use, for the choice of what to unmap */
};

struct slabs {
	int map_fd; /* the array of maps, borrowed; -1: ordinary memory */
	struct slab_slot slot[SLAB_MAX];
	uint32_t count, max;
	uint64_t use_tick, idle_tick;
	struct extents free;
	uint64_t bytes, bytes_used; /* of all slabs, and of what was taken of them */
};

enum slabs_verdict { SLABS_FULL = 1 /* the ceiling is reached */ };

/* max: slabs, 1 to SLAB_MAX. The first is made at once: entering one waits for the kernel's grace
 * period, some 10 ms, better now than when a process waits for it. SLABS_FULL, -ENOMEM, -errno. */
int slabs_init(struct slabs *s, int map_fd, uint32_t max);
void slabs_done(struct slabs *s);
/* Takes words of one slab. 0, SLABS_FULL, -ENOMEM, -errno. */
int slabs_take(struct slabs *s, uint32_t words, struct extent *ret);
/* Gives an extent back; one of no words is none. */
void slabs_release(struct slabs *s, struct extent e);
/* Where a position can be written and read. NULL when the slab cannot be mapped. Holds until other
 * slabs are asked for. */
uint32_t *slabs_at(struct slabs *s, uint32_t position);
/* A few times a second: unmaps what is idle, and makes the next slab before it is needed. */
void slabs_tick(struct slabs *s);

#endif
