/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/stream/namer_internal.h"

#include <errno.h>
#include <stdlib.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "common/wire/peer/lastword.h"
#include "common/wire/stream.h"
#include "tools/prof-symd/stream/relayed.h"

#define LOOK_NS 100000000ull	   /* how long naming waits for offered files to be opened */
#define HELD_LOOK_NS 1000000000ull /* interval between looks at held samples, if no name is new */
/* Added to this interval for each held sample, of which a look takes a twentieth of this time. */
#define HELD_EACH_NS 100000ull
#define FRAMES_EXPECTED 32u /* frames that are fetched into the cpu's cache at once */

static const uint64_t why_lost[3] = { LOST_LIMIT, LOST_SEQUENCE, LOST_MALFORMED };

int namer_new(const struct namer_limits *limits, struct filestore *files, struct stream_out *out,
	      struct namer **ret)
{
	struct namer *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return -ENOMEM;
	n->limits = *limits;
	n->files = files;
	n->out = out;
	n->epoch = out->epoch;
	n->counts.epochs = 1;
	const struct definitions_limits kept = { .processes = limits->processes,
						 .threads = limits->threads,
						 .files = limits->files,
						 .frames = limits->frames,
						 .stacks = limits->stacks,
						 .functions = limits->raw_functions,
						 .relayed = limits->relayed,
						 .numbers = limits->numbers,
						 .bytes = limits->bytes };
	r = definitions_init(&n->defs, &kept, files);
	if (r == 0)
		r = events_init(&n->queue, limits->queue);
	if (r == 0)
		r = functions_init(&n->functions, limits->functions, limits->text);
	if (r) {
		namer_free(n);
		return r;
	}
	*ret = n;
	return 0;
}

void namer_free(struct namer *n)
{
	if (!n)
		return;
	definitions_done(&n->defs);
	held_samples_done(&n->held);
	events_aside_done(&n->aside);
	functions_done(&n->functions);
	events_done(&n->queue);
	free(n);
}

size_t namer_bytes(const struct namer *n)
{
	return definitions_bytes(&n->defs) + functions_bytes(&n->functions);
}

void namer_use_jit(struct namer *n, struct jit *j)
{
	n->jit = j;
}

void namer_leave_out(struct namer *n, enum reporting_names wanted)
{
	n->wanted = wanted;
	n->files->bare = wanted != REPORTING_ALL;
	if (wanted == REPORTING_NO_NAMES)
		n->jit = NULL;
}

/* --- runtimes --- */

/* Requests the name of a frame in advance. */
static void want_object(struct namer *n, const struct definition_frame *f, uint64_t now_ns)
{
	const struct runtime_build *b = namer_build_of(n, f);
	const struct definition_process *p = definitions_find_process(&n->defs, f->process);

	if (n->wanted == REPORTING_NO_NAMES)
		return;
	if (b && p && f->sent != n->epoch)
		objects_want(n->objects, b, f->process, (uint32_t)p->def.pid, f->offset, f->mark,
			     now_ns);
	if (b && p && f->sent != n->epoch && f->has_second) {
		const uint64_t *second = namer_second_of(n, f);

		objects_want(n->objects, b, f->process, (uint32_t)p->def.pid, second[0], second[1],
			     now_ns);
	}
}

static void tell_runtime(struct namer *n, struct definition_file *f)
{
	int r = n->tell(n->tell_ctx, f->def.id, f->build);
	bool untold = r == -EAGAIN;

	n->untold += (unsigned)untold - (unsigned)f->untold;
	f->untold = untold;
}

/* Requests names of frames that came before their file was described. */
static void want_waiting(struct namer *n, uint64_t file)
{
	for (uint32_t i = 0; i < n->defs.frames.len; i++) {
		const struct definition_frame *f = idtable_at(&n->defs.frames, i);

		if (f->kind == MSG_FRAME_INTERPRETED && f->file == file)
			want_object(n, f, n->files->now_ns);
	}
}

static void describe(struct namer *n, struct definition_file *f, struct program *p)
{
	struct runtime_build *b = malloc(sizeof(*b));

	if (!b)
		return;
	f->described = true;
	const int r = program_describe(p, b);

	if (r) {
		/* If there was no memory, try again when the file is next opened. */
		f->described = r != -ENOMEM;
		free(b);
		if (f->def.flags & MSG_FILE_OFFERED)
			tell_runtime(n, f);
		return;
	}
	f->build = b;
	tell_runtime(n, f);
	want_waiting(n, f->def.id);
}

/* Describes one file that was postponed. The prompt worker does it: another program may keep the
 * patient one for long. Until then, nothing is looked up in the file (name_frame). */
static void describe_postponed(struct namer *n)
{
	for (uint32_t i = 0; i < n->defs.files.len; i++) {
		struct definition_file **f = idtable_at(&n->defs.files, i);

		if (!*f || !(*f)->postponed)
			continue;
		(*f)->postponed = false;
		n->postponed--;
		/* It is open even while its debug file is still awaited. If it was closed
		 * meanwhile, it is described when it is opened again. */
		struct program *p = (*f)->store.program;

		if (p && !(*f)->described) {
			const bool slow = program_is_slow(p);

			program_set_slow(p, false);
			describe(n, *f, p);
			program_set_slow(p, slow);
		} else if (!(*f)->described && (*f)->def.flags & MSG_FILE_OFFERED) {
			filestore_want(n->files, &(*f)->store, n->files->now_ns);
		}
		return;
	}
	n->postponed = 0;
}

/* Describes a file of the stream when it is opened for the first time in an epoch. p is NULL if it
 * could not be opened. A large file of a user waits, so that many of them do not delay the host's
 * interpreters: one is described in each turn. */
static void file_opened(void *ctx, struct filestore_file *store, struct program *p)
{
	struct definition_file *f =
		(struct definition_file *)((char *)store - offsetof(struct definition_file, store));
	struct namer *n = ctx;

	if (f->described)
		return;
	n->offers_open -= f->awaited;
	f->awaited = false;
	if (!p) {
		/* prof-bpf, which offered the file, waits for an answer. */
		if (f->def.flags & MSG_FILE_OFFERED)
			tell_runtime(n, f);
		return;
	}
	if (!n->turn_ns || store->of_root || !program_is_large(p)) {
		describe(n, f, p);
		return;
	}
	n->postponed += !f->postponed;
	f->postponed = true;
}

static void tell_untold(struct namer *n)
{
	for (uint32_t i = 0; i < n->defs.files.len && n->untold; i++) {
		struct definition_file **f = idtable_at(&n->defs.files, i);

		if (*f && (*f)->untold)
			tell_runtime(n, *f);
	}
}

static uint64_t owner_of(void *ctx, uint64_t process)
{
	return namer_owner_of_process(ctx, process);
}

void namer_use_objects(struct namer *n, struct objects *o,
		       int (*tell)(void *, uint64_t, const struct runtime_build *), void *ctx)
{
	n->objects = o;
	objects_owners(o, owner_of, n);
	n->tell = tell;
	n->tell_ctx = ctx;
	n->files->opened_hook = file_opened;
	n->files->hook_ctx = n;
}

/* Requests the names of a stack's frames in advance. */
static void want_objects(struct namer *n, const struct definition_stack *s, uint64_t now_ns)
{
	for (uint32_t i = 0; i < s->count; i++) {
		const uint64_t *frames = &n->defs.numbers[s->numbers + i];

		if (i % FRAMES_EXPECTED == 0)
			idtable_expect(&n->defs.frames, frames,
				       (uint32_t)numbers_smaller(s->count - i, FRAMES_EXPECTED));
		const struct definition_frame *f = definitions_find_frame(&n->defs, *frames);

		if (f && f->kind == MSG_FRAME_INTERPRETED)
			want_object(n, f, now_ns);
	}
}

struct namer_counts namer_counts(const struct namer *n)
{
	return n->counts;
}

bool namer_ended(const struct namer *n)
{
	return n->ended;
}

bool namer_file(const struct namer *n, uint64_t file, struct msg_file *ret)
{
	struct definition_file *f = definitions_find_file(&n->defs, file);

	if (!f)
		return false;
	*ret = f->def;
	return true;
}

bool namer_process(const struct namer *n, uint64_t process, struct msg_process *ret)
{
	const struct definition_process *p = definitions_find_process(&n->defs, process);

	if (!p)
		return false;
	*ret = p->def;
	return true;
}

/* --- losses --- */

void namer_missing(struct namer *n, uint64_t count)
{
	if (!count)
		return;
	n->gap_seen = true;
	n->lost[1] += count;
	n->counts.lost += count;
}

void namer_skipped(struct namer *n, const struct stream_skipped *all)
{
	n->of_newer = *all;
}

static int tell_lost(struct namer *n)
{
	for (int i = 0; i < 3; i++) {
		int r;

		if (!n->lost[i])
			continue;
		r = stream_put(n->out, &(struct msg){ .id = MSG_LOST,
						      .lost = { .reason = why_lost[i],
								.count = n->lost[i],
								.cpu = MSG_LOST_ANY_CPU } });
		if (r)
			return r;
		n->lost[i] = 0;
	}
	return 0;
}

/* --- taking definitions --- */

/* Takes a file. prof-bpf offers files that are named like an interpreter. These are described
 * before a frame in them comes. */
static int take_file(struct namer *n, const struct msg_file *m, uint64_t now_ns)
{
	int r = definitions_file(&n->defs, m);
	struct definition_file *f = r || !n->objects ? NULL
						     : definitions_find_file(&n->defs, m->id);
	const bool offered = m->flags & MSG_FILE_OFFERED;

	if (!f)
		return r;
	/* The file was described in an earlier epoch, which may have been that of another
	 * prof-bpf. */
	if (f->was_open && (f->build || (f->described && offered)))
		tell_runtime(n, f);
	n->postponed += f->was_open && f->postponed;
	f->was_open = false;
	if (offered && !f->described) {
		filestore_want(n->files, &f->store, now_ns);
		n->offers_open += !f->awaited;
		f->awaited = true;
		n->looks_until_ns = now_ns + LOOK_NS;
	}
	return r;
}

static int take_frame(struct namer *n, const struct msg_frame *m, uint64_t now_ns)
{
	struct definition_file *file = definitions_find_file(&n->defs, m->file);
	struct definition_frame *f;
	int r = definitions_frame(&n->defs, m, &f);

	if (r || !f || f->count)
		return r;
	if (file &&
	    (f->kind == MSG_FRAME_NATIVE || (f->kind == MSG_FRAME_INTERPRETED && n->objects)))
		filestore_want(n->files, &file->store, now_ns);
	if (n->jit && !f->file && f->kind == MSG_FRAME_NATIVE) {
		const struct definition_process *p = definitions_find_process(&n->defs, f->process);

		if (p)
			jit_want(n->jit, f->process, (uint32_t)p->def.pid, now_ns);
	}
	return 0;
}

static int take_stack(struct namer *n, const struct msg_stack *m, uint64_t now_ns)
{
	struct definition_stack *s;
	int r = definitions_stack(&n->defs, m, &s);

	if (s && n->objects)
		want_objects(n, s, now_ns);
	return r;
}

/* --- the end --- */

/* Sends processes that are alive and had no sample. */
static int send_idle_processes(struct namer *n, uint64_t now_ns)
{
	for (uint32_t i = 0; i < n->defs.processes.len; i++) {
		struct definition_process *p = idtable_at(&n->defs.processes, i);

		if (idmap_get(&n->defs.processes.ids, p->def.id) == i) {
			int r = namer_send_process(n, p->def.id, now_ns, false);

			if (r)
				return r;
		}
	}
	return 0;
}

static int send_figure(struct namer *n, const char *name, uint64_t value)
{
	return stream_put(n->out,
			  &(struct msg){ .id = MSG_FIGURE,
					 .figure = { .name = str_from(name), .value = value } });
}

/* Sends figures about the naming of interpreted frames. */
static int send_figures(struct namer *n)
{
	struct objects_counts c = objects_counts(n->objects);
	const struct {
		const char *name;
		uint64_t value;
	} figures[] = {
		{ "objects_named", c.named },	    { "objects_gone", c.gone },
		{ "objects_refused", c.refused },   { "objects_evicted", c.evicted },
		{ "objects_requests", c.requests }, { "objects_pieces", c.pieces },
		{ "objects_bytes", c.bytes },	    { "objects_rounds", c.rounds },
		{ "objects_answers", c.answers },   { "objects_waited_ns", c.waited_ns },
		{ "objects_least_ns", c.least_ns },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && c.requests && i < sizeof(figures) / sizeof(figures[0]); i++)
		r = send_figure(n, figures[i].name, figures[i].value);
	return r;
}

/* Sends how much was skipped of a raw stream that comes from a newer version. */
static int tell_skipped(struct namer *n)
{
	int r = 0;

	if (n->of_newer.messages)
		r = send_figure(n, "skipped_messages", n->of_newer.messages);
	if (r == 0 && n->of_newer.fields)
		r = send_figure(n, "skipped_fields", n->of_newer.fields);
	return r;
}

/* Sends everything that is left of the stream, and its end. */
static int end_stream(struct namer *n, const struct msg_end *m, uint64_t now_ns)
{
	const struct msg last = {.end = *m, .id = MSG_END };
	int r;

	namer_ends(n, now_ns);
	r = namer_settle_aside(n, now_ns);
	if (r == 0)
		r = namer_settle_held(n, NAMER_ALL, now_ns);
	if (r == 0)
		r = namer_end_files(n);
	if (r == 0)
		r = send_idle_processes(n, now_ns);
	if (r == 0)
		r = tell_lost(n);
	if (r == 0)
		r = tell_skipped(n);
	if (r == 0 && n->objects)
		r = send_figures(n);
	if (r == 0)
		r = stream_put(n->out, &last);
	n->ended = r == 0;
	return r;
}

static int run_event(struct namer *n, const struct event *e, uint64_t now_ns)
{
	return e->kind == EVENT_END ? end_stream(n, &e->end, now_ns)
				    : namer_run_paced(n, e, now_ns);
}

/* --- the queue --- */

bool namer_full(const struct namer *n)
{
	return events_full(&n->queue);
}

int namer_take(struct namer *n, const struct msg *m, uint64_t now_ns)
{
	struct event e;
	struct msg hello;

	switch (m->id) {
	case MSG_HELLO:
		hello = *m;
		hello.hello.schema = MSG_SCHEMA;
		hello.hello.build = msg_build();
		hello.hello.kind = MSG_STREAM_NAMED;
		n->begun = true;
		n->epoch_ns = now_ns;
		if (n->objects)
			objects_forbid(n->objects, m->hello.no_memory);
		return stream_put(n->out, &hello);
	case MSG_PROCESS:
		return definitions_process(&n->defs, &m->process);
	case MSG_THREAD:
		return definitions_thread(&n->defs, &m->thread);
	case MSG_FILE:
		return take_file(n, &m->file, now_ns);
	case MSG_FUNCTION:
		return definitions_function(&n->defs, &m->function);
	case MSG_FRAME:
		return take_frame(n, &m->frame, now_ns);
	case MSG_STACK:
		return take_stack(n, &m->stack, now_ns);
	case MSG_OBJECT:
		/* If there is no memory for the copy, the object is requested when its frame
		 * comes. */
		if (n->objects && n->wanted != REPORTING_NO_NAMES &&
		    objects_take(n->objects, &m->object) == -ENOMEM)
			n->counts.unnamed++;
		return 0;
	default:
		if (relayed_has(m->id))
			return relayed_take(&n->defs, m);
		if (m->id == MSG_END)
			namer_ends(n, now_ns);
		if (!event_of(m, &e)) {
			n->lost[2]++; /* not a message of a stream */
			return 0;
		}
		e.owner = e.kind == EVENT_SAMPLE ? namer_owner_of(n, e.sample.thread)
			  : e.kind == EVENT_PROCESS_END
				  ? namer_owner_of_process(n, e.process_end.id)
			  : e.kind == EVENT_THREAD_END ? namer_owner_of(n, e.thread_end.id)
						       : NAMING_TURNS_NOBODY;
		if (e.kind == EVENT_SAMPLE)
			naming_turns_enter(&n->turns, e.owner, now_ns);
		if (!events_push(&n->queue, &e))
			namer_lose_sample(n); /* only if the caller ignored namer_full */
		return 0;
	}
}

int namer_forget(struct namer *n, uint64_t now_ns)
{
	namer_settles(n, now_ns);
	int r = namer_run(n, now_ns);

	if (r == 0)
		r = namer_settle_aside(n, now_ns);
	if (r == 0)
		r = namer_settle_held(n, NAMER_ALL, now_ns);
	if (r)
		return r;
	if (!n->ending)
		n->late_ns = 0;
	n->epoch_ns = now_ns;
	if (n->objects)
		objects_renew(n->objects, now_ns);
	definitions_clear(&n->defs);
	n->gap_seen = false;
	n->untold = 0;
	n->ended_threads = n->ended_files = 0;
	n->offers_open = 0;
	if (n->jit)
		jit_drop_all(n->jit);
	return namer_restart(n);
}

static void pop(struct namer *n)
{
	const struct event *e = events_head(&n->queue);

	if (e->kind == EVENT_SAMPLE)
		naming_turns_leave(&n->turns, e->owner);
	n->head_ns = 0;
	events_pop(&n->queue);
}

/* Runs the event at the queue's head, or puts it aside if its owner's turn is over. The time for
 * which it waits is also charged, since other events wait behind it. */
static int run_head(struct namer *n, const struct event *e, uint64_t now_ns)
{
	int r;

	if (n->aside.len && namer_waits_aside(n, e)) {
		r = namer_put_aside(n, e, now_ns);
		if (e->kind != EVENT_THREAD_END || (r != -ENOBUFS && r != -ENOMEM))
			return r;
		return 0; /* the thread is kept until its process ends */
	}
	if (e->kind == EVENT_SAMPLE && n->turn_ns && n->head_ns)
		naming_turns_spend(&n->turns, e->owner, now_ns - n->head_ns, now_ns);
	n->give_up = e->kind == EVENT_SAMPLE && namer_gives_up(n, e->owner, now_ns);
	n->lean = n->give_up || (e->kind == EVENT_SAMPLE && namer_must_yield(n, e->owner, now_ns));
	r = run_event(n, e, now_ns);
	n->give_up = false;
	if (r == NAMER_ASIDE) {
		r = namer_put_aside(n, e, now_ns);
		if (r == -ENOBUFS || r == -ENOMEM) {
			n->give_up = true;
			r = namer_run_event(n, e, now_ns);
			n->give_up = false;
		}
	}
	n->lean = false;
	n->head_ns = r == NAMER_WAIT ? now_ns : 0;
	return r;
}

static int run(struct namer *n, uint64_t now_ns)
{
	uint64_t pause_ns = n->held.len * HELD_EACH_NS;

	if (n->postponed)
		describe_postponed(n);
	if (n->untold)
		tell_untold(n);
	if (n->held.len && n->jit->version == n->held_version)
		pause_ns += HELD_LOOK_NS;
	if (n->held.len && now_ns - n->held_ns >= pause_ns) {
		int r = namer_run_held(n, 0, now_ns);

		if (r)
			return r;
		n->held_version = n->jit->version;
		n->held_ns = now_ns;
	}
	const uint64_t begun_ns = n->turn_ns ? clock_mono_ns() : 0;

	for (;; pop(n)) {
		const struct event *e = events_head(&n->queue);

		if (!e)
			break;
		n->paused = n->turn_ns && clock_mono_ns() - begun_ns > n->turn_ns;
		if (n->paused)
			return NAMER_WAIT;
		int r = run_head(n, e, now_ns);

		if (r)
			return r;
	}
	if (n->ended)
		return 0;
	if (n->aside.len) {
		const int r = namer_run_aside(n, begun_ns + n->turn_ns, now_ns);

		if (r < 0)
			return r;
	}
	const int e = namer_end_files(n);

	return e ? e : tell_lost(n);
}

void namer_renew(struct namer *n)
{
	n->renews = true;
}

/* Begins a new epoch before anything else is sent, if one was requested, or if sending was cut
 * short for lack of memory. */
static int resume(struct namer *n)
{
	const int r = n->renews ? namer_restart(n) : 0;

	n->paused = false;
	n->renews = r != 0;
	return r;
}

int namer_run(struct namer *n, uint64_t now_ns)
{
	int r = resume(n);

	if (r == 0)
		r = run(n, now_ns);
	n->renews |= r == -ENOMEM;
	return r;
}

bool namer_paused(const struct namer *n)
{
	return n->paused || (n->postponed && !n->ended);
}

uint64_t namer_looks_until(const struct namer *n)
{
	return n->offers_open ? n->looks_until_ns : 0;
}

bool namer_begun(const struct namer *n)
{
	return n->begun;
}

int namer_end(struct namer *n, enum msg_end_reason reason, uint64_t now_ns)
{
	const struct msg_end end = { .reason = reason, .time_ns = now_ns };

	if (n->ended)
		return 0;
	int r = resume(n);

	if (r == 0)
		r = end_stream(n, &end, now_ns);
	n->renews |= r == -ENOMEM;
	return r;
}
