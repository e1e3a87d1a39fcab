/* SPDX-License-Identifier: Apache-2.0 */
/* Sends one event (events.h). */
#include "common/base/system/clock.h"
#include "common/wire/peer/lastword.h"
#include "tools/prof-symd/stream/namer_internal.h"

static int end_process(struct namer *n, const struct msg_process_end *m, uint64_t now_ns)
{
	int r;

	if (!definitions_find_process(&n->defs, m->id))
		return 0;
	if (n->jit && jit_knows(n->jit, m->id)) {
		r = namer_settle_held(n, m->id, now_ns);
		if (r)
			return r;
		jit_drop(n->jit, m->id);
	}
	/* A process without samples is also passed on, but no file is opened for it: its executable
	 * is only named if the receiver already knows that file. */
	r = namer_send_process(n, m->id, now_ns, false);
	if (r)
		return r;
	r = stream_put(n->out, &(struct msg){ .id = MSG_PROCESS_END, .process_end = *m });
	if (r)
		return r;
	n->ended_threads -= definitions_end_process(&n->defs, m->id);
	if (n->objects)
		objects_drop(n->objects, m->id);
	return 0;
}

static bool waits(const struct namer *n)
{
	return n->aside.len || n->held.len;
}

static int end_file(struct namer *n, struct definition_file *f)
{
	const uint64_t id = f->def.id;
	const int r = f->told != n->epoch
			      ? 0
			      : stream_put(n->out, &(struct msg){ .id = MSG_FILE_END,
								  .file_end = { .id = id } });

	if (r)
		return r;
	n->untold -= f->untold;
	n->offers_open -= f->awaited;
	n->ended_files -= f->ended;
	if (n->objects && f->build)
		objects_forget_build(n->objects, f->build, n->files->now_ns);
	definitions_end_file(&n->defs, id);
	return 0;
}

/* Handles the end of a file. Earlier samples may have been put aside or held back, and their frames
 * must still be named. So the file stays until none is left. */
static int take_file_end(struct namer *n, const struct msg_file_end *m)
{
	struct definition_file *f = definitions_find_file(&n->defs, m->id);

	if (!f)
		return 0;
	if (!waits(n))
		return end_file(n, f);
	n->ended_files += !f->ended;
	f->ended = true;
	return 0;
}

int namer_end_files(struct namer *n)
{
	int r = 0;

	for (uint32_t i = 0; r == 0 && n->ended_files && !waits(n) && i < n->defs.files.len; i++) {
		struct definition_file **f = idtable_at(&n->defs.files, i);

		if (*f && (*f)->ended)
			r = end_file(n, *f);
	}
	return r;
}

int namer_run_event(struct namer *n, const struct event *e, uint64_t now_ns)
{
	switch (e->kind) {
	case EVENT_SAMPLE:
		n->owner = e->owner;
		return namer_send_or_hold(n, &e->sample, now_ns);
	case EVENT_LOST:
		return stream_put(n->out, &(struct msg){ .id = MSG_LOST, .lost = e->lost });
	case EVENT_CLOCK:
		return stream_put(n->out, &(struct msg){ .id = MSG_CLOCK, .clock = e->clock });
	case EVENT_FIGURE:
		return stream_put(n->out,
				  &(struct msg){ .id = MSG_FIGURE,
						 .figure = { .name = { .data = e->figure.name,
								       .len = e->figure.len },
							     .value = e->figure.value } });
	case EVENT_PROCESS_END:
		return end_process(n, &e->process_end, now_ns);
	case EVENT_THREAD_END:
		return namer_end_thread(n, &e->thread_end);
	case EVENT_FILE_END:
		return take_file_end(n, &e->file_end);
	case EVENT_END:
		break; /* namer.c handles it, since it also ends events that were put aside */
	}
	return 0;
}

int namer_run_paced(struct namer *n, const struct event *e, uint64_t now_ns)
{
	if (!n->turn_ns || e->kind != EVENT_SAMPLE || !lastword_rests())
		return namer_run_event(n, e, now_ns);
	const bool others = naming_turns_others(&n->turns, e->owner) || n->aside.len;
	const unsigned part = naming_turns_rest_part(&n->turns, e->owner, LASTWORD_PARTS, now_ns);
	const uint64_t begun_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	n->worked_ns = 0;
	lastword_rest_part(others ? 0 : part);
	const int r = namer_run_event(n, e, now_ns);
	const uint64_t worked_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns + n->worked_ns;

	lastword_rest_part(LASTWORD_PARTS);
	if (others)
		naming_turns_pause(&n->turns, e->owner,
				   lastword_rest_ns(worked_ns) * part / LASTWORD_PARTS,
				   clock_mono_ns());
	return r;
}
