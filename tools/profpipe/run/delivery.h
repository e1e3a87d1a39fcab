/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The delivery of OTLP: what became of the requests of a run, over all lives of prof-export, which
 * makes them, and of prof-send, which delivers each to every endpoint. A prof-send that was killed
 * cannot tell the fate of its last requests: these count as unknown. Pure.
 */
#ifndef PROFPIPE_RUN_DELIVERY_H
#define PROFPIPE_RUN_DELIVERY_H

#include <stdbool.h>
#include "common/base/buf.h"
#include "common/status/status.h"

/* Sums over lives of one tool, as in its status words. */
struct delivery_sum {
	uint64_t requests, taken, lost, away, samples, lost_samples;
};
/* Adds the last word of a life. */
void delivery_add(struct delivery_sum *s, const struct status *last);

struct delivery {
	uint64_t endpoints;	    /* 0: nothing was to be sent */
	uint64_t requests, samples; /* that prof-export made */
	/* Requests that prof-send never got, since there was none, or since it was too slow. */
	uint64_t away, slow, dropped_samples;
	/* Of the rest, over all endpoints. */
	uint64_t delivered, delivered_samples, lost, kept, unknown;
	uint64_t outside;  /* at most this many samples are in no request */
	unsigned restarts; /* of prof-send */
};

/* samples: of the run. export, send: over all lives. waits: what prof-send's last life had neither
 * delivered nor lost, if it keeps that in a spool; else 0. */
void delivery_settle(uint64_t samples, const struct delivery_sum *export,
		     const struct delivery_sum *send, uint64_t endpoints, uint64_t waits,
		     struct delivery *ret);
/* Requests that did not reach an endpoint, over all endpoints. */
uint64_t delivery_missing(const struct delivery *d);
/* Appends a line of text without its line feed. Errors of buf_append. */
int delivery_print(struct buf *b, const struct delivery *d);

#endif
