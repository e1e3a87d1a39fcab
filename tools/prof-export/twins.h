/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Twins: interpreted functions of one name that are not one function: those of files of one name in
 * two folders, two lambdas of one function, a property's getter and its setter. Where frames are
 * told apart by their labels alone, where the function begins stands behind its name, as
 * `util.f (a/util.py:4)`, with as little of the path as tells all functions of that name apart.
 * Native functions of one name stay one.
 */
#ifndef PROFPIPE_TWINS_H
#define PROFPIPE_TWINS_H

#include "tools/prof-export/model.h"

struct twins {
	uint8_t *parts; /* by function: how many last parts of its path are shown */
};

/* Of all that the model has now; for models of MODEL_NAMES. 0, -ENOMEM. */
int twins_find(struct twins *t, const struct model *m);
/* As label_call of the frame's only call, told apart. Errors of buf_append. */
int twins_label(const struct twins *t, struct buf *b, const struct model *m,
		const struct model_frame *f);
void twins_done(struct twins *t);

#endif
