/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A candidate: a place where a function may begin. Whether one does is told by its code, and by the
 * reason for which one was looked for there. Pure.
 */
#ifndef PROFPIPE_CANDIDATE_H
#define PROFPIPE_CANDIDATE_H

#include "common/rows/x86/flow.h"

enum candidate_trust {
	CANDIDATE_GUESSED,
	CANDIDATE_TAKEN, /* likely */
	CANDIDATE_SURE,
};

/* A place where a function may begin. */
struct candidate {
	uint32_t at;
	uint32_t size;	/* 0: not known */
	uint32_t limit; /* where the next one begins that is known */
	enum candidate_trust trust;
	bool foreign; /* among code that nothing calls: only what returns by a ret is called */
};

/* Looks at the code c, whose entry is the place. known->begins says where other functions are known
 * to begin, known->bare where no table describes the code. again: there is time for flow_again.
 * 0: *ret is of a function, as flow_run left it; enum flow_verdict: there is none; -ENOMEM. */
int candidate_look(struct flow *f, const struct candidate *p, const struct flow_code *c,
		   const struct flow_reader *known, bool again, struct flow_result *ret);
/* After candidate_look gave 0: whether it begins and ends as functions do. */
bool candidate_is_whole(const struct flow *f, const struct flow_code *c,
			const struct flow_result *result);

#endif
