/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A candidate: a place where a function may begin. Its code, and the reason for looking there,
 * decide whether one does. Pure.
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
	bool foreign; /* among code that nothing calls: only code with a ret is a function */
};

/* Looks at the code c, whose entry is the candidate. known->begins tells where other functions are
 * known to begin, known->bare where no table describes the code. `again`: there is time for
 * flow_again. Returns 0: a function, with *ret as flow_run left it; enum flow_verdict: none;
 * -ENOMEM. */
int candidate_look(struct flow *f, const struct candidate *p, const struct flow_code *c,
		   const struct flow_reader *known, bool again, struct flow_result *ret);
/* After candidate_look returned 0: whether the code begins and ends like a function. */
bool candidate_is_whole(const struct flow *f, const struct flow_code *c,
			const struct flow_result *result);

#endif
