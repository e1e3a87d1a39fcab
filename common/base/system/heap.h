/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings of glibc's allocator that save memory at the cost of parallel allocation. There is one
 * arena; by default each of nng's dozen threads gets its own. Large free blocks, and free memory at
 * the end of the heap, return to the kernel. Threads have small stacks.
 */
#ifndef COMMON_BASE_SYSTEM_HEAP_H
#define COMMON_BASE_SYSTEM_HEAP_H

#include <malloc.h>
#include <pthread.h>

/* Bytes of a thread's stack, including its guard page. The whole stack counts as private memory at
 * once (RLIMIT_DATA): with the default of 8 MiB, nng's dozen threads would exceed all other
 * memory. */
#define HEAP_STACK (256 << 10)

/* Call it first in main, before any thread starts. */
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
