/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Place: whether a function begins at one, by what its code does from there on, and by why one was
 * looked for there. Pure.
 */
#ifndef PROF_DELTAS_PLACE_H
#define PROF_DELTAS_PLACE_H

#include "tools/prof-deltas/flow.h"

enum place_trust {
	PLACE_GUESSED,
	PLACE_TAKEN, /* likely */
	PLACE_SURE,
};

/* A place where a function may begin. */
struct place {
	uint32_t at;
	uint32_t size;	/* 0: not known */
	uint32_t limit; /* where the next one begins that is known */
	enum place_trust trust;
	bool foreign; /* among code that nothing calls: only what returns by a ret is called */
};

/* Looks at the code c, whose entry is the place. 0: *ret is of a function, as flow_run left it;
 * enum flow_verdict: there is none; -ENOMEM. known->begins says where others are known to begin,
 * known->bare where no table speaks of the code;
 * again: there is time for flow_again. */
int place_look(struct flow *f, const struct place *p, const struct flow_code *c,
	       const struct flow_reader *known, bool again, struct flow_result *ret);
/* After that gave 0: it begins and ends as functions do. */
bool place_is_whole(const struct flow *f, const struct flow_code *c,
		    const struct flow_result *result);

#endif
