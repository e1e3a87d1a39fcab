/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of a service: a listening socket of the launcher, and the prof-metrics that serves
 * it. A prof-metrics that ends is started again; the run goes on without it.
 */
#ifndef PROFPIPE_RUN_METRICS_H
#define PROFPIPE_RUN_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include "common/status/metrics.h"
#include "tools/profpipe/run/children.h"
#include "tools/profpipe/run/restarts.h"

struct run;

struct metrics {
	int listener; /* -1: no metrics */
	struct child child;
	struct restarts again;
	uint64_t told_ns;
	/* Of former lives of tools, by their last words. */
	struct status last_export, last_send; /* of the present lives */
	struct metrics_word former;
};
#define METRICS_NONE ((struct metrics){ .listener = -1, .child = CHILD_NONE("prof-metrics") })

/* Listens at an address of listen.h; NULL: nowhere. Ends the previous listener, also after an
 * error. 0, -errno. */
int metrics_listen(struct metrics *m, const char *address);
static inline bool metrics_listens(const struct metrics *m)
{
	return m->listener >= 0;
}
/* To be called at each turn of the loop: starts prof-metrics, and tells it the figures once a
 * second. */
void metrics_turn(struct metrics *m, struct run *r);
void metrics_end(struct metrics *m);

#endif
