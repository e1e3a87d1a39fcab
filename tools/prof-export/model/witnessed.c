/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/witnessed.h"

bool witnessed_word(struct witnessed *w, const struct witness_word *word)
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

void witnessed_sample(struct witnessed *w, const struct witness_sample *s)
{
	if (!w->lives) {
		w->unkeyed = true;
		return;
	}
	w->former |= s->time_ns < w->word.began_ns;
	witness_count(&w->came, &w->word.key, s);
}

void witnessed_judge(struct witnessed *w, const uint64_t lost[static STATUS_REASONS])
{
	if (w->judged || w->lives != 1 || !w->word.final || w->unkeyed ||
	    (w->replayed && w->former))
		return;
	w->judged = true;
	w->verdict = witness_compare(&w->word, &w->came, lost, w->unkept,
				     w->broken || w->word.breaks);
}

uint64_t witnessed_taken(const struct witnessed *w)
{
	return w->taken_before + w->word.taken;
}
