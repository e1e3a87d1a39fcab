/* SPDX-License-Identifier: Apache-2.0 */
/* Sends one event (events.h). */
#include "tools/prof-symd/stream/named_internal.h"

static int end_process(struct named *n, const struct msg_process_end *m, uint64_t now_ns)
{
	int r;

	if (!definitions_find_process(&n->defs, m->id))
		return 0;
	if (n->jit && jit_knows(n->jit, m->id)) {
		r = named_settle_held(n, m->id, now_ns);
		if (r)
			return r;
		jit_drop(n->jit, m->id);
	}
	/* A process without samples is passed on as well, but no file is opened for it: its exe is
	 * only named if the receiver already knows that file. */
	r = named_send_process(n, m->id, now_ns, false);
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

/* Frames in it may still come, so its definition stays. */
static int end_file(struct named *n, const struct msg_file_end *m)
{
	const struct def_file *f = definitions_find_file(&n->defs, m->id);

	return f && f->sent == n->epoch
		       ? stream_put(n->out, &(struct msg){ .id = MSG_FILE_END, .file_end = *m })
		       : 0;
}

int named_run_event(struct named *n, const struct event *e, uint64_t now_ns)
{
	switch (e->kind) {
	case EVENT_SAMPLE:
		n->owner = e->owner;
		return named_send_or_hold(n, &e->sample, now_ns);
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
		return named_end_thread(n, &e->thread_end);
	case EVENT_FILE_END:
		return end_file(n, &e->file_end);
	case EVENT_END:
		break; /* named.c: it ends what was put aside */
	}
	return 0;
}
