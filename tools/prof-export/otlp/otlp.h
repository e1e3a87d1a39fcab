/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OTLP: samples in windows of time, and each window as one request, or several if it grows too
 * large. A window ends before its end: a sample of that time begins the next one. A sample that
 * comes late goes into the window that is open, whose times then begin earlier. With a window, a
 * request of its own says what was lost since the last one.
 *
 * Nothing outlives its window. The memory is bounded, and what leads beyond it ends the window. A
 * stack that is too large even for an empty one is truncated from the root, as `definitions`. A
 * sample that cannot be sent even so is counted as lost in the model, as `limit`.
 */
#ifndef PROF_EXPORT_OTLP_OTLP_H
#define PROF_EXPORT_OTLP_OTLP_H

#include "tools/prof-export/model/model.h"
#include "tools/prof-export/otlp/request.h"
#include "tools/prof-export/otlp/window.h"

struct otlp_options {
	struct reporting reporting; /* without the names, which the model leaves out */
	bool gzip;		    /* requests need their gzip bytes */
	size_t memory_max;	    /* bytes */
	/* Takes a request, whose bytes are borrowed until it returns. A result other than 0 is an
	 * error, which the caller of otlp_* gets. */
	int (*flush)(void *ctx, const struct request *r);
	void *ctx;
};

struct otlp {
	struct otlp_options options;
	struct pool pool, spare; /* of the window; of what is made of it */
	struct window window;
	struct request_room room;
	bool open;
	uint64_t begin_ns, end_ns; /* of the window, CLOCK_MONOTONIC */
	uint64_t wall_offset_ns;   /* as in struct request_times */
	uint64_t random;
	uint64_t told[STATUS_REASONS]; /* of the model's losses */
};

void otlp_init(struct otlp *o, const struct otlp_options *options);
void otlp_done(struct otlp *o);

/* Takes a sample of the model. 0, or an error of flush. */
int otlp_sample(struct otlp *o, struct model *m, const struct model_sample *s);
/* More may be known of a process. NULL: none is meant. */
void otlp_process(struct otlp *o, const struct model *m, const struct epoch_process *p);
/* It is ns by CLOCK_MONOTONIC: ends the window if samples of its time no longer come. The same
 * errors. */
int otlp_time(struct otlp *o, struct model *m, uint64_t ns);
/* Writes what came, and goes on with the window behind it. The same errors. */
int otlp_settle(struct otlp *o, struct model *m);
/* A predecessor was in this window, of which it has written nothing. */
void otlp_reopen(struct otlp *o, const struct model *m, uint64_t begin_ns, uint64_t end_ns);
/* A predecessor has told what the model knows of losses. */
void otlp_resume(struct otlp *o, const struct model *m);
/* The model's numbers are void. */
void otlp_forget(struct otlp *o);
/* Nothing more comes. The same errors. */
int otlp_finish(struct otlp *o, struct model *m);

#endif
