/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Remembers which objects lost their name or their copy for lack of memory, by the keys of their
 * ids, to tell this from objects that are gone. New ones replace old ones of the same place. Pure.
 */
#ifndef PROF_SYMD_OBJECTS_FORGOTTEN_H
#define PROF_SYMD_OBJECTS_FORGOTTEN_H

#include <stdbool.h>
#include <stdint.h>

#define FORGOTTEN_PLACES 16384 /* a power of two */

/* Zero-initialise. */
struct forgotten {
	uint32_t at[FORGOTTEN_PLACES]; /* the upper half of a key; 0: none */
};

static inline uint32_t *forgotten_place(struct forgotten *f, uint64_t key)
{
	return &f->at[key & (FORGOTTEN_PLACES - 1)];
}

static inline uint32_t forgotten_tag(uint64_t key)
{
	return (uint32_t)(key >> 32) | 1;
}

static inline void forgotten_add(struct forgotten *f, uint64_t key)
{
	*forgotten_place(f, key) = forgotten_tag(key);
}

static inline void forgotten_remove(struct forgotten *f, uint64_t key)
{
	if (*forgotten_place(f, key) == forgotten_tag(key))
		*forgotten_place(f, key) = 0;
}

static inline bool forgotten_has(const struct forgotten *f, uint64_t key)
{
	return f->at[key & (FORGOTTEN_PLACES - 1)] == forgotten_tag(key);
}

#endif
