/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks, in ns. The stream uses CLOCK_MONOTONIC, outputs show CLOCK_REALTIME, and a process's
 * start is CLOCK_BOOTTIME. */
#ifndef COMMON_BASE_CLOCK_H
#define COMMON_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline uint64_t clock_mono_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static inline uint64_t clock_boot_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

static inline uint64_t clock_wall_ns(void)
{
	return clock_ns(CLOCK_REALTIME);
}

#endif
