/* SPDX-License-Identifier: Apache-2.0 */
/* Functions by name, with how many samples had each as their leaf. */
#ifndef PROFPIPE_HOT_H
#define PROFPIPE_HOT_H

#include "common/status.h"
#include "tools/prof-export/table.h"

struct hot {
	struct strings names;
	ARRAY(uint64_t) self; /* by name */
};

/* All memory is the pool's. All zeros: empty. */
void hot_done(struct hot *h, struct pool *p);
/* Adds to a name's count, at most to UINT64_MAX. False: there is no room for it. */
bool hot_add(struct hot *h, struct pool *p, struct str name, uint64_t self);
/* Adds all of `from`, as far as there is room. */
void hot_add_all(struct hot *h, struct pool *p, const struct hot *from);
/* The hottest first, equal ones by name; what is left of top stays as it is. */
void hot_top(const struct hot *h, struct status_top top[static STATUS_TOP]);

#endif
