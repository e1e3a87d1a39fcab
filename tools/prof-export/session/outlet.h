/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outlet: passes finished OTLP requests to prof-send. prof-send takes requests off the bus at
 * once and keeps them in queues of its own, so the bus is full only if prof-send hangs. The outlet
 * then waits a moment, once. After that it drops requests at once until the bus takes one again. It
 * also drops them while there is no prof-send. It counts what it drops, by reason.
 */
#ifndef PROF_EXPORT_SESSION_OUTLET_H
#define PROF_EXPORT_SESSION_OUTLET_H

#include "common/status/status.h"
#include "common/wire/bus/bus.h"
#include "common/wire/stream.h"
#include "tools/prof-export/otlp/request.h"

struct outlet {
	struct bus *bus; /* NULL: closed */
	struct stream_out out;
	bool there;   /* prof-send is connected */
	bool patient; /* prof-send took the latest request, so the next one may wait for it */
	bool ending;  /* at the end: nothing else waits for prof-export */
	int refused;  /* why the bus refused the latest batch; 0: it was taken */
	uint64_t epoch;
	uint64_t requests, samples; /* requests and samples that came */
	/* Requests dropped because there was no prof-send, or because it was slow. */
	uint64_t away, slow;
	uint64_t lost_samples; /* samples in these requests */
};
#define OUTLET_NONE ((struct outlet){ .bus = NULL })

/* Listens below run_dir for a prof-send with this uid. Starts threads. -errno. */
int outlet_open(struct outlet *o, const char *run_dir, uid_t uid);
/* Readable when outlet_look has work; -1: closed. Borrowed. */
int outlet_fd(const struct outlet *o);
/* Handles a prof-send that connects or leaves. */
void outlet_look(struct outlet *o);
/* Passes on one request: a `flush` of struct otlp_options. ctx: the outlet. Always returns 0,
 * because a slow receiver must not end the stream. */
int outlet_put(void *ctx, const struct request *r);
/* Sends the end message, waits at most two seconds until prof-send has taken all, and closes. */
void outlet_end(struct outlet *o);
/* Closes at once. */
void outlet_close(struct outlet *o);
/* Fills in the counts of requests. */
void outlet_status(const struct outlet *o, struct status *st);

#endif
