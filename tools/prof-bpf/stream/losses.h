/* SPDX-License-Identifier: Apache-2.0 */
/* Losses: whoever has lost something counts it from the start; the stream gets the differences. */
#ifndef PROFPIPE_LOSSES_H
#define PROFPIPE_LOSSES_H

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
	/* How many were sent so far. */
	uint64_t ring_full[LOSSES_CPUS], side_band[LOSSES_CPUS];
	uint64_t malformed, undecoded, untracked, unkept, queue_full, throttled;
	/* Openings that were put off, when that was logged last; and when that was. */
	uint64_t put_off, put_off_ns;
};

/* What the rings have lost until now is nobody's loss: sampling has not begun. */
void losses_forget(struct losses *l);
/* Sends what was lost since it was last sent. */
void losses_send(struct losses *l);

#endif
