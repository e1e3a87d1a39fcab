/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool: one ceiling for several growing arrays. They charge it before they allocate. If the
 * system refuses an allocation, that counts as the ceiling.
 */
#ifndef PROF_EXPORT_MODEL_POOL_H
#define PROF_EXPORT_MODEL_POOL_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

struct pool {
	size_t used, max; /* bytes */
};

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
	/* If one and a half times the room does not fit, the wanted room may. */
	for (;; n = want) {
		size_t bytes;

		if (__builtin_mul_overflow(n - *cap, size, &bytes))
			return NULL;
		if (bytes <= p->max - p->used) {
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

/* Frees data, takes its charge back, and zeroes *cap. */
static inline void pool_free(struct pool *p, void *data, size_t *cap, size_t size)
{
	p->used -= *cap * size;
	*cap = 0;
	free(data);
}

/* A growing array of one type. ARRAY_ROOM makes room for n more; false at the ceiling. */
#define ARRAY(type) \
	struct { \
		type *data; \
		size_t len, cap; \
	}
#define ARRAY_ROOM(pool, array, n) \
	({ \
		void *more_ = pool_grow((pool), (array)->data, &(array)->cap, (array)->len + (n), \
					sizeof(*(array)->data)); \
		if (more_) \
			(array)->data = more_; \
		!!more_; \
	})
#define ARRAY_FREE(pool, array) \
	do { \
		pool_free((pool), (array)->data, &(array)->cap, sizeof(*(array)->data)); \
		(array)->data = NULL; \
		(array)->len = 0; \
	} while (0)

#endif
