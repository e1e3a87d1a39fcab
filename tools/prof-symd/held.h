/* SPDX-License-Identifier: Apache-2.0 */
/* Samples held back, since a frame in generated code has no name yet: in the order they came, with
 * a ceiling. */
#ifndef PROFPIPE_HELD_H
#define PROFPIPE_HELD_H

#include "common/msg.h"

#define HELD_MAX (64u << 10)
#define HELD_NS 60000000000ull /* no sample is held longer */

struct held_sample {
	struct msg_sample sample;
	uint64_t process; /* whose code it was */
	uint64_t version; /* of what was known of it then (jit_version) */
	uint64_t since_ns;
};

/* Zero-initialise. */
struct held {
	struct held_sample *at; /* [0, len), the oldest first */
	size_t len, cap;
};

void held_done(struct held *h);
/* 0, -ENOBUFS at the ceiling, -ENOMEM. */
int held_add(struct held *h, const struct held_sample *s);
/* Takes out those whose process was set to 0. */
void held_sweep(struct held *h);

#endif
