/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool: one ceiling for several growing arrays, which charge their memory before they allocate
 * it. If the system refuses an allocation, this counts as reaching the ceiling.
 *
 * The last part of the pool is a reserve. While the pool is frugal, arrays may not grow into it.
 * Once everything before the reserve is used, the pool is closed: nothing is added, even to an
 * array that has room.
 */
#ifndef PROF_EXPORT_MODEL_DEFINITIONS_POOL_H
#define PROF_EXPORT_MODEL_DEFINITIONS_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct pool {
	size_t used, max, reserve; /* bytes */
	bool frugal;
};

static inline bool pool_is_scarce(const struct pool *p)
{
	return p->used > p->max || p->max - p->used <= p->reserve;
}

static inline bool pool_is_closed(const struct pool *p)
{
	return p->frugal && p->reserve && pool_is_scarce(p);
}

/* The number of bytes by which arrays may grow now. */
static inline size_t pool_room(const struct pool *p)
{
	const size_t kept = p->frugal ? p->reserve : 0;

	return p->used < p->max && p->max - p->used > kept ? p->max - p->used - kept : 0;
}

/* Whether these bytes would reach into the reserve. */
static inline bool pool_is_tight(const struct pool *p, size_t bytes)
{
	return p->reserve && (pool_is_scarce(p) || p->max - p->used - p->reserve < bytes);
}

#define POOL_STEP 128 /* elements by which arrays grow into the reserve */

/* Returns data (cap elements of `size` bytes, or NULL) with room for at least `want` elements. NULL
 * at the ceiling; data is then unchanged. */
static inline void *pool_grow(struct pool *p, void *data, size_t *cap, size_t want, size_t size)
{
	if (want <= *cap)
		return data;
	size_t n = *cap + *cap / 2;

	if (n < want)
		n = want;
	if (n < 16)
		n = 16;
	/* A large step would use up the reserve, which others also need. */
	if (n > want + POOL_STEP && pool_is_tight(p, (n - *cap) * size))
		n = want + POOL_STEP;
	/* If growing by half does not fit, try exactly what is wanted. */
	for (;; n = want) {
		size_t bytes;

		if (__builtin_mul_overflow(n - *cap, size, &bytes))
			return NULL;
		if (bytes <= pool_room(p)) {
			void *more = reallocarray(data, n, size);

			if (!more)
				return NULL;
			p->used += bytes;
			*cap = n;
			return more;
		}
		if (n == want)
			return NULL;
	}
}

/* Frees data, returns its charge to the pool, and sets *cap to 0. */
static inline void pool_free(struct pool *p, void *data, size_t *cap, size_t size)
{
	p->used -= *cap * size;
	*cap = 0;
	free(data);
}

/* A growing array of one type. POOL_ARRAY_ROOM makes room for n more elements; it returns false at
 * the ceiling. */
#define POOL_ARRAY(type) \
	struct { \
		type *data; \
		size_t len, cap; \
	}
#define POOL_ARRAY_ROOM(pool, array, n) \
	({ \
		void *more_ = pool_grow((pool), (array)->data, &(array)->cap, (array)->len + (n), \
					sizeof(*(array)->data)); \
		if (more_) \
			(array)->data = more_; \
		!!more_; \
	})
#define POOL_ARRAY_FREE(pool, array) \
	do { \
		pool_free((pool), (array)->data, &(array)->cap, sizeof(*(array)->data)); \
		(array)->data = NULL; \
		(array)->len = 0; \
	} while (0)

#endif
