/* SPDX-License-Identifier: Apache-2.0 */
/* Sends samples. Before each one it sends the stack and everything else that the sample needs. */
#include "tools/prof-symd/stream/namer_internal.h"

/* Whether a frame of the stack lacked its name when the stack was sent, and has it now. Then both
 * are sent again. Does not wait. */
static bool names_came(struct namer *n, const struct definition_stack *s, uint64_t now_ns)
{
	uint32_t lacking = 0;

	for (uint32_t i = 0; i < s->count; i++) {
		struct definition_frame *f =
			definitions_find_frame(&n->defs, n->defs.numbers[s->numbers + i]);

		if (!f || !f->lacks)
			continue;
		if (namer_name_came(n, f, now_ns))
			f->sent = 0;
		else
			lacking++;
	}
	return lacking < s->lacking;
}

static int send_stack(struct namer *n, uint64_t id, uint64_t now_ns)
{
	struct definition_stack *s = idtable_get(&n->defs.stacks, id);
	struct msg m = { .id = MSG_STACK };
	uint32_t shown = 0, lacking = 0;
	int r;

	n->skipped = false;
	if (!s)
		return NAMER_UNDEFINED;
	if (namer_was_sent(n, s->sent, s->payers) && !(s->lacking && names_came(n, s, now_ns)))
		return 0;
	for (uint32_t i = 0; i < s->count; i++) {
		bool strange = s->reason == WALK_NO_MAPPING && i + 1 == s->count;
		uint64_t frame = n->defs.numbers[s->numbers + i];

		if (n->jit && !n->lean && i % JIT_EXPECTED == 0)
			namer_expect_generated(n, s, i);
		n->stack = s;
		n->stack_at = i;
		r = namer_send_frame(n, frame, strange, now_ns);
		n->stack = NULL;
		if (r)
			return r;
		const struct definition_frame *f = definitions_find_frame(&n->defs, frame);

		if (f && !f->hidden && shown < NAMER_STACK_FRAMES)
			n->shown[shown++] = frame;
		lacking += f && f->lacks;
	}
	m.stack = (struct msg_stack){ .id = id,
				      .frames = { .data = n->shown, .len = shown },
				      .reason = s->reason,
				      .payer = n->payer };
	if (s->at_file) {
		r = namer_send_file(n, s->at_file, now_ns, NULL);
		if (r != 0 && r != NAMER_UNDEFINED)
			return r;
		m.stack.at_file = r == 0 ? s->at_file : 0;
	}
	r = stream_put(n->out, &m);
	if (r)
		return r;
	namer_mark_sent(n, &s->sent, &s->payers);
	s->sent = n->skipped ? 0 : n->epoch;
	s->lacking = lacking;
	return 0;
}

void namer_lose_sample(struct namer *n)
{
	n->lost[n->defs.limit_hit ? 0 : n->gap_seen ? 1 : 2]++;
	n->counts.lost++;
}

int namer_send_sample(struct namer *n, const struct msg_sample *sample, uint64_t now_ns)
{
	int r = 0;

	if (n->limits.epoch && n->out->bytes > n->limits.epoch)
		r = namer_restart(n);
	if (r)
		return r;
	namer_charge(n, sample->thread);
	n->sample_ns = sample->time_ns;
	/* A sample begins at most one new epoch. If its stack does not fit even an empty table, the
	 * sample is lost. */
	for (int attempt = 0; attempt < 2; attempt++) {
		r = sample->stack ? send_stack(n, sample->stack, now_ns) : 0;
		if (r == 0 && sample->thread)
			r = namer_send_thread(n, sample->thread, now_ns);
		if (r != NAMER_RESTARTED)
			break;
	}
	if (r == NAMER_UNDEFINED || r == NAMER_RESTARTED) {
		n->defs.limit_hit |= r == NAMER_RESTARTED;
		namer_lose_sample(n);
		return 0;
	}
	struct msg m = { .id = MSG_SAMPLE, .sample = *sample };

	if (r == 0)
		r = namer_send_extras(n, &m.sample);
	if (r)
		return r;
	r = stream_put(n->out, &m);
	n->counts.samples += r == 0;
	return r;
}
