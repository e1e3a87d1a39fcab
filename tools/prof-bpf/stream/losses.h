/* SPDX-License-Identifier: Apache-2.0 */
/* Losses: each part counts its losses from the start, and the stream gets the differences. */
#ifndef PROF_BPF_STREAM_LOSSES_H
#define PROF_BPF_STREAM_LOSSES_H

#include <stdint.h>
#include "common/status/status.h"
#include "tools/prof-bpf/owners/owners.h"

#define LOSSES_CPUS 1024

struct host;
struct loader;
struct output;
struct sideband;

/* Dropped samples, among those that the kernel delivered, counted from the start. */
struct losses_of_samples {
	uint64_t queue_full, throttled;
	uint64_t cpu_limited; /* dropped for the cpu limit */
	uint64_t unkept;      /* their process or thread did not fit the host's tables */
};

struct losses {
	/* Borrowed. */
	struct output *output;
	struct loader *loader;
	const struct sideband *sideband;
	struct host *host;
	const struct losses_of_samples *samples;
	/* Counts sent so far. */
	uint64_t ring_full[LOSSES_CPUS], side_band[LOSSES_CPUS];
	uint64_t malformed, undecoded, untracked, unkept, queue_full, throttled, cpu_limited;
	uint64_t sent[STATUS_REASONS]; /* sums of these, by enum lost_reason */
	/* For each resource: the most refusals of one owner when that was last logged, and when. */
	uint64_t refused[OWNER_RESOURCES], refused_ns[OWNER_RESOURCES];
	/* Number of deferred openings when that was last logged, and when. */
	uint64_t deferred, deferred_ns;
	/* Number of samples truncated because definitions did not fit, likewise. */
	uint64_t truncations, truncations_ns;
};

/* Ignores what the rings have lost so far, since sampling has not begun. */
void losses_forget(struct losses *l);
/* Sends the losses since the last call. */
void losses_send(struct losses *l);

#endif
