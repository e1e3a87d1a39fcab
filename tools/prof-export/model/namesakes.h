/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namesakes: different interpreted functions with one name. Examples are functions of files with
 * one name in two folders, two lambdas of one function, a property's getter and its setter. Some
 * outputs tell frames apart only by their labels. They add the place where the function begins, as
 * in `util.f (a/util.py:4)`, with the shortest part of the path that tells all namesakes apart.
 * Native functions are not told apart.
 */
#ifndef PROF_EXPORT_MODEL_NAMESAKES_H
#define PROF_EXPORT_MODEL_NAMESAKES_H

#include "tools/prof-export/model/model.h"

struct namesakes {
	uint8_t *parts; /* by function: how many last parts of its path are shown */
};

/* Finds all namesakes that the model has now; for models of MODEL_NAMES. 0, -ENOMEM. */
int namesakes_find(struct namesakes *t, const struct model *m);
/* Appends label_call of the frame's only call, then the place. Errors of buf_append. */
int namesakes_label(const struct namesakes *t, struct buf *b, const struct model *m,
		    const struct model_frame *f);
void namesakes_done(struct namesakes *t);

#endif
