/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded: makes allocations fail for some time. STARVE=FROM:TO:EACH: between FROM
 * and TO milliseconds after the start, one in EACH calls fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

void *__libc_malloc(size_t n);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t n);

static uint64_t from, to, begun;
static unsigned each, calls;

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

__attribute__((constructor)) static void begin(void)
{
	const char *s = getenv("STARVE");

	if (s && sscanf(s, "%lu:%lu:%u", &from, &to, &each) == 3)
		begun = now();
}

static int starves(void)
{
	if (!begun)
		return 0;
	const uint64_t ms = now() - begun;

	if (ms < from || ms >= to || __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED) % each)
		return 0;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t n)
{
	return starves() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	return starves() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	return starves() ? NULL : __libc_realloc(p, n);
}

void *reallocarray(void *p, size_t n, size_t size)
{
	size_t all;

	if (__builtin_mul_overflow(n, size, &all)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, all);
}
