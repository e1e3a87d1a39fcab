/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of `profpipe run` that `record` does not have: a service manager, settings that change
 * while the tools run, and intervals without sampling.
 */
#ifndef PROFPIPE_RUN_DAEMON_H
#define PROFPIPE_RUN_DAEMON_H

#include <stdbool.h>
#include <stdint.h>
#include "tools/profpipe/options/service.h"
#include "tools/profpipe/run/metrics.h"
#include "tools/profpipe/run/service/notify.h"

struct run;

struct daemon {
	const struct service *first; /* borrowed; the run keeps pointers to its paths */
	struct service services[2];  /* later settings, used alternately */
	const struct service *now;   /* the present settings */
	struct notify notify;
	struct metrics metrics;
	uint64_t seed;	    /* for probabilistic.h */
	bool rests;	    /* prof-bpf was told to pause */
	bool ready, ending; /* the service manager was told */
	/* When the latest state, watchdog message and hour were. */
	uint64_t told_ns, lived_ns, logged_ns;
	bool renews;	    /* prof-send will be restarted for other receivers */
	uint64_t renews_ns; /* since when it is to be restarted */
	uint64_t requests;  /* that prof-export has made */
	uint64_t made_ns;   /* when prof-export made the latest request since then; 0: none */
	/* When the files for name resolution were last read, a hash of them, and that of the ones
	 * that prof-send uses; 0: not read yet. */
	uint64_t names_ns, names, used_names;
	unsigned reports; /* number of prof-bpf's reports at the latest watchdog message */
};

/* Prepares the state of a service. s: borrowed until the run is over. Returns 0, or -errno, logged,
 * if it cannot listen at the address for metrics. */
int daemon_init(struct daemon *d, const struct service *s);
/* Call it in each iteration of the loop. Does nothing in a run of `record`. */
void daemon_turn(struct run *r);
/* On SIGHUP: reads the settings again. */
void daemon_reload(struct run *r);
/* The run is over: frees the state. Does nothing in a run of `record`. */
void daemon_done(struct run *r);

#endif
