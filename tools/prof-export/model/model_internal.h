/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of struct model, for model.c, which takes messages, model_figures.c, which reports the
 * counts, and model_journal.c, which saves them. */
#ifndef PROF_EXPORT_MODEL_MODEL_INTERNAL_H
#define PROF_EXPORT_MODEL_MODEL_INTERNAL_H

#include "tools/prof-export/model/definitions/definitions.h"
#include "tools/prof-export/model/definitions/epoch.h"
#include "tools/prof-export/model/figures/hottest.h"
#include "tools/prof-export/model/figures/uptime.h"
#include "tools/prof-export/model/figures/witness_check.h"
#include "tools/prof-export/model/model.h"
#include "tools/prof-export/model/owners/blames.h"
#include "tools/prof-export/model/owners/shares.h"

/* The samples that former outputs of the run contain. */
struct model_former {
	uint64_t came; /* samples, including lost ones */
	uint64_t lost[STATUS_REASONS];
};

struct model {
	struct model_options options;
	struct model_header header;
	char header_text[8][256];
	struct model_clock clock;
	struct model_totals totals;
	struct model_sampler sampler;
	struct uptime uptime;
	struct model_launched launched;
	struct model_former former;
	bool joins_sampler, joins_run; /* as in the options, until the first count of each came */
	struct witness_check witness_check;
	bool gap_seen, limit_hit; /* in this epoch */

	struct epoch epoch;
	struct definitions definitions;
	struct shares shares;
	struct blames blames; /* of the owners in `shares` */
	/* The stack of samples whose own stack did not fit; MODEL_NONE: none yet. */
	uint32_t folded;
	/* For data that is kept over epochs. In a model that does not aggregate, it has a ceiling
	 * of its own: otherwise it would displace the definitions of later epochs. */
	struct pool *figures, own_figures;
	struct table_index seen; /* hashes of counted processes and threads */

	struct hottest hottest; /* of former epochs */
};

/* The part of the memory that own_figures gets. */
#define MODEL_FIGURES_PART 8

/* Adds to a sum, which saturates. */
static inline void model_add(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

/* Adds the samples of each leaf to h, as far as there is room. */
void model_add_leaves(const struct model *m, struct hottest *h, struct pool *p);

#endif
