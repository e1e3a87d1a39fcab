/* SPDX-License-Identifier: Apache-2.0 */
/* What the journal saves of a model, and how the next prof-export's model continues from it. */
#include <string.h>
#include "tools/prof-export/model/model_internal.h"

/* The texts of a header, in the order of header_text. */
#define TEXTS(h) \
	{ \
		&(h)->producer, &(h)->arch, &(h)->kernel, &(h)->hostname, &(h)->event, &(h)->unit, \
			&(h)->host_id, &(h)->kernel_build_id \
	}

void model_save(const struct model *m, struct model_journal_state *ret)
{
	const struct str *const texts[] = TEXTS(&m->header);
	const struct str none = { 0 };

	*ret = (struct model_journal_state){
		.header = m->header,
		.clock = m->clock,
		.totals = m->totals,
		.sampler = m->sampler,
		.uptime = m->uptime,
		.launched = m->launched,
		.witness_check = m->witness_check,
	};
	for (size_t i = 0; i < MODEL_JOURNAL_TEXTS; i++) {
		memcpy(ret->texts[i], m->header_text[i], sizeof(ret->texts[i]));
		ret->lengths[i] = texts[i]->len;
	}
	/* The saved pointers were addresses in another process. */
	struct str *const addresses[] = TEXTS(&ret->header);

	for (size_t i = 0; i < MODEL_JOURNAL_TEXTS; i++)
		*addresses[i] = none;
}

/* A byte of any value. */
static bool flag(const bool *b)
{
	uint8_t byte;

	memcpy(&byte, b, 1);
	return byte != 0;
}

/* A report of prof-bpf may have come already. */
static void restore_witness(struct witness_check *w, const struct witness_check *s)
{
	const struct witness_word word = w->word;
	const bool heard = w->lives, other = word.began_ns != s->word.began_ns;

	w->came = s->came;
	w->unkept = s->unkept;
	w->taken_before = s->taken_before;
	w->word = s->word;
	w->lives = s->lives;
	w->unkeyed += s->unkeyed;
	w->broken |= flag(&s->broken);
	w->replayed |= flag(&s->replayed);
	w->former |= flag(&s->former);
	if (!heard)
		return;
	w->word = word;
	w->lives += other || !s->lives;
	w->taken_before += other ? s->word.taken : 0;
}

bool model_restore(struct model *m, const struct model_journal_state *s)
{
	struct str *const texts[] = TEXTS(&m->header);

	for (size_t i = 0; i < MODEL_JOURNAL_TEXTS; i++)
		if (s->lengths[i] > sizeof(s->texts[i]))
			return false;
	m->header.seen = true;
	m->header.kind = s->header.kind;
	m->header.cpus = s->header.cpus;
	m->header.hz = s->header.hz;
	m->header.period = s->header.period;
	m->header.mono_ns = s->header.mono_ns;
	m->header.wall_ns = s->header.wall_ns;
	m->header.boot_ns = s->header.boot_ns;
	for (size_t i = 0; i < MODEL_JOURNAL_TEXTS; i++) {
		memcpy(m->header_text[i], s->texts[i], sizeof(m->header_text[i]));
		*texts[i] = (struct str){ .data = m->header_text[i],
					  .len = (uint32_t)s->lengths[i] };
	}
	m->clock = s->clock;
	m->totals = s->totals;
	m->totals.ended = false; /* the saved stream goes on */
	m->sampler = s->sampler;
	m->uptime = s->uptime;
	m->launched = s->launched;
	restore_witness(&m->witness_check, &s->witness_check);
	return true;
}
