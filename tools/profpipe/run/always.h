/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of `profpipe run` that `record` does not have: a service manager, settings that change
 * while the tools run, and intervals without sampling.
 */
#ifndef PROFPIPE_RUN_ALWAYS_H
#define PROFPIPE_RUN_ALWAYS_H

#include <stdbool.h>
#include <stdint.h>
#include "tools/profpipe/options/service.h"
#include "tools/profpipe/run/metrics.h"
#include "tools/profpipe/run/notify.h"

struct run;

struct always {
	const struct service *first; /* borrowed; the run keeps paths of it */
	struct service services[2];  /* later ones, in turns */
	const struct service *now;   /* the one that holds */
	struct notify notify;
	struct metrics metrics;
	uint64_t seed;			       /* of the coin */
	bool rests;			       /* prof-bpf was told to pause */
	bool ready, ending;		       /* the manager was told */
	uint64_t told_ns, lived_ns, logged_ns; /* of the latest state, sign of life, and hour */
	bool renews;	    /* prof-send is to be started again, for other receivers */
	uint64_t renews_ns; /* since when */
	uint64_t requests;  /* that prof-export has made */
	uint64_t made_ns;   /* when the latest of these was, from then on; 0: none */
	unsigned reports;   /* of prof-bpf at the latest sign of life */
};

/* Prepares the run's part. s: borrowed until the run is over. 0; -errno, logged: nobody can listen
 * where metrics are wanted. */
int always_init(struct always *a, const struct service *s);
/* To be called at each turn of the loop. Does nothing in a run of `record`. */
void always_turn(struct run *r);
/* SIGHUP: reads the settings again. */
void always_reload(struct run *r);
/* The run is over. Does nothing in a run of `record`. */
void always_done(struct run *r);

#endif
