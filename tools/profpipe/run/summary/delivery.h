/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The delivery of OTLP: the outcome of the requests of a run. It adds up all processes of
 * prof-export, which makes the requests, and of prof-send, which delivers each request to every
 * endpoint. If prof-send is killed, the outcome of its last requests counts as unknown. Pure.
 */
#ifndef PROFPIPE_RUN_SUMMARY_DELIVERY_H
#define PROFPIPE_RUN_SUMMARY_DELIVERY_H

#include <stdbool.h>
#include "common/base/bytes/buf.h"
#include "common/status/status.h"

/* Sums over successive processes of one tool, from their status words. */
struct delivery_sum {
	uint64_t requests, taken, lost, away, samples, lost_samples;
};
/* Adds the last status word of a process. */
void delivery_add(struct delivery_sum *s, const struct status *last);

struct delivery {
	uint64_t endpoints;	    /* 0: nothing was to be sent. At last, if they changed */
	uint64_t wanted;	    /* deliveries of all requests to all their endpoints */
	bool changed;		    /* the number of endpoints changed during the run */
	uint64_t requests, samples; /* requests that prof-export made, and samples in them */
	/* Requests that prof-send never got, because there was none or because it was too slow. */
	uint64_t away, slow, dropped_samples;
	/* Of the other requests, over all endpoints. */
	uint64_t delivered, delivered_samples, lost, kept, unknown;
	uint64_t outside;  /* upper limit of the samples that are in no request */
	unsigned restarts; /* number of restarts of prof-send */
};

/* samples: of the run. export, send: over all processes of the tool. handed: what prof-sends got,
 * for each of their endpoints (run_handed). waits: requests that the last
 * prof-send had neither delivered nor lost, if it keeps them in a spool; else 0. */
void delivery_settle(uint64_t samples, const struct delivery_sum *export,
		     const struct delivery_sum *send, uint64_t endpoints, uint64_t handed,
		     uint64_t waits, struct delivery *ret);
/* The number of requests that did not reach an endpoint, over all endpoints. */
uint64_t delivery_missing(const struct delivery *d);
/* Appends a line of text without its line feed. Errors of buf_append. */
int delivery_print(struct buf *b, const struct delivery *d);

#endif
