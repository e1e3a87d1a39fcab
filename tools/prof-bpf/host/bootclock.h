/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What CLOCK_BOOTTIME said at a moment of CLOCK_MONOTONIC: the latter stands still while the host
 * is suspended, and records carry it, while processes' start times are of the former. Both are read
 * now and then, so when they moved apart is known as closely as that.
 */
#ifndef PROFPIPE_BOOTCLOCK_H
#define PROFPIPE_BOOTCLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Zeroed: nothing was read yet. */
struct bootclock {
	uint64_t noted_ns; /* CLOCK_MONOTONIC of the last reading */
	int64_t offset_ns; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC, then */
	/* The last suspend was between these two readings; the offset before it. */
	uint64_t awake_ns, woken_ns;
	int64_t before_ns;
};

/* Reads both. */
void bootclock_read(struct bootclock *b);
/* What both said at one moment. */
void bootclock_note(struct bootclock *b, uint64_t mono_ns, uint64_t boot_ns);
/* CLOCK_BOOTTIME at a moment of CLOCK_MONOTONIC. *ret_vague_ns: the host was suspended about then,
 * and it may be so much earlier; else 0. */
uint64_t bootclock_at(const struct bootclock *b, uint64_t mono_ns, uint64_t *ret_vague_ns);

#endif
