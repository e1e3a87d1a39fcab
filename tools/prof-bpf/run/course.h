/* SPDX-License-Identifier: Apache-2.0 */
/* The course of a run: its phases, and how it ends. Times are CLOCK_MONOTONIC. */
#ifndef PROF_BPF_RUN_COURSE_H
#define PROF_BPF_RUN_COURSE_H

#include <stdbool.h>
#include <stdint.h>
#include "common/base/system/clock.h"

/* COURSE_DRAINING: sampling has ended, and the last samples wait for rows and names.
 * COURSE_FINISHING: the end was sent. */
enum course_phase { COURSE_CONNECTING, COURSE_SAMPLING, COURSE_DRAINING, COURSE_FINISHING };

struct course {
	enum course_phase phase;
	uint64_t since_ns;		  /* when the phase began */
	uint64_t began_ns;		  /* when this process began */
	uint64_t sampling_ns, sampled_ns; /* beginning and end of sampling; 0: not yet */
	bool paused;			  /* paused by the launcher */
	bool exit_now, failed;
	bool again; /* failed, but a restart may succeed */
};

static inline void course_enter(struct course *c, enum course_phase phase)
{
	c->phase = phase;
	c->since_ns = clock_mono_ns();
}

/* Ends the run because it cannot continue; the reason was logged. again: a restart may help. */
static inline void course_fail(struct course *c, bool again)
{
	c->again = again;
	c->failed = c->exit_now = true;
}

#endif
