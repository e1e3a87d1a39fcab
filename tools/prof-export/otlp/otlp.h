/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP: samples in windows of time. Each window becomes one request, or several if it grows too
 * large. The end of a window is exclusive: a sample of that time begins the next window. A late
 * sample goes into the window that is open, whose start time is then earlier. Each window also has
 * a request that reports what was lost since the last one.
 *
 * Nothing is kept longer than its window. Memory is bounded; if a sample does not fit, the window
 * closes early. A stack too large for an empty window is truncated from the root, with the reason
 * `definitions`. A sample that still cannot be sent is counted as lost in the model, with the
 * reason `limit`.
 */
#ifndef PROF_EXPORT_OTLP_OTLP_H
#define PROF_EXPORT_OTLP_OTLP_H

#include "tools/prof-export/model/model.h"
#include "tools/prof-export/otlp/request.h"
#include "tools/prof-export/otlp/window.h"

struct otlp_options {
	struct reporting reporting; /* `names` is unused: the model leaves names out */
	bool gzip;		    /* requests need their gzip form */
	size_t memory_max;	    /* bytes */
	/* Takes a request, whose bytes are valid until it returns. A result other than 0 is an
	 * error, which the otlp_* functions return. */
	int (*flush)(void *ctx, const struct request *r);
	void *ctx;
};

struct otlp {
	struct otlp_options options;
	struct pool pool, spare; /* for the window; for the part that is being sent */
	struct window window;
	struct request_room room;
	bool open;
	uint64_t begin_ns, end_ns; /* of the window, CLOCK_MONOTONIC */
	uint64_t wall_offset_ns;   /* as in struct request_times */
	uint64_t random;
	uint64_t told[STATUS_REASONS]; /* the model's losses that were reported so far */
};

void otlp_init(struct otlp *o, const struct otlp_options *options);
void otlp_done(struct otlp *o);

/* Takes a sample of the model. Returns 0 or an error of flush. */
int otlp_sample(struct otlp *o, struct model *m, const struct model_sample *s);
/* The facts about a process may have changed. NULL: does nothing. */
void otlp_process(struct otlp *o, const struct model *m, const struct epoch_process *p);
/* The time is now ns by CLOCK_MONOTONIC. Closes the window if no more samples of its time can come.
 * Errors of flush. */
int otlp_time(struct otlp *o, struct model *m, uint64_t ns);
/* Sends what came so far, and continues with the next window. Errors of flush. */
int otlp_settle(struct otlp *o, struct model *m);
/* An earlier prof-export had this window open and sent nothing of it. */
void otlp_reopen(struct otlp *o, const struct model *m, uint64_t begin_ns, uint64_t end_ns);
/* An earlier prof-export has reported all losses that the model knows. */
void otlp_resume(struct otlp *o, const struct model *m);
/* Forgets the model's numbers, which are no longer valid. */
void otlp_forget(struct otlp *o);
/* Nothing more comes: sends the rest. Errors of flush. */
int otlp_finish(struct otlp *o, struct model *m);

#endif
