/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text: each sample when it comes, leaf first, in the grammar of `perf script`, which
 *
 *   comm pid/tid [cpu] seconds.micro: value event:
 *   	address name (binary) source:line
 *   	0 [truncated: reason] (file in which the walk ended)
 *
 * As in perf, an inlined call has the address of the call around it, and `(inlined)` for its
 * binary. Time is the stream's, CLOCK_MONOTONIC. The event of another source than the recording's
 * own has its unit, as in `alloc/bytes/:`.
 */
#ifndef PROF_EXPORT_OUTPUT_TEXT_H
#define PROF_EXPORT_OUTPUT_TEXT_H

#include "tools/prof-export/model/model.h"
#include "tools/prof-export/output/output.h"

struct text {
	struct buf line; /* zero-initialise; text_done frees */
};

/* Returns 0 or -ENOMEM; errors of writing stay in the output. */
int text_sample(struct text *t, const struct model *m, const struct model_sample *s,
		struct output *o);
void text_done(struct text *t);

#endif
