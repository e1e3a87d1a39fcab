/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The metrics of a service: the launcher opens a listening socket, which a prof-metrics process
 * serves. If prof-metrics ends, it is started again; the run does not depend on it.
 */
#ifndef PROFPIPE_RUN_METRICS_H
#define PROFPIPE_RUN_METRICS_H

#include <stdbool.h>
#include <stdint.h>
#include "common/status/metrics.h"
#include "tools/profpipe/run/children/child.h"
#include "tools/profpipe/run/children/restarts.h"

struct run;

struct metrics {
	int listener; /* -1: no metrics */
	struct child child;
	struct restarts again;
	uint64_t told_ns;
	/* From the last status words of ended prof-exports and prof-sends. */
	struct status last_export, last_send; /* of the present lives */
	struct metrics_word former;
};
#define METRICS_NONE ((struct metrics){ .listener = -1, .child = CHILD_NONE("prof-metrics") })

/* Listens at an address of listen.h; NULL: not at all. Closes the previous listener, even after an
 * error. Returns 0 or -errno. */
int metrics_listen(struct metrics *m, const char *address);
static inline bool metrics_listens(const struct metrics *m)
{
	return m->listener >= 0;
}
/* Call it in each iteration of the loop. Starts prof-metrics, and sends it the figures once a
 * second. */
void metrics_turn(struct metrics *m, struct run *r);
void metrics_end(struct metrics *m);

#endif
