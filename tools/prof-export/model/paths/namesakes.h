/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namesakes: different interpreted functions with the same name. Examples are functions of two
 * files with the same name in different folders, two lambdas of one function, or a property's
 * getter and setter. Formats that distinguish frames only by their labels add the place where the
 * function begins, as in `util.f (a/util.py:4)`. They use the shortest end of the path that
 * distinguishes all namesakes. Native functions are not distinguished.
 */
#ifndef PROF_EXPORT_MODEL_PATHS_NAMESAKES_H
#define PROF_EXPORT_MODEL_PATHS_NAMESAKES_H

#include "tools/prof-export/model/model.h"

struct namesakes {
	uint8_t *parts; /* by function: how many of the last parts of its path are shown */
};

/* Finds all namesakes in the model, which must be of MODEL_NAMES. Returns 0 or -ENOMEM. */
int namesakes_find(struct namesakes *t, const struct model *m);
/* Appends label_call of the frame's only call, followed by the place. Errors of buf_append. */
int namesakes_label(const struct namesakes *t, struct buf *b, const struct model *m,
		    const struct model_frame *f);
void namesakes_done(struct namesakes *t);

#endif
