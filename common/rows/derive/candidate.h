/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A candidate: a place where a function may begin. candidate_look decides whether one does, from
 * the code and from the reason for suspecting it. Pure.
 */
#ifndef COMMON_ROWS_DERIVE_CANDIDATE_H
#define COMMON_ROWS_DERIVE_CANDIDATE_H

#include "common/rows/x86/flow/flow.h"

enum candidate_trust {
	CANDIDATE_GUESSED,
	CANDIDATE_TAKEN, /* likely */
	CANDIDATE_SURE,
};

/* A place where a function may begin. */
struct candidate {
	uint32_t at;
	uint32_t size;	/* 0: not known */
	uint32_t limit; /* start of the next known function */
	enum candidate_trust trust;
	bool foreign; /* the file has much code that C never calls: accept only code with a ret */
};

/* Decides whether a function begins at the candidate, which is the entry of c. known->begins tells
 * where other functions are known to begin, known->bare where no table describes the code. `again`:
 * there is time for flow_again. Returns 0 if it is a function, and *ret is as flow_run left it.
 * Returns enum flow_verdict if not, or -ENOMEM. */
int candidate_look(struct flow *f, const struct candidate *p, const struct flow_code *c,
		   const struct flow_reader *known, bool again, struct flow_result *ret);
/* After candidate_look returned 0: whether the code begins and ends like a function. */
bool candidate_is_whole(const struct flow *f, const struct flow_code *c,
			const struct flow_result *result);

#endif
