/* SPDX-License-Identifier: Apache-2.0 */
/* Losses: each part counts its losses from the start, and the stream gets the differences. */
#ifndef PROF_BPF_STREAM_LOSSES_H
#define PROF_BPF_STREAM_LOSSES_H

#include <stdint.h>

#define LOSSES_CPUS 1024

struct host;
struct loader;
struct output;
struct samples;
struct sideband;

struct losses {
	/* Borrowed. */
	struct output *output;
	struct loader *loader;
	const struct sideband *sideband;
	const struct host *host;
	const struct samples *samples;
	/* Counts sent so far. */
	uint64_t ring_full[LOSSES_CPUS], side_band[LOSSES_CPUS];
	uint64_t malformed, undecoded, untracked, unkept, queue_full, throttled;
	/* Openings that were put off when that was last logged, and the time of that. */
	uint64_t put_off, put_off_ns;
};

/* Ignores what the rings have lost so far, since sampling has not begun. */
void losses_forget(struct losses *l);
/* Sends the losses since the last call. */
void losses_send(struct losses *l);

#endif
