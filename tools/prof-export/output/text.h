/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text: each sample as it comes, leaf first, in the grammar of `perf script`, which
 * stackcollapse-perf.pl, speedscope and the Firefox Profiler read:
 *
 *   comm pid/tid [cpu] seconds.micro: value event:
 *   	address name (binary) source:line
 *   	0 [truncated: reason] (file in which the walk ended)
 *
 * An inlined call has the address of what it was inlined into, and `(inlined)` for its binary, as
 * perf prints it. Time is the stream's, CLOCK_MONOTONIC.
 */
#ifndef PROFPIPE_TEXT_H
#define PROFPIPE_TEXT_H

#include "tools/prof-export/model/model.h"
#include "tools/prof-export/output/output.h"

struct text {
	struct buf line; /* zero-initialise; text_done frees */
};

/* 0, -ENOMEM; errors of the output stay in it. */
int text_sample(struct text *t, const struct model *m, const struct model_sample *s,
		struct output *o);
void text_done(struct text *t);

#endif
