/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the tools use glibc's allocator: for little memory rather than for threads that allocate side
 * by side. One arena (nng's dozen threads had one of their own each), and what is large or freed at
 * the end goes back to the kernel.
 */
#ifndef PROFPIPE_HEAP_H
#define PROFPIPE_HEAP_H

#include <malloc.h>

/* First in main, before any thread. */
static inline void heap_setup(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 256 << 10);
	mallopt(M_TRIM_THRESHOLD, 256 << 10);
}

#endif
