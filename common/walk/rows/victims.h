/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Victims: the files whose rows are evicted when others need their memory. Pure.
 *
 * If more files are sampled than fit, evicting and reloading rows at each sample would help nobody.
 * So a file displaces others only if it has twice the samples of all of them together, and only if
 * their memory is enough. Idle rows with few samples can be evicted for any file.
 */
#ifndef COMMON_WALK_ROWS_VICTIMS_H
#define COMMON_WALK_ROWS_VICTIMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file whose rows may be evicted. */
struct victim {
	uint16_t slot;
	uint32_t owner;
	bool idle;	  /* no process maps it, or it was not sampled for long */
	uint32_t samples; /* recent ones */
	uint64_t touched_ns, words;
};

/* Whether the file's rows can be evicted for any file. */
bool victim_is_free(const struct victim *v);
/* Sorts v[n] in the order of eviction: fewest samples first, then idle ones, then those whose last
 * sample is oldest. */
void victims_sort(struct victim *v, size_t n);
/* Keeps those victims that may be evicted for a file of owner `taker`, and returns their number.
 * spare: by owner, how many words each holds above its share; reduced by what the kept ones hold.
 * Files of an owner who holds more than its share may be evicted. With `only`, no other files are
 * kept. Otherwise the taker's own files are also kept, and idle ones of all owners. */
size_t victims_of_owners(struct victim *v, size_t n, uint32_t taker, uint64_t *spare, bool only);
/* Chooses victims among v[n], sorted, for a file with `worth` samples that needs `words`, and moves
 * them to the front. words 0: at least one victim. Returns their number, or 0 if they would not
 * free enough words. */
size_t victims_choose(struct victim *v, size_t n, uint64_t worth, uint64_t words);

#endif
