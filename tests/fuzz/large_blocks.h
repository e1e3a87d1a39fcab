/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps large blocks for the next run, which asks for the same sizes. AddressSanitizer maps and
 * unmaps each large block, which costs a hundred times what a parser does with it. Freed blocks are
 * poisoned, and each has exactly the size that was asked for, so errors are still found.
 *
 * For one C file of a target that is linked with LARGE_BLOCKS of module.mk.
 */
#ifndef TESTS_FUZZ_LARGE_BLOCKS_H
#define TESTS_FUZZ_LARGE_BLOCKS_H

#include <sanitizer/asan_interface.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define LARGE_LEAST ((size_t)100 << 10)
#define LARGE_BLOCKS 32

static struct {
	void *p; /* NULL: a free place */
	size_t size;
	bool used;
} large_blocks[LARGE_BLOCKS];

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);

/* The index of a block, or -1. */
static inline int large_find(const void *p)
{
	for (int i = 0; i < LARGE_BLOCKS; i++)
		if (p && large_blocks[i].p == p)
			return i;
	return -1;
}

void *__wrap_malloc(size_t size)
{
	int place = -1;

	if (size < LARGE_LEAST)
		return __real_malloc(size);
	for (int i = 0; i < LARGE_BLOCKS; i++) {
		if (large_blocks[i].p && !large_blocks[i].used && large_blocks[i].size == size) {
			large_blocks[i].used = true;
			ASAN_UNPOISON_MEMORY_REGION(large_blocks[i].p, size);
			return large_blocks[i].p;
		}
		if (!large_blocks[i].p)
			place = i;
	}
	void *p = __real_malloc(size);

	if (p && place >= 0) {
		large_blocks[place].p = p;
		large_blocks[place].size = size;
		large_blocks[place].used = true;
	}
	return p;
}

void *__wrap_calloc(size_t n, size_t size)
{
	size_t all;

	if (__builtin_mul_overflow(n, size, &all) || all < LARGE_LEAST)
		return __real_calloc(n, size);
	void *p = __wrap_malloc(all);

	return p ? memset(p, 0, all) : NULL;
}

void *__wrap_realloc(void *p, size_t size)
{
	const int i = large_find(p);

	if (i < 0)
		return __real_realloc(p, size);
	void *grown = __real_malloc(size);

	if (grown) {
		memcpy(grown, p, size < large_blocks[i].size ? size : large_blocks[i].size);
		__wrap_free(p);
	}
	return grown;
}

void __wrap_free(void *p)
{
	const int i = large_find(p);

	if (i < 0) {
		__real_free(p);
		return;
	}
	/* Freed twice, or never allocated here. */
	if (!large_blocks[i].used)
		abort();
	large_blocks[i].used = false;
	ASAN_POISON_MEMORY_REGION(p, large_blocks[i].size);
}

#endif
