/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/clock.h"
#include "common/walk/weave.h"
#include "common/wire/stream.h"
#include "tools/prof-bpf/stream/emit.h"
#include "tools/prof-bpf/stream/intern.h"

#define BATCH_BYTES (64u << 10)
#define MAX_FRAMES (SAMPLE_MAX_KERNEL + WEAVE_MAX)

struct emit {
	struct emit_config config;
	struct stream_out out;
	struct intern *intern;
	/* Compared with marks. Never repeats, unlike the epochs of pipes. */
	uint64_t incarnation;
	bool ended;
	bool urgent, generated; /* the stack being defined has new frames in no file */
	uint32_t frames[MAX_FRAMES];
	uint64_t list[MAX_FRAMES];
	struct weave_frame woven[WEAVE_MAX];
};

static int flush_batch(void *ctx, struct span batch)
{
	struct emit *e = ctx;

	e->urgent = false;
	return e->config.flush(e->config.ctx, batch);
}

int emit_new(const struct emit_config *c, struct emit **ret)
{
	struct emit *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->config = *c;
	stream_out_init(&e->out, BATCH_BYTES, flush_batch, e);
	int r = intern_new(c->ceiling, &e->intern);
	if (r) {
		emit_free(e);
		return r;
	}
	*ret = e;
	return 0;
}

void emit_free(struct emit *e)
{
	if (!e)
		return;
	stream_out_done(&e->out);
	intern_free(e->intern);
	free(e);
}

/* Forgets all definitions, and begins anew with a hello. */
static int begin_epoch(struct emit *e)
{
	struct msg m = { .id = MSG_HELLO, .hello = e->config.hello };

	e->ended = false;
	intern_reset(e->intern);
	e->incarnation++;
	stream_out_epoch(&e->out, e->incarnation);
	m.hello.schema = msg_schema_hash();
	m.hello.kind = STREAM_RAW;
	m.hello.mono_ns = clock_mono_ns();
	m.hello.wall_ns = clock_wall_ns();
	m.hello.boot_ns = clock_boot_ns();
	return stream_put(&e->out, &m);
}

/* Nothing follows the end of a stream: later messages are dropped. */
static int put(struct emit *e, const struct msg *m)
{
	return e->ended ? 0 : stream_put(&e->out, m);
}

int emit_restart(struct emit *e)
{
	return begin_epoch(e);
}

static int define_file(struct emit *e, const struct emit_file *f)
{
	if (*f->sent == e->incarnation)
		return 0;
	struct msg m = { .id = MSG_FILE, .file = f->def };
	int r = put(e, &m);
	if (!r)
		*f->sent = e->incarnation;
	e->urgent = true;
	return r;
}

static int define_slot(struct emit *e, uint16_t slot, uint32_t *ret_id)
{
	struct emit_file f;

	*ret_id = 0;
	if (!slot || !e->config.file(e->config.ctx, slot, &f))
		return 0;
	*ret_id = (uint32_t)f.def.id;
	return define_file(e, &f);
}

static int define_process(struct emit *e, const struct emit_process *p)
{
	if (*p->sent == e->incarnation && !*p->changed)
		return 0;
	struct msg m = { .id = MSG_PROCESS, .process = p->def };
	int r = p->exe ? define_file(e, p->exe) : 0;
	if (!r)
		r = put(e, &m);
	if (r)
		return r;
	*p->sent = e->incarnation;
	*p->changed = false;
	return 0;
}

static int define_thread(struct emit *e, const struct emit_thread *t)
{
	if (*t->sent == e->incarnation)
		return 0;
	struct msg m = { .id = MSG_THREAD, .thread = t->def };
	int r = put(e, &m);
	if (!r)
		*t->sent = e->incarnation;
	return r;
}

/* Defines the function of a kernel address: its id, or 0. A return address is looked up one byte
 * before, where the call is. */
static int define_kernel_function(struct emit *e, uint64_t address, bool leaf, uint64_t *ret_id)
{
	struct str name, module;
	uint64_t start;
	uint32_t id;
	bool is_new;

	*ret_id = 0;
	if (!e->config.kernel(e->config.ctx, leaf ? address : address - 1, &name, &module, &start))
		return 0;
	int r = intern_function(e->intern, start, &id, &is_new);
	if (r)
		return r;
	*ret_id = id;
	if (!is_new)
		return 0;
	struct msg m = { .id = MSG_FUNCTION,
			 .function = {
				 .id = id, .name = name, .system_name = name, .source = module } };
	return put(e, &m);
}

static int define_frame(struct emit *e, const struct intern_frame *f, uint32_t *ret_id)
{
	bool is_new;
	int r = intern_frame(e->intern, f, ret_id, &is_new);

	if (r || !is_new)
		return r;
	struct msg m = { .id = MSG_FRAME,
			 .frame = { .id = *ret_id,
				    .kind = f->kind,
				    .file = f->file,
				    .offset = f->offset,
				    .process = f->process,
				    .flags = f->flags,
				    .runtime = f->runtime,
				    .mark = f->mark } };
	uint64_t function, line = 0;
	e->generated |= f->kind == FRAME_NATIVE && !f->file;
	if (f->kind == FRAME_INTERPRETED) {
		r = intern_object(e->intern, f->process, f->offset, f->mark >> RUNTIME_CHECK_SHIFT,
				  &is_new);
		if (r)
			return r;
		/* The process may free the object at any moment. */
		e->urgent |= is_new;
	}
	if (f->kind == FRAME_KERNEL) {
		r = define_kernel_function(e, f->offset, f->flags & FRAME_LEAF, &function);
		if (r)
			return r;
		m.frame.address = f->offset;
		if (function) {
			m.frame.functions = (struct u64s){ .data = &function, .len = 1 };
			m.frame.lines = (struct u64s){ .data = &line, .len = 1 };
		}
	}
	return put(e, &m);
}

static int define_interpreted(struct emit *e, const struct weave_frame *w, uint32_t process,
			      uint32_t *ret_id)
{
	const struct runtime_config *c = e->config.runtime(e->config.ctx, w->slot);
	struct intern_frame f = { .offset = w->address,
				  .mark = w->mark,
				  .process = process,
				  .kind = FRAME_INTERPRETED,
				  .runtime = (uint16_t)(c ? c->runtime : RUNTIME_NONE) };
	int r = define_slot(e, w->slot, &f.file);

	return r ? r : define_frame(e, &f, ret_id);
}

static int define_user_frame(struct emit *e, const struct weave_frame *w, uint32_t process,
			     bool first, uint32_t *ret_id)
{
	struct intern_frame f = { .offset = w->word & SAMPLE_FRAME_OFFSET_MASK,
				  .kind = FRAME_NATIVE };

	if (w->interpreted)
		return define_interpreted(e, w, process, ret_id);
	int r = define_slot(e,
			    (uint16_t)(w->word >> SAMPLE_FRAME_SLOT_SHIFT & SAMPLE_FRAME_SLOT_MASK),
			    &f.file);
	if (r)
		return r;
	if (!f.file)
		f.process = process;
	if (w->word & SAMPLE_FRAME_FP)
		f.flags |= FRAME_BY_FP;
	if (w->word & SAMPLE_FRAME_EXACT)
		f.flags |= first ? FRAME_LEAF : FRAME_SIGNAL;
	if (w->loop)
		f.flags |= FRAME_LOOP;
	return define_frame(e, &f, ret_id);
}

/* Defines the stack of a sample. INTERN_FULL: nothing more fits in this epoch. */
static int define_stack(struct emit *e, const struct sample *s, uint32_t reason, uint32_t process,
			uint32_t *ret_id)
{
	const uint64_t *kernel = sample_words(s);
	const struct weave_config weave_by = { e->config.runtime, e->config.ctx };
	uint32_t n = 0, at_file;
	bool cut;

	for (uint32_t i = 0; i < s->kernel_frames && n < MAX_FRAMES; i++, n++) {
		struct intern_frame f = { .offset = kernel[i],
					  .kind = FRAME_KERNEL,
					  .flags = i == 0 ? FRAME_LEAF : 0 };
		int r = define_frame(e, &f, &e->frames[n]);

		if (r)
			return r;
	}
	uint32_t woven = weave(s, &weave_by, e->woven, &cut);
	for (uint32_t i = 0; i < woven && n < MAX_FRAMES; i++, n++) {
		int r = define_user_frame(e, &e->woven[i], process, i == 0, &e->frames[n]);

		if (r)
			return r;
	}
	if (cut && reason == WALK_COMPLETE)
		reason = WALK_RUNTIME_CUT;
	int r = define_slot(e, s->at_slot, &at_file);
	if (r)
		return r;
	bool is_new;
	r = intern_stack(e->intern, e->frames, n, reason, at_file, ret_id, &is_new);
	if (r || !is_new)
		return r;
	for (uint32_t i = 0; i < n; i++)
		e->list[i] = e->frames[i];
	struct msg m = { .id = MSG_STACK,
			 .stack = { .id = *ret_id,
				    .frames = { .data = e->list, .len = n },
				    .reason = reason,
				    .at_file = at_file } };
	return put(e, &m);
}

int emit_sample(struct emit *e, const struct sample *s, uint32_t reason,
		const struct emit_process *p, const struct emit_thread *t)
{
	uint32_t stack;

	e->generated = false;
	int r = define_stack(e, s, reason, (uint32_t)p->def.id, &stack);

	if (r == INTERN_FULL) {
		/* The tables are at their ceiling: both sides forget all definitions. */
		r = stream_flush(&e->out);
		if (!r)
			r = begin_epoch(e);
		if (!r)
			r = define_stack(e, s, reason, (uint32_t)p->def.id, &stack);
		if (r == INTERN_FULL)
			r = -ENOBUFS;
	}
	if (!r)
		r = define_process(e, p);
	if (!r)
		r = define_thread(e, t);
	if (r)
		return r;
	if (e->generated && *p->generated != e->incarnation) {
		*p->generated = e->incarnation;
		e->urgent = true;
	}
	struct msg m = { .id = MSG_SAMPLE,
			 .sample = { .stack = stack,
				     .thread = t->def.id,
				     .cpu = s->cpu,
				     .time_ns = s->time_ns,
				     .value = s->value } };
	return put(e, &m);
}

int emit_object(struct emit *e, const struct msg_object *o)
{
	return put(e, &(struct msg){ .id = MSG_OBJECT, .object = *o });
}

int emit_file(struct emit *e, const struct emit_file *f)
{
	return define_file(e, f);
}

int emit_process(struct emit *e, const struct emit_process *p)
{
	return *p->sent == e->incarnation ? define_process(e, p) : 0;
}

int emit_process_end(struct emit *e, const struct emit_process *p, uint64_t time_ns)
{
	if (*p->sent != e->incarnation)
		return 0;
	struct msg m = { .id = MSG_PROCESS_END,
			 .process_end = { .id = p->def.id, .time_ns = time_ns } };
	int r = define_process(e, p);
	return r ? r : put(e, &m);
}

int emit_lost(struct emit *e, enum lost_reason reason, uint64_t count, uint64_t cpu)
{
	struct msg m = { .id = MSG_LOST, .lost = { .reason = reason, .count = count, .cpu = cpu } };

	return put(e, &m);
}

int emit_figure(struct emit *e, const char *name, uint64_t value)
{
	struct msg m = { .id = MSG_FIGURE, .figure = { .name = str_from(name), .value = value } };

	return put(e, &m);
}

int emit_clock(struct emit *e)
{
	struct msg m = { .id = MSG_CLOCK,
			 .clock = { .mono_ns = clock_mono_ns(),
				    .wall_ns = clock_wall_ns(),
				    .boot_ns = clock_boot_ns() } };

	return put(e, &m);
}

int emit_end(struct emit *e, enum end_reason reason)
{
	struct msg m = {.id = MSG_END, .end = { .reason = reason, .time_ns = clock_mono_ns() } };
	int r = put(e, &m);

	e->ended = true;
	return r ? r : stream_flush(&e->out);
}

int emit_flush(struct emit *e)
{
	return stream_flush(&e->out);
}

bool emit_urgent(const struct emit *e)
{
	return e->urgent;
}
