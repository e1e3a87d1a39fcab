/* SPDX-License-Identifier: Apache-2.0 */
#include "common/status/witness.h"

#include "bpf/mix.h"
#include "common/base/bytes/numbers.h"
#include "common/wire/msg.h"

/* A hash is never shown to anybody who does not know the key. */
static unsigned bucket(const struct witness_key *k, const struct witness_sample *s)
{
	const uint64_t words[] = { s->pid,    s->tid,	s->cpu,	   s->time_ns, s->value,
				   s->source, s->count, s->labels, s->link };
	uint64_t h = k->words[0];

	for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		h = numbers_fold(h ^ words[i] ^ MIX_GOLDEN, (k->words[1] ^ MIX_FOLD) | 1);
	return (unsigned)(numbers_fold(h ^ k->words[0], 0xa0761d6478bd642fu) >> 32) %
	       WITNESS_BUCKETS;
}

void witness_count(struct witness_counts *c, const struct witness_key *k,
		   const struct witness_sample *s)
{
	c->samples++;
	c->buckets[bucket(k, s)]++;
}

/* Whether only prof-bpf counts losses of this reason. */
static bool is_its_own(unsigned reason)
{
	return reason != LOST_SEQUENCE && reason != LOST_MALFORMED && reason != LOST_LIMIT &&
	       reason != LOST_RESTART;
}

struct witness_verdict witness_compare(const struct witness_word *w,
				       const struct witness_counts *came,
				       const uint64_t lost[static STATUS_REASONS], uint64_t unkept,
				       bool broken)
{
	struct witness_verdict v = { 0 };
	uint64_t explained = 0, placed = 0;

	for (unsigned i = 0; i < WITNESS_BUCKETS; i++) {
		placed += came->buckets[i];
		v.more += numbers_less(came->buckets[i], w->sent.buckets[i]);
		v.fewer += numbers_less(w->sent.buckets[i], came->buckets[i]);
	}
	v.more += numbers_less(came->samples, placed);
	for (unsigned i = 0; i < STATUS_REASONS; i++) {
		if (is_its_own(i))
			v.losses += numbers_less(lost[i], w->lost[i]);
		else if (i != LOST_RESTART)
			explained += numbers_less(lost[i], w->lost[i]);
		/* Each loss is sent only once, perhaps to a prof-symd that then ended. */
		if (!broken)
			v.losses += numbers_less(w->lost[i], lost[i]);
	}
	v.fewer = broken ? 0 : numbers_less(v.fewer, numbers_less(explained, unkept));
	return v;
}
