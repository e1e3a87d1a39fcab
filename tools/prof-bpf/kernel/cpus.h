/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cpus that come online while all is running. An event of a cpu ends when that goes offline, and
 * opening another takes CAP_PERFMON, by which breakpoints can be set in any program: too much to
 * keep for something so rare. So a process of its own has that right, a second prof-bpf, which is
 * told nothing and reads nothing: it tries each cpu once a second, and sends the events of those
 * that have come. It ends with prof-bpf, and prof-bpf, which has not the right any more, can start
 * no other when it ends before.
 */
#ifndef PROFPIPE_BPF_CPUS_H
#define PROFPIPE_BPF_CPUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/cell/deploy.h"

struct cpus_config {
	unsigned hz;
	bool cycles;   /* the sampling event: hardware cycles, or cpu-clock */
	bool ksymbols; /* the side-band event has these records */
	const struct deploy *deploy;
};
struct cpus {
	pid_t pid;	 /* 0: none */
	int fd;		 /* readable when a cpu has come, or it has ended; -1 */
	bool waits;	 /* cpus_next is to be asked again in a moment, whatever fd says */
	int wait_status; /* once it has ended */
};

/* Starts it, with the rights that the caller has. ENOENT and the like: nobody will come. */
int cpus_start(const struct cpus_config *c, struct cpus *ret);
/* The next cpu that came, and its events, which are the caller's. -EAGAIN: none now. -EMFILE: there
 * is no room for its events; they are kept. -ENFILE: the same, and they are not. -EPIPE, once: the
 * process has ended, and c->wait_status says how; 0 is that it is not let (perf_event_paranoid). */
int cpus_next(struct cpus *c, uint32_t *ret_cpu, int *ret_sampling, int *ret_sideband);
void cpus_stop(struct cpus *c);

/* What the process does: enters its identity and its filter, and serves until the other end of the
 * socket, SERVE_FD, is closed. The exit status. */
int cpus_serve(const struct cpus_config *c);

#endif
