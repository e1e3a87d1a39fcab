/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the tools use glibc's allocator: for little memory rather than for threads that allocate side
 * by side. One arena (nng's dozen threads had one of their own each), and what is large or freed at
 * the end goes back to the kernel. Threads have small stacks.
 */
#ifndef PROFPIPE_HEAP_H
#define PROFPIPE_HEAP_H

#include <malloc.h>
#include <pthread.h>

/* Of a thread, its guard page included: what it may grow to counts as private memory from its start
 * (RLIMIT_DATA), and 8 MiB of each of nng's dozen would be more than all else. */
#define HEAP_STACK (256 << 10)

/* First in main, before any thread. */
static inline void heap_setup(void)
{
	mallopt(M_ARENA_MAX, 1);
	mallopt(M_MMAP_THRESHOLD, 256 << 10);
	mallopt(M_TRIM_THRESHOLD, 256 << 10);

	pthread_attr_t a;

	if (pthread_attr_init(&a) == 0) {
		if (pthread_attr_setstacksize(&a, HEAP_STACK) == 0)
			pthread_setattr_default_np(&a);
		pthread_attr_destroy(&a);
	}
}

#endif
