/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of struct model, for model.c, which takes the messages, and model_figures.c, which
 * tells what is known. */
#ifndef PROF_EXPORT_MODEL_MODEL_INTERNAL_H
#define PROF_EXPORT_MODEL_MODEL_INTERNAL_H

#include "tools/prof-export/model/blames.h"
#include "tools/prof-export/model/definitions.h"
#include "tools/prof-export/model/epoch.h"
#include "tools/prof-export/model/hottest.h"
#include "tools/prof-export/model/model.h"
#include "tools/prof-export/model/shares.h"
#include "tools/prof-export/model/uptime.h"
#include "tools/prof-export/model/witness_check.h"

/* The present prof-bpf: when it began, and the samples it reported. `handed_on` are those of them
 * that former outputs account for. The rest is the state before it began; `launched` is the count
 * that the launcher knew then. */
struct sampler {
	uint64_t began_ns, taken, handed_on, accounted, launched, bpf_runs, bpf_ns;
};

/* The samples that former outputs of the run account for. */
struct former {
	uint64_t came; /* samples, lost ones too */
	uint64_t lost[STATUS_REASONS];
};

/* The launcher's facts about the run (struct deploy_word). */
struct launched {
	uint64_t taken, restarts[STATUS_TOOLS];
};

struct model {
	struct model_options options;
	struct model_header header;
	char header_text[8][256];
	struct model_clock clock;
	struct model_totals totals;
	struct sampler sampler;
	struct uptime uptime;
	struct launched launched;
	struct former former;
	bool joins_sampler, joins_run; /* as the option, until the first count of each came */
	struct witness_check witness_check;
	bool gap_seen, limit_hit; /* in this epoch */

	struct epoch epoch;
	struct definitions definitions;
	struct shares shares;
	struct blames blames; /* of the same owners */
	uint32_t folded; /* the stack of samples whose own one found no room; MODEL_NONE: none */
	/* Of what is kept over epochs. In a model that does not aggregate it has a ceiling of its
	 * own, since it would crowd out the definitions of later epochs in the end. */
	struct pool *figures, own_figures;
	struct index seen; /* hashes of counted processes and threads */

	struct hottest hottest; /* of former epochs */
};

/* The part of the memory that own_figures gets. */
#define MODEL_FIGURES_PART 8

/* Adds to a sum, which stays at its largest value. */
static inline void model_add(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

/* Adds self counts by name to h, as far as there is room. */
void model_add_leaves(const struct model *m, struct hottest *h, struct pool *p);

#endif
