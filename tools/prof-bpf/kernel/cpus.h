/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A helper process that opens events on cpus that come online during a run.
 *
 * An event ends when its cpu goes offline, and opening another needs CAP_PERFMON. That right also
 * allows breakpoints in any program, which is too much to keep for something so rare. So a second
 * prof-bpf keeps it instead, in a process that gets no input. It tries each cpu once a second and
 * sends the events of new ones. It ends with prof-bpf. If it ends earlier, prof-bpf cannot start
 * another, since it no longer has the right.
 */
#ifndef PROF_BPF_KERNEL_CPUS_H
#define PROF_BPF_KERNEL_CPUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/cell/deploy.h"

struct cpus_events {
	bool cycles;   /* the sampling event counts hardware cycles; otherwise cpu-clock */
	bool ksymbols; /* the side-band event has KSYMBOL records */
};
struct cpus_config {
	unsigned hz;
	struct cpus_events events;
	const struct deploy *deploy;
};
struct cpus {
	pid_t pid;	 /* 0: none */
	int fd;		 /* readable when a cpu has come online or the helper has ended; -1: no
			  * helper */
	bool waits;	 /* call cpus_next again soon, even if fd is not readable */
	int wait_status; /* of the helper, once it has ended */
};

/* The events as a word of the helper's command line. */
const char *cpus_events_word(const struct cpus_events *e);
/* Parses that word. Returns false if it is not one. */
bool cpus_events_parse(const char *word, struct cpus_events *ret);

/* Starts the helper, with the rights of the caller. Returns 0; -ENOENT and similar: there will be
 * no helper. */
int cpus_start(const struct cpus_config *c, struct cpus *ret);
/* Gives the next new cpu and its events, which the caller owns. Returns 0 or
 *
 * - -EAGAIN: there is none now.
 * - -EMFILE: there are no free descriptors for its events; the events are kept.
 * - -ENFILE: likewise, but the events are lost.
 * - -EPIPE, once: the helper has ended with c->wait_status. 0 means that it is not permitted
 *   (perf_event_paranoid). */
int cpus_next(struct cpus *c, uint32_t *ret_cpu, int *ret_sampling, int *ret_sideband);
void cpus_stop(struct cpus *c);

/* The helper's main: enters its identity and its filter, and serves until the other end of the
 * socket, SERVE_FD, is closed. Returns the exit status. */
int cpus_serve(const struct cpus_config *c);

#endif
