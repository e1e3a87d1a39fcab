/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The service: requests for rows come over the bus, their descriptors over the lane, in either
 * order; answers go back over the bus. One
 * request is worked on at a time, and the others wait their turn.
 */
#ifndef PROF_DELTAS_SERVE_H
#define PROF_DELTAS_SERVE_H

#include "common/bus.h"
#include "common/fdlane.h"

enum serve_verdict {
	SERVE_SCHEMA = 1,    /* prof-bpf speaks another schema */
	SERVE_MALFORMED = 2, /* what it sent is no message of the schema */
};
/* Serves until the peer goes or life_fd (-1: none) reaches its end, then 0. enum serve_verdict;
 * -ETIMEDOUT: the peer takes no answers; -errno. All are borrowed. */
int serve(struct bus *bus, struct fdlane *lane, int life_fd);

#endif
