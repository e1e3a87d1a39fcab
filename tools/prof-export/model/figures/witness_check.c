/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/figures/witness_check.h"

bool witness_check_word(struct witness_check *w, const struct witness_word *word)
{
	if (word->magic != WITNESS_MAGIC)
		return false;
	if (!w->lives || w->word.began_ns != word->began_ns) {
		w->lives++;
		w->taken_before += w->word.taken;
	}
	w->word = *word;
	return true;
}

void witness_check_sample(struct witness_check *w, const struct witness_sample *s)
{
	if (!w->lives) {
		w->unkeyed++;
		return;
	}
	w->former |= s->time_ns < w->word.began_ns;
	witness_count(&w->came, &w->word.key, s);
}

void witness_check_judge(struct witness_check *w, const uint64_t lost[static STATUS_REASONS])
{
	if (w->judged || w->lives != 1 || (!w->word.final && !w->over) || w->joins ||
	    (w->replayed && w->former))
		return;
	/* These samples came without a key, so they cannot be checked. Unless prof-bpf reports that
	 * it sampled before prof-export received its key, they are not prof-bpf's. */
	if (w->unkeyed && (w->word.unheard || w->replayed))
		return;
	w->judged = true;
	w->verdict = witness_compare(&w->word, &w->came, lost, w->unkept,
				     w->broken || w->word.breaks);
	w->verdict.more += w->unkeyed;
	/* prof-bpf reports its end before it ends the stream. Without that report, prof-symd ended
	 * the stream, and later samples are missing. */
	if (!w->word.final && !w->verdict.fewer)
		w->verdict.fewer = 1;
}

uint64_t witness_check_taken(const struct witness_check *w)
{
	return w->taken_before + w->word.taken;
}
