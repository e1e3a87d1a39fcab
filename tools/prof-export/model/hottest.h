/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of samples by the name and the kind of their leaf function. */
#ifndef PROF_EXPORT_MODEL_HOTTEST_H
#define PROF_EXPORT_MODEL_HOTTEST_H

#include "common/base/buf.h"
#include "common/status/status.h"
#include "tools/prof-export/model/table.h"

struct hottest {
	struct strings names; /* the kind is the last byte */
	ARRAY(uint64_t) self; /* by name */
};

/* All memory is the pool's. All zeros: empty. */
void hottest_done(struct hottest *h, struct pool *p);
/* Adds to the count of a label, at most to UINT64_MAX. label: without marks; gets the kind (below
 * 32, which no label contains) as its last byte. False: there is no room for it. */
bool hottest_add(struct hottest *h, struct pool *p, struct buf *label, enum status_kind kind,
		 uint64_t self);
/* Adds all of `from`, as far as there is room. */
void hottest_add_all(struct hottest *h, struct pool *p, const struct hottest *from);
/* The hottest come first, equal ones by name. Leaves unused places of `top` unchanged. */
void hottest_top(const struct hottest *h, struct status_top top[static STATUS_TOP]);

#endif
