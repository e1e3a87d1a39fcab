/* SPDX-License-Identifier: Apache-2.0 */
/* The throttle keeps the tools within --cpu-limit by slowing optional work and dropping samples
 * (cpulimit.h). */
#ifndef PROF_BPF_LIMIT_THROTTLE_H
#define PROF_BPF_LIMIT_THROTTLE_H

#include "tools/prof-bpf/limit/cpulimit.h"
#include "tools/prof-bpf/limit/thinning.h"

struct file_server;
struct owners;
struct row_server;

struct throttle {
	/* Borrowed. */
	struct row_server *row_server;
	struct file_server *file_server; /* NULL by hand */
	struct owners *owners;
	unsigned percent; /* of all cpus; 0: there is no limit */
	struct cpulimit limit;
	struct thinning thinning;
	bool told; /* it was logged that samples are dropped */
};

/* percent: as in struct throttle. The caller sets the borrowed fields. */
void throttle_init(struct throttle *t, unsigned percent, unsigned cpus);
/* Call it often while sampling. */
void throttle_run(struct throttle *t, struct meter *m, uint64_t now_ns);
/* Changes the limit. */
void throttle_set(struct throttle *t, unsigned percent);
/* Ends the limit when sampling has ended: prof-deltas and prof-symd no longer sleep. */
void throttle_end(struct throttle *t);
/* Decides which samples to drop; NULL: there is no limit. */
struct thinning *throttle_thinning(struct throttle *t);

#endif
