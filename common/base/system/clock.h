/* SPDX-License-Identifier: Apache-2.0 */
/* The clocks and their times, in ns. The stream uses CLOCK_MONOTONIC, outputs show CLOCK_REALTIME,
 * and a process's start is CLOCK_BOOTTIME. */
#ifndef COMMON_BASE_SYSTEM_CLOCK_H
#define COMMON_BASE_SYSTEM_CLOCK_H

#include <stdint.h>
#include <sys/time.h>
#include <sys/types.h>
#include <time.h>

/* Set in the id of a clock that shows the cpu time of another process. Most lists of system calls
 * refuse such ids. */
#define CLOCK_OTHERS (1u << 31)

static inline uint64_t clock_timespec_ns(struct timespec t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static inline struct timespec clock_timespec(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
				  .tv_nsec = (long)(ns % 1000000000u) };
}

static inline uint64_t clock_timeval_ns(struct timeval t)
{
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_usec * 1000u;
}

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return clock_timespec_ns(t);
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

/* One moment on several clocks. */
struct clock_moment {
	uint64_t mono_ns, wall_ns, boot_ns;
};
/* Returns the present moment. If this thread loses its cpu between two clocks, they are read
 * again, a few times at most. */
static inline struct clock_moment clock_moment_now(void)
{
	struct clock_moment best = { 0 };
	uint64_t least_ns = UINT64_MAX;

	for (int i = 0; i < 10 && least_ns > 20000; i++) {
		const struct clock_moment m = { .mono_ns = clock_mono_ns(),
						.wall_ns = clock_wall_ns(),
						.boot_ns = clock_boot_ns() };
		const uint64_t took_ns = clock_mono_ns() - m.mono_ns;

		if (took_ns < least_ns) {
			best = m;
			least_ns = took_ns;
		}
	}
	return best;
}

/* The cpu time that a process has used; 0: there is none. The id is that of clock_getcpuclockid(3),
 * which makes a system call more. */
static inline uint64_t clock_cpu_ns(pid_t pid)
{
	struct timespec t;

	if (pid <= 0 || clock_gettime((clockid_t)(~(unsigned)pid << 3 | 2), &t))
		return 0;
	return clock_timespec_ns(t);
}

#endif
