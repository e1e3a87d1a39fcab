/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cpu limit: a part of the host's cpus that all tools together may use, over ten seconds. From
 * the time used it derives what to slow down or drop, optional work first:
 *
 * - above half of the limit, prof-deltas and prof-symd sleep after each tick of their work
 *   (lastword.h). The more time was used, the longer they sleep. New files get their rows and names
 *   later. prof-bpf itself spends less time on what owners can cause (owners/turns.h);
 * - above three quarters, a part of the samples is dropped before anything is done with them, and
 *   counted. At the limit, all but a few are dropped. thinning.h decides which.
 *
 * Most work for a sample happens after it was kept. So once samples are dropped, the part that is
 * kept grows only in steps. It shrinks if the last second took more than its part of the limit.
 * Otherwise the tools would use up the limit at once, keep nothing for ten seconds, and begin
 * again.
 *
 * prof-bpf always drains the rings and reads side-band records; otherwise the kernel would drop any
 * number of them.
 */
#ifndef PROF_BPF_LIMIT_CPULIMIT_H
#define PROF_BPF_LIMIT_CPULIMIT_H

#include <stdbool.h>
#include <stdint.h>
#include "tools/prof-bpf/limit/meter.h"

#define CPULIMIT_STEP_NS 250000000ull
#define CPULIMIT_STEPS 40     /* steps of the ten seconds */
#define CPULIMIT_CALM_STEPS 4 /* between two looks, while much of the limit is left */
#define CPULIMIT_ALL 4096     /* the number of parts that all samples are divided into */
#define CPULIMIT_REST_ALL 38  /* longest sleep after a tick, in lengths of the tick */

struct cpulimit {
	unsigned cpus;	   /* number of cpus of the host */
	uint64_t limit_ns; /* cpu time in ten seconds; 0: there is no limit */
	uint64_t last_ns;  /* time of the last look; 0: none */
	uint64_t total_ns[METER_TOOLS];
	uint64_t used_ns[CPULIMIT_STEPS]; /* a ring buffer */
	unsigned step;
	bool calm; /* the ten seconds took less than a quarter of the limit */
	/* Derived from the time used. */
	uint64_t rest_ms;
	unsigned drop;	/* how many of CPULIMIT_ALL parts are dropped */
	uint32_t least; /* this many samples of a step are kept in any case */
};

/* percent: of all cpus; 0: no limit. */
void cpulimit_init(struct cpulimit *c, unsigned percent, unsigned cpus);
/* Changes the limit. Earlier cpu time counts against the new one. */
void cpulimit_set(struct cpulimit *c, unsigned percent);
/* Takes what the tools have used since the last step. Sets rest_ms and drop. Pure. */
void cpulimit_step(struct cpulimit *c, uint64_t used_ns);
/* Measures what the tools have used, if it is time. Returns whether it did. */
bool cpulimit_run(struct cpulimit *c, struct meter *m, uint64_t now_ns);

#endif
