/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outlet: hands finished requests of OTLP to prof-send. prof-send takes requests off the bus at
 * once and keeps them in queues of its own, so the bus is full only if prof-send hangs. The outlet
 * then waits a moment, once; from then on it drops what the bus does not take, until the bus takes
 * one again. Without a prof-send it drops at once. It counts what it drops, by reason.
 */
#ifndef PROF_EXPORT_SESSION_OUTLET_H
#define PROF_EXPORT_SESSION_OUTLET_H

#include "common/status/status.h"
#include "common/wire/bus.h"
#include "common/wire/stream.h"
#include "tools/prof-export/otlp/request.h"

struct outlet {
	struct bus *bus; /* NULL: closed */
	struct stream_out out;
	bool there;   /* prof-send is connected */
	bool patient; /* it took the latest request, so the next one may wait for it */
	bool ending;  /* nothing else waits for us */
	int refused;  /* why the bus did not take the latest batch; 0: it took it */
	uint64_t epoch;
	uint64_t requests, samples; /* that came */
	uint64_t away, slow;   /* requests that no prof-send took, and that a slow one did not */
	uint64_t lost_samples; /* in these */
};
#define OUTLET_NONE ((struct outlet){ .bus = NULL })

/* Listens below run_dir for a prof-send with this uid. Starts threads. -errno. */
int outlet_open(struct outlet *o, const char *run_dir, uid_t uid);
/* Readable when outlet_look has something to do; -1: closed. Borrowed. */
int outlet_fd(const struct outlet *o);
/* Greets a prof-send that came. */
void outlet_look(struct outlet *o);
/* Hands on one request: a `flush` of struct otlp_options. ctx: the outlet. Always 0: a receiver
 * must not end the stream. */
int outlet_put(void *ctx, const struct request *r);
/* Says that nothing more comes, waits at most two seconds until prof-send has all, and closes. */
void outlet_end(struct outlet *o);
/* Closes at once. */
void outlet_close(struct outlet *o);
/* Fills in the counts of requests. */
void outlet_status(const struct outlet *o, struct status *st);

#endif
