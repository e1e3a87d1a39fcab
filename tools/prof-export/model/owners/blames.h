/* SPDX-License-Identifier: Apache-2.0 */
/* Blames: the truncated and lost samples of each owner, and those that lack names, by reason. They
 * show who paid when memory or time was scarce (docs/fairness.md). */
#ifndef PROF_EXPORT_MODEL_OWNERS_BLAMES_H
#define PROF_EXPORT_MODEL_OWNERS_BLAMES_H

#include <stdint.h>
#include "common/status/status.h"
#include "tools/prof-export/model/owners/shares.h"

/* Indexed like struct shares. */
struct blames {
	uint32_t truncated[SHARES_OWNERS + 1][STATUS_REASONS];	     /* by enum walk_reason */
	uint32_t lost[SHARES_OWNERS + 1][STATUS_REASONS];	     /* by enum lost_reason */
	uint32_t unnamed[SHARES_OWNERS + 1][STATUS_UNNAMED_REASONS]; /* by enum unnamed_reason */
};

/* Adds `samples`, up to UINT32_MAX. reason: below the length of counts. */
void blames_add(uint32_t *counts, uint64_t reason, uint64_t samples);
/* Fills ret with the largest counts in descending order; unused entries are zero. */
void blames_most(const struct blames *b, const struct shares *s,
		 struct status_blame ret[static STATUS_BLAMES]);

#endif
