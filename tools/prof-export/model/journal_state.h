/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The saved state of a model that does not aggregate: the plain numbers that it keeps over epochs.
 * The journal stores them for the next prof-export. Processes and threads that were counted are not
 * saved, so the next prof-export counts them again. Its list of the hottest functions starts empty.
 */
#ifndef PROF_EXPORT_MODEL_JOURNAL_STATE_H
#define PROF_EXPORT_MODEL_JOURNAL_STATE_H

#include "tools/prof-export/model/model_internal.h"

#define MODEL_JOURNAL_TEXTS 8 /* of the header */

struct model_journal_state {
	struct model_header header; /* followed by its texts */
	char texts[MODEL_JOURNAL_TEXTS][256];
	uint64_t lengths[MODEL_JOURNAL_TEXTS];
	struct model_clock clock;
	struct model_totals totals;
	struct model_sampler sampler;
	struct uptime uptime;
	struct model_launched launched;
	struct witness_check witness_check;
};

void model_save(const struct model *m, struct model_journal_state *ret);
/* Makes an empty model continue from saved state. Returns false if the bytes are no such state; the
 * model is then unchanged. */
bool model_restore(struct model *m, const struct model_journal_state *s);

#endif
