/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The boot clock converts CLOCK_MONOTONIC to CLOCK_BOOTTIME. Records use the former, which stops
 * while the host is suspended; start times of processes use the latter. Both are read from time to
 * time, so the moment of a suspend is known only that precisely.
 */
#ifndef PROF_BPF_HOST_PROCESSES_BOOTCLOCK_H
#define PROF_BPF_HOST_PROCESSES_BOOTCLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* All zeros: not read yet. */
struct bootclock {
	uint64_t noted_ns; /* CLOCK_MONOTONIC of the last reading */
	int64_t offset_ns; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC at that time */
	/* The last suspend lies between these two readings; before_ns is the offset before it. */
	uint64_t awake_ns, woken_ns;
	int64_t before_ns;
};

/* Reads both clocks. */
void bootclock_read(struct bootclock *b);
/* Takes readings of both clocks from the same moment. */
void bootclock_note(struct bootclock *b, uint64_t mono_ns, uint64_t boot_ns);
/* Converts a time of CLOCK_MONOTONIC to CLOCK_BOOTTIME. *ret_vague_ns: nonzero if the host was
 * suspended at about that time; the result may be up to this much too late. */
uint64_t bootclock_at(const struct bootclock *b, uint64_t mono_ns, uint64_t *ret_vague_ns);

#endif
