/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namesakes: different interpreted functions of one name, such as those of files of one name in two
 * folders, two lambdas of one function, or a property's getter and its setter. Outputs that tell
 * frames apart only by their labels add the place where the function begins, as in
 * `util.f (a/util.py:4)`, with as little of the path as tells all functions of that name apart.
 * Native functions of one name are not told apart.
 */
#ifndef PROFPIPE_NAMESAKES_H
#define PROFPIPE_NAMESAKES_H

#include "tools/prof-export/model/model.h"

struct namesakes {
	uint8_t *parts; /* by function: how many last parts of its path are shown */
};

/* Finds all that the model has now; for models of MODEL_NAMES. 0, -ENOMEM. */
int namesakes_find(struct namesakes *t, const struct model *m);
/* Appends what label_call does for the frame's only call, then the place. Errors of buf_append. */
int namesakes_label(const struct namesakes *t, struct buf *b, const struct model *m,
		    const struct model_frame *f);
void namesakes_done(struct namesakes *t);

#endif
