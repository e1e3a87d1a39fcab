/* SPDX-License-Identifier: Apache-2.0 */
/* The sources that wake the loop: descriptors, signals and a timer. */
#ifndef PROF_BPF_RUN_WAKEUPS_H
#define PROF_BPF_RUN_WAKEUPS_H

#include <stdbool.h>
#include <stdint.h>

enum wakeups_source {
	WAKEUPS_TIMER,
	WAKEUPS_SIDEBAND,
	WAKEUPS_SIGNAL,
	WAKEUPS_LIFE,
	WAKEUPS_ROWS,
	WAKEUPS_ROWS_LANE,
	WAKEUPS_FILES,
	WAKEUPS_FILES_LANE,
	WAKEUPS_STREAM,
	WAKEUPS_HELPERS,
	WAKEUPS_CPUS,
	WAKEUPS_LATE_LOADER,
	WAKEUPS_SAMPLES
};

enum wakeups_how {
	WAKEUPS_ALWAYS, /* while the descriptor is readable */
	WAKEUPS_ONCE,	/* until wakeups_listen_again */
	WAKEUPS_EDGE,	/* when it becomes readable */
};

struct wakeups {
	int epoll, timer, signals;
	unsigned drain_ms; /* interval between two ticks of the timer */
};

/* Opens the timer, for this sampling rate, and a descriptor for SIGINT and SIGTERM, which are
 * blocked. Returns 0 or -errno. */
int wakeups_open(struct wakeups *w, unsigned hz);
/* Returns the interval between two ticks at this rate. */
unsigned wakeups_drain_ms(unsigned hz);
/* Listens to a descriptor; does nothing if it is -1. Returns 0 or -errno. */
int wakeups_add(struct wakeups *w, int fd, enum wakeups_source from, enum wakeups_how how);
/* Sets whether to listen to a descriptor of WAKEUPS_ALWAYS. */
void wakeups_listen(struct wakeups *w, int fd, enum wakeups_source from, bool hears);
/* Listens to a descriptor of WAKEUPS_ONCE until it is next readable. */
void wakeups_listen_again(struct wakeups *w, int fd, enum wakeups_source from);

/* Whether the timer has expired since the last call. */
bool wakeups_ticked(struct wakeups *w);
/* Returns the time until the next tick, in ns; 0: unknown. */
uint64_t wakeups_next_ns(const struct wakeups *w);
/* Makes the next tick come after this many ns; later ticks keep their interval. */
void wakeups_tick_after(struct wakeups *w, uint64_t ns);
/* Whether SIGINT or SIGTERM came since the last call. */
bool wakeups_signalled(struct wakeups *w);

#endif
