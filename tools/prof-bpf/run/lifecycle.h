/* SPDX-License-Identifier: Apache-2.0 */
/* The lifecycle of a run: its phases, and how it ends. Times are CLOCK_MONOTONIC. */
#ifndef PROF_BPF_RUN_LIFECYCLE_H
#define PROF_BPF_RUN_LIFECYCLE_H

#include <stdbool.h>
#include <stdint.h>
#include "common/base/system/clock.h"

/* LIFECYCLE_DRAINING: sampling has ended, and the last samples wait for rows and names.
 * LIFECYCLE_FINISHING: the end was sent. */
enum lifecycle_phase {
	LIFECYCLE_CONNECTING,
	LIFECYCLE_SAMPLING,
	LIFECYCLE_DRAINING,
	LIFECYCLE_FINISHING
};

struct lifecycle {
	enum lifecycle_phase phase;
	uint64_t since_ns;		  /* when the phase began */
	uint64_t began_ns;		  /* when this process began */
	uint64_t sampling_ns, sampled_ns; /* beginning and end of sampling; 0: not yet */
	bool paused;			  /* paused by the launcher */
	bool exit_now, failed;
	bool again; /* failed, but a restart may succeed */
};

static inline void lifecycle_enter(struct lifecycle *c, enum lifecycle_phase phase)
{
	c->phase = phase;
	c->since_ns = clock_mono_ns();
}

/* Ends the run because it cannot continue; the reason was logged. again: a restart may help. */
static inline void lifecycle_fail(struct lifecycle *c, bool again)
{
	c->again = again;
	c->failed = c->exit_now = true;
}

#endif
