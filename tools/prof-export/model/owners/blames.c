/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/owners/blames.h"

#include <string.h>

void blames_add(uint32_t *counts, uint64_t reason, uint64_t samples)
{
	if (__builtin_add_overflow(counts[reason], samples, &counts[reason]))
		counts[reason] = UINT32_MAX;
}

/* Inserts the entry in sorted order and drops the last one. */
static void insert(struct status_blame ret[static STATUS_BLAMES], const struct status_blame *b)
{
	unsigned i = STATUS_BLAMES;

	while (i && ret[i - 1].samples < b->samples)
		i--;
	if (i == STATUS_BLAMES)
		return;
	memmove(&ret[i + 1], &ret[i], (STATUS_BLAMES - 1 - i) * sizeof(ret[0]));
	ret[i] = *b;
}

void blames_most(const struct blames *b, const struct shares *s,
		 struct status_blame ret[static STATUS_BLAMES])
{
	memset(ret, 0, STATUS_BLAMES * sizeof(ret[0]));
	for (uint32_t i = 0; i <= SHARES_OWNERS; i++) {
		const struct {
			const uint32_t *counts;
			unsigned reasons;
		} harms[STATUS_HARMS] = { { b->truncated[i], STATUS_REASONS },
					  { b->lost[i], STATUS_REASONS },
					  { b->unnamed[i], STATUS_UNNAMED_REASONS } };

		for (unsigned harm = 0; harm < STATUS_HARMS; harm++) {
			for (unsigned reason = 0; reason < harms[harm].reasons; reason++) {
				const struct status_blame blame = {
					.owner = s->at[i].owner,
					.harm = harm,
					.reason = reason,
					.samples = harms[harm].counts[reason]
				};

				insert(ret, &blame);
			}
		}
	}
}
