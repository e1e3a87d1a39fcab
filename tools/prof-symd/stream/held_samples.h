/* SPDX-License-Identifier: Apache-2.0 */
/* Held samples wait for the name of a frame in generated code. They are in the order in which they
 * came. Owners share the space for them (holdings.h). */
#ifndef PROF_SYMD_STREAM_HELD_SAMPLES_H
#define PROF_SYMD_STREAM_HELD_SAMPLES_H

#include "common/base/shares/holdings.h"
#include "common/wire/msg.h"

#define HELD_SAMPLES_MAX (64u << 10)
#define HELD_SAMPLES_NS 60000000000ull /* no sample is held longer than this */

struct held_sample {
	struct msg_sample sample;
	uint64_t process; /* process of the unnamed code */
	uint64_t version; /* jit_version of that process at the last look */
	uint64_t since_ns;
	uint64_t owner;
};

/* Zero-initialise. */
struct held_samples {
	struct held_sample *at; /* [0, len), the oldest first */
	size_t len, cap;
	struct holdings held_by;
};

void held_samples_done(struct held_samples *h);
/* Adds a sample. Returns 0, -ENOBUFS at the limit, or -ENOMEM. */
int held_samples_add(struct held_samples *h, const struct held_sample *s);
/* At the limit: returns the last sample of the owner who must give up a place to this one, or
 * NULL. */
struct held_sample *held_samples_last(struct held_samples *h, uint64_t owner);
/* Replaces one sample with another. */
void held_samples_replace(struct held_samples *h, struct held_sample *at,
			  const struct held_sample *s);
/* Removes samples whose process the caller set to 0. */
void held_samples_sweep(struct held_samples *h);

#endif
