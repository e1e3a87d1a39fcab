/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cpus that come online while all is running. An event of a cpu ends when that goes offline, and
 * opening another takes CAP_PERFMON, by which breakpoints can be set in any program: too much to
 * keep for something so rare. So a process of its own has that right, a second prof-bpf, which is
 * told nothing and reads nothing: it tries each cpu once a second, and sends the events of those
 * that have come. It ends with prof-bpf.
 */
#ifndef PROFPIPE_BPF_CPUS_H
#define PROFPIPE_BPF_CPUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/deploy.h"

struct cpus_config {
	unsigned hz;
	bool cycles;   /* the sampling event: hardware cycles, or cpu-clock */
	bool ksymbols; /* the side-band event has these records */
	const struct deploy *deploy;
};
struct cpus {
	pid_t pid; /* 0: none */
	int fd;	   /* readable when a cpu has come; -1 */
};

/* Starts it, with the rights that the caller has. ENOENT and the like: nobody will come. */
int cpus_start(const struct cpus_config *c, struct cpus *ret);
/* The next cpu that came, and its events, which are the caller's. False: none now; c->fd is closed
 * when the process has ended. */
bool cpus_next(struct cpus *c, uint32_t *ret_cpu, int *ret_sampling, int *ret_sideband);
void cpus_stop(struct cpus *c);

/* What the process does: enters its identity and its filter, and serves until the other end of the
 * socket, SERVE_FD, is closed. The exit status. */
int cpus_serve(const struct cpus_config *c);

#endif
