/* SPDX-License-Identifier: Apache-2.0 */
/* The distinct rules of a file (struct rows_rules). */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/rows/rows.h"

#define FREE_SLOT 0xffff

static int rules_grow(struct rows_rules *s)
{
	uint32_t slots = s->slots ? s->slots * 2 : 1024; /* keeps the table at most a quarter
							  * full */
	uint16_t *slot = malloc(slots * sizeof(*slot));

	if (!slot)
		return -ENOMEM;

	struct unwind_rule *rule = realloc(s->rule, slots / 4 * sizeof(*rule));

	if (!rule) {
		free(slot);
		return -ENOMEM;
	}
	free(s->slot);
	s->rule = rule;
	s->cap = slots / 4;
	s->slot = slot;
	s->slots = slots;
	memset(slot, 0xff, slots * sizeof(*slot));
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t at = rows_words_hash(rows_words_of(&rule[i])) & (slots - 1);

		while (slot[at] != FREE_SLOT)
			at = (at + 1) & (slots - 1);
		slot[at] = (uint16_t)i;
	}
	return 0;
}

/* The slow half of rows_rules_put: probes beyond the first slot, and adds. */
int rows_rules_add(struct rows_rules *s, const struct unwind_rule *rule, uint16_t *ret)
{
	if (s->n == s->cap) {
		/* Rule 0 is always the gap. */
		bool first = !s->n;
		struct unwind_rule gap = { .cfa = UNWIND_CFA_END, .cfa_add = UNWIND_END_GAP };
		uint16_t number;
		int r = rules_grow(s);

		if (r < 0)
			return r;
		if (first && memcmp(&gap, rule, sizeof(gap)) != 0) {
			r = rows_rules_put(s, &gap, &number);
			if (r)
				return r;
		}
	}

	struct rows_words words = rows_words_of(rule);
	uint32_t at = rows_words_hash(words) & (s->slots - 1);

	for (; s->slot[at] != FREE_SLOT; at = (at + 1) & (s->slots - 1)) {
		if (rows_words_eq(rows_words_of(&s->rule[s->slot[at]]), words)) {
			*ret = s->slot[at];
			return 0;
		}
	}
	if (s->n >= ROWS_MAX_RULES)
		return MSG_ROWS_TOO_LARGE;
	s->rule[s->n] = *rule;
	s->slot[at] = (uint16_t)s->n;
	*ret = (uint16_t)s->n++;
	return 0;
}

void rows_rules_done(struct rows_rules *s)
{
	free(s->rule);
	free(s->slot);
	*s = (struct rows_rules){ 0 };
}
