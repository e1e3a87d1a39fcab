/* SPDX-License-Identifier: Apache-2.0 */
/* The hottest functions: counts of samples by the name and kind of their leaf function. */
#ifndef PROF_EXPORT_MODEL_FIGURES_HOTTEST_H
#define PROF_EXPORT_MODEL_FIGURES_HOTTEST_H

#include "common/base/bytes/buf.h"
#include "common/status/status.h"
#include "tools/prof-export/model/definitions/table.h"

struct hottest {
	struct table_strings names; /* the last byte of each name is the kind */
	POOL_ARRAY(uint64_t) self;  /* by name */
};

/* All memory is charged to the pool. All zeros: empty. */
void hottest_done(struct hottest *h, struct pool *p);
/* Adds to the count of a label, up to UINT64_MAX. The label has no marks; its kind (below 32, a
 * byte that no label contains) becomes its last byte. Returns false if there is no room. */
bool hottest_add(struct hottest *h, struct pool *p, struct buf *label, enum status_kind kind,
		 uint64_t self);
/* Adds all counts of `from` that fit. */
void hottest_add_all(struct hottest *h, struct pool *p, const struct hottest *from);
/* Sorts by count in descending order, and equal counts by name. Leaves unused entries of `top`
 * unchanged. */
void hottest_top(const struct hottest *h, struct status_top top[static STATUS_TOP]);

#endif
