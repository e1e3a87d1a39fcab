/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Epochs: each definition is sent at most once per epoch. Processes, threads and files have a mark,
 * which is equal to `incarnation` if they were sent in this epoch. So a new epoch needs to reset
 * nothing but the interned frames and stacks.
 *
 * A new epoch begins for a new receiver, and when definitions fill EPOCH_EIGHTHS of the room: the
 * memory of interned frames and stacks (`ceiling`), or the receiver's tables (`receiver`), whose
 * use `received` estimates.
 *
 * Each new epoch costs all owners their names for a moment. So an owner that holds its fair share
 * of the definitions must not cause one epoch after another. Beyond SOFT_EIGHTHS of the room, its
 * next sample begins a new epoch early, which frees what it holds. If the present epoch is younger
 * than EPOCH_LEAST_NS, its samples keep only their kernel frames instead. Owners who hold less may
 * use the rest of the room up to EPOCH_EIGHTHS. `judged` remembers for a moment who has its share,
 * since computing that visits all owners.
 */
#include "tools/prof-bpf/stream/emit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "common/walk/weave.h"
#include "common/wire/epoch.h"
#include "common/wire/stream.h"
#include "tools/prof-bpf/owners/owners.h"
#include "tools/prof-bpf/stream/intern.h"

#define BATCH_BYTES (64u << 10)
#define MAX_FRAMES (SAMPLE_MAX_KERNEL + WEAVE_MAX)
/* An owner with more than its fair share begins no new epoch before this time: each new epoch costs
 * all others their names for a moment. */
#define EPOCH_LEAST_NS 1000000000ull
#define JUDGED 64
#define JUDGED_NS 10000000ull
/* Beyond this many eighths of the limit, the stacks of such an owner are truncated until then. */
#define SOFT_EIGHTHS 6u

/* Whether an owner held its fair share a moment ago. */
struct judged {
	uint64_t incarnation, ns;
	uint32_t owner;
	bool has_its_share;
};

struct emit {
	struct emit_config config;
	struct stream_out out;
	struct intern *intern;
	/* Compared with marks. Unlike the epochs of pipes, it never repeats. */
	uint64_t incarnation;
	uint64_t received;   /* cost of this epoch's definitions at the receiver */
	uint64_t begun_ns;   /* when this epoch began */
	struct owner *payer; /* the owner charged for the current definition */
	struct emit_truncations truncations;
	struct judged judged[JUDGED];
	bool ended;
	bool urgent, generated; /* the stack that is being defined has new frames in generated
				 * code */
	uint32_t frames[MAX_FRAMES];
	uint64_t list[MAX_FRAMES];
	struct weave_frame woven[WEAVE_MAX];
	struct gathered {
		struct intern_frame frames[INTERN_EXPECTED];
		uint32_t len, done; /* done: frames of the stack that have ids */
	} gathered;
	struct {
		struct sample sample;
		uint64_t kernel[SAMPLE_MAX_KERNEL + 1];
	} cut_sample;
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

struct emit_truncations emit_truncations(const struct emit *e)
{
	return e->truncations;
}

/* Charges a definition that was sent. */
static void charge(struct emit *e, uint64_t bytes)
{
	e->received += bytes;
	if (e->payer && e->config.owners)
		owner_hold(e->config.owners, e->payer, OWNER_DEFINITIONS, bytes);
}

static void release_all(struct emit *e)
{
	for (uint32_t i = 0; e->config.owners && i < OWNERS_MAX; i++) {
		struct owner *w = owners_numbered(e->config.owners, i);

		if (w)
			owner_release(e->config.owners, w, OWNER_DEFINITIONS,
				      w->held[OWNER_DEFINITIONS]);
	}
}

/* Forgets all definitions, and begins an epoch with a hello. */
static int begin_epoch(struct emit *e)
{
	struct msg m = { .id = MSG_HELLO, .hello = e->config.hello };

	e->ended = false;
	intern_reset(e->intern);
	release_all(e);
	e->received = 0;
	e->begun_ns = clock_mono_ns();
	e->incarnation++;
	stream_out_epoch(&e->out, e->incarnation);
	m.hello.schema = MSG_SCHEMA;
	m.hello.build = msg_build();
	m.hello.kind = MSG_STREAM_RAW;
	const struct clock_moment now = clock_moment_now();

	m.hello.mono_ns = now.mono_ns;
	m.hello.wall_ns = now.wall_ns;
	m.hello.boot_ns = now.boot_ns;
	return stream_put(&e->out, &m);
}

/* Adds a message. Nothing follows the end of a stream, so later messages are dropped. */
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
	if (!r) {
		*f->sent = e->incarnation;
		charge(e, EPOCH_FILE + f->def.path.len);
	}
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

static int define_cgroup(struct emit *e, const struct emit_process *p)
{
	if (!p->cgroup_sent || *p->cgroup_sent == e->incarnation)
		return 0;
	const struct msg m = { .id = MSG_CGROUP, .cgroup = p->cgroup };
	const int r = put(e, &m);

	if (r)
		return r;
	*p->cgroup_sent = e->incarnation;
	charge(e, EPOCH_EXTRA + p->cgroup.path.len);
	return 0;
}

static int define_process(struct emit *e, const struct emit_process *p)
{
	if (*p->sent == e->incarnation && !*p->changed)
		return 0;
	struct msg m = { .id = MSG_PROCESS, .process = p->def };
	int r = p->exe ? define_file(e, p->exe) : 0;
	if (!r)
		r = define_cgroup(e, p);
	if (!r)
		r = put(e, &m);
	if (r)
		return r;
	if (*p->sent != e->incarnation) {
		*p->charged = EPOCH_PROCESS;
		charge(e, EPOCH_PROCESS);
	}
	*p->sent = e->incarnation;
	*p->changed = false;
	return 0;
}

static int define_thread(struct emit *e, const struct emit_process *p, const struct emit_thread *t)
{
	if (*t->sent == e->incarnation)
		return 0;
	struct msg m = { .id = MSG_THREAD, .thread = t->def };
	int r = put(e, &m);
	if (r)
		return r;
	*t->sent = e->incarnation;
	*p->charged += EPOCH_THREAD + t->def.title.len;
	charge(e, EPOCH_THREAD + t->def.title.len);
	return 0;
}

/* Defines the function of a kernel address; *ret_id is its id, or 0. A return address is looked up
 * one byte before, where the call is. */
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
	charge(e, EPOCH_FUNCTION + 2 * name.len + module.len);
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
				    .mark = f->mark,
				    .object2 = f->object2,
				    .mark2 = f->mark2 } };
	uint64_t function, line = 0;
	charge(e, EPOCH_FRAME);
	e->generated |= f->kind == MSG_FRAME_NATIVE && !f->file;
	if (f->kind == MSG_FRAME_INTERPRETED) {
		r = intern_object(e->intern, f->process, f->offset, f->mark >> RUNTIME_CHECK_SHIFT,
				  &is_new);
		if (r)
			return r;
		/* Flush soon: the process may free the object at any moment. */
		e->urgent |= is_new;
		if (f->object2)
			r = intern_object(e->intern, f->process, f->object2,
					  f->mark2 >> RUNTIME_CHECK_SHIFT, &is_new);
		if (r)
			return r;
		e->urgent |= is_new;
	}
	if (f->kind == MSG_FRAME_KERNEL) {
		r = define_kernel_function(e, f->offset, f->flags & MSG_FRAME_LEAF, &function);
		if (r)
			return r;
		m.frame.address = f->offset;
		if (function) {
			m.frame.functions = (struct msg_list){ .data = &function, .len = 1 };
			m.frame.lines = (struct msg_list){ .data = &line, .len = 1 };
		}
	}
	return put(e, &m);
}

/* Defines the frames that were gathered. Their ids follow in e->frames. */
static int define_gathered(struct emit *e)
{
	struct gathered *g = &e->gathered;
	int r = 0;

	intern_expect(e->intern, g->frames, g->len);
	for (uint32_t i = 0; !r && i < g->len; i++)
		r = define_frame(e, &g->frames[i], &e->frames[g->done++]);
	g->len = 0;
	return r;
}

static int gather_frame(struct emit *e, const struct intern_frame *f)
{
	struct gathered *g = &e->gathered;

	g->frames[g->len++] = *f;
	return g->len < INTERN_EXPECTED ? 0 : define_gathered(e);
}

static int gather_interpreted(struct emit *e, const struct weave_frame *w, uint32_t process)
{
	const struct runtime_config *c = e->config.runtime(e->config.ctx, w->slot);
	struct intern_frame f = { .offset = w->address,
				  .mark = w->mark,
				  .object2 = w->address2,
				  .mark2 = w->address2 ? w->mark2 : 0,
				  .process = process,
				  .kind = MSG_FRAME_INTERPRETED,
				  .runtime = (uint16_t)(c ? c->runtime : RUNTIME_NONE) };
	int r = define_slot(e, w->slot, &f.file);

	return r ? r : gather_frame(e, &f);
}

static int gather_user_frame(struct emit *e, const struct weave_frame *w, uint32_t process,
			     bool first)
{
	struct intern_frame f = { .offset = w->word & SAMPLE_FRAME_OFFSET_MASK,
				  .kind = MSG_FRAME_NATIVE };

	if (w->interpreted)
		return gather_interpreted(e, w, process);
	int r = define_slot(e, sample_frame_slot(w->word), &f.file);
	if (r)
		return r;
	if (!f.file)
		f.process = process;
	if (w->word & SAMPLE_FRAME_FP)
		f.flags |= MSG_FRAME_BY_FP;
	if (w->word & SAMPLE_FRAME_EXACT)
		f.flags |= first ? MSG_FRAME_LEAF : MSG_FRAME_SIGNAL;
	if (w->loop)
		f.flags |= MSG_FRAME_LOOP;
	return gather_frame(e, &f);
}

/* Defines the stack of a sample. Returns INTERN_FULL if it does not fit in this epoch. */
static int define_stack(struct emit *e, const struct sample *s, uint32_t reason, uint32_t process,
			uint32_t *ret_id)
{
	const uint64_t *kernel = sample_words(s);
	const struct weave_config weave_by = { e->config.runtime, e->config.ctx };
	uint32_t n = 0, at_file;
	bool truncated;

	e->gathered.len = e->gathered.done = 0;
	for (uint32_t i = 0; i < s->kernel_frames && n < MAX_FRAMES; i++, n++) {
		struct intern_frame f = { .offset = kernel[i],
					  .kind = MSG_FRAME_KERNEL,
					  .flags = i == 0 ? MSG_FRAME_LEAF : 0 };
		int r = gather_frame(e, &f);

		if (r)
			return r;
	}
	uint32_t woven = weave(s, &weave_by, e->woven, &truncated);
	for (uint32_t i = 0; i < woven && n < MAX_FRAMES; i++, n++) {
		int r = gather_user_frame(e, &e->woven[i], process, i == 0);

		if (r)
			return r;
	}
	int r = define_gathered(e);
	if (r)
		return r;
	if (truncated && reason == WALK_COMPLETE)
		reason = WALK_RUNTIME_CUT;
	r = define_slot(e, s->at_slot, &at_file);
	if (r)
		return r;
	bool is_new;
	r = intern_stack(e->intern, e->frames, n, reason, at_file, ret_id, &is_new);
	if (r || !is_new)
		return r;
	charge(e, EPOCH_STACK + (uint64_t)n * EPOCH_NUMBER);
	for (uint32_t i = 0; i < n; i++)
		e->list[i] = e->frames[i];
	struct msg m = { .id = MSG_STACK,
			 .stack = { .id = *ret_id,
				    .frames = { .data = e->list, .len = n },
				    .reason = reason,
				    .at_file = at_file } };
	return put(e, &m);
}

/* Whether more than `eighths` of the space are used, here or at the receiver. */
static bool beyond(const struct emit *e, unsigned eighths)
{
	return (e->config.receiver && e->received > e->config.receiver / 8 * eighths) ||
	       intern_bytes(e->intern) > e->config.ceiling / 8 * eighths;
}

/* Whether the owner holds its fair share, and others also hold something. */
static bool holds_its_share(const struct emit *e, const struct owner *w)
{
	const uint64_t held = w->held[OWNER_DEFINITIONS];

	bool others = false;

	for (uint32_t i = 0; i < OWNERS_MAX && !others; i++) {
		const struct owner *o = owners_numbered(e->config.owners, i);

		others = o && o != w && o->held[OWNER_DEFINITIONS];
	}
	/* Some definitions have no owner, so compare with a margin. */
	return others &&
	       held + held / 8 >= owners_share(e->config.owners, w, OWNER_DEFINITIONS, e->received);
}

/* Like holds_its_share, but the answer is kept for a moment, since it takes a visit to all
 * owners. */
static bool has_its_share(struct emit *e, const struct owner *w)
{
	if (!w || !e->config.owners)
		return false;

	struct judged *j = &e->judged[w->number % JUDGED];
	const uint64_t now_ns = clock_mono_ns();

	if (j->owner != w->number || j->incarnation != e->incarnation || now_ns - j->ns > JUDGED_NS)
		*j = (struct judged){ .incarnation = e->incarnation,
				      .ns = now_ns,
				      .owner = w->number,
				      .has_its_share = holds_its_share(e, w) };
	return j->has_its_share;
}

/* Begins a new epoch, in which both sides forget all definitions. */
static int next_epoch(struct emit *e)
{
	const int r = stream_flush(&e->out);

	return r ? r : begin_epoch(e);
}

/* Defines the stack of the sample without its user frames. */
static int define_cut_stack(struct emit *e, const struct sample *s, uint32_t process,
			    uint32_t *ret_id)
{
	e->cut_sample.sample = *s;
	e->cut_sample.sample.user_frames = e->cut_sample.sample.items =
		e->cut_sample.sample.at_slot = 0;
	memcpy(e->cut_sample.kernel, sample_words(s), s->kernel_frames * sizeof(uint64_t));
	return define_stack(e, &e->cut_sample.sample, WALK_DEFINITIONS, process, ret_id);
}

/* Defines the stack, in a new epoch if there is no space. An owner who holds its fair share of the
 * definitions must not begin one too often: its stacks lose their user frames, while others
 * continue. */
static int make_room_and_define(struct emit *e, const struct sample *s, uint32_t reason,
				const struct emit_process *p, uint32_t *ret_stack)
{
	const uint32_t process = (uint32_t)p->def.id;
	int r = 0;

	if (beyond(e, SOFT_EIGHTHS) && has_its_share(e, p->owner)) {
		if (clock_mono_ns() - e->begun_ns < EPOCH_LEAST_NS && !beyond(e, EPOCH_EIGHTHS)) {
			e->truncations.samples++;
			e->truncations.uid = p->owner->key.uid;
			owner_refuse(p->owner, OWNER_DEFINITIONS, 1);
			return define_cut_stack(e, s, process, ret_stack);
		}
		r = next_epoch(e);
	} else if (beyond(e, EPOCH_EIGHTHS)) {
		r = next_epoch(e);
	}
	if (!r)
		r = define_stack(e, s, reason, process, ret_stack);
	if (r == INTERN_FULL) {
		r = next_epoch(e);
		if (!r)
			r = define_stack(e, s, reason, process, ret_stack);
	}
	return r == INTERN_FULL ? -ENOBUFS : r;
}

int emit_sample(struct emit *e, const struct sample *s, uint32_t reason,
		const struct emit_process *p, const struct emit_thread *t)
{
	uint32_t stack;

	e->generated = false;
	e->payer = p->owner;
	int r = make_room_and_define(e, s, reason, p, &stack);

	if (!r)
		r = define_process(e, p);
	if (!r)
		r = define_thread(e, p, t);
	e->payer = NULL;
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
				     .value = s->value,
				     .source = s->source } };
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

/* The cost stays charged: the receiver forgets the file, but maybe only when the epoch ends. */
int emit_file_end(struct emit *e, const struct emit_file *f)
{
	if (*f->sent != e->incarnation)
		return 0;
	return put(e, &(struct msg){ .id = MSG_FILE_END, .file_end = { .id = f->def.id } });
}

int emit_process(struct emit *e, const struct emit_process *p)
{
	return *p->sent == e->incarnation ? define_process(e, p) : 0;
}

/* Releases this much of what was charged for the process, because the receiver forgets it. */
static void release(struct emit *e, const struct emit_process *p, uint64_t bytes)
{
	bytes = bytes < *p->charged ? bytes : *p->charged;
	e->received -= numbers_smaller(bytes, e->received);
	if (p->owner && e->config.owners)
		owner_release(e->config.owners, p->owner, OWNER_DEFINITIONS, bytes);
	*p->charged -= bytes;
}

int emit_process_end(struct emit *e, const struct emit_process *p, uint64_t time_ns)
{
	if (*p->sent != e->incarnation)
		return 0;
	struct msg m = { .id = MSG_PROCESS_END,
			 .process_end = { .id = p->def.id, .time_ns = time_ns } };
	int r = define_process(e, p);
	if (!r)
		r = put(e, &m);
	if (r)
		return r;
	/* The receiver forgets the process and its threads. */
	release(e, p, *p->charged);
	return 0;
}

int emit_thread_end(struct emit *e, const struct emit_process *p, const struct emit_thread *t)
{
	if (*p->sent != e->incarnation || *t->sent != e->incarnation)
		return 0;
	const struct msg m = { .id = MSG_THREAD_END, .thread_end = { .id = t->def.id } };
	const int r = put(e, &m);

	if (!r)
		release(e, p, EPOCH_THREAD + t->def.title.len);
	return r;
}

int emit_mapping(struct emit *e, const struct emit_process *p, const struct emit_file *f,
		 const struct msg_mapping *m)
{
	int r = define_file(e, f);

	if (!r)
		r = define_process(e, p);
	if (!r)
		r = put(e, &(struct msg){ .id = MSG_MAPPING, .mapping = *m });
	if (r)
		return r;
	*p->charged += EPOCH_EXTRA + EPOCH_MAPPING;
	charge(e, EPOCH_EXTRA + EPOCH_MAPPING);
	return 0;
}

int emit_attribute(struct emit *e, const struct emit_process *p, struct str key, struct str value)
{
	const struct msg m = { .id = MSG_ATTRIBUTE,
			       .attribute = { .process = p->def.id, .key = key, .value = value } };
	const uint64_t cost = EPOCH_EXTRA + key.len + value.len;

	e->payer = p->owner;
	int r = define_process(e, p);

	if (!r)
		r = put(e, &m);
	if (!r) {
		*p->charged += cost;
		charge(e, cost);
	}
	e->payer = NULL;
	return r;
}

uint64_t emit_mark(const struct emit *e)
{
	return e->incarnation;
}

int emit_lost(struct emit *e, const struct msg_lost *lost)
{
	struct msg m = { .id = MSG_LOST, .lost = *lost };

	return put(e, &m);
}

int emit_figure(struct emit *e, const char *name, uint64_t value)
{
	struct msg m = { .id = MSG_FIGURE, .figure = { .name = str_from(name), .value = value } };

	return put(e, &m);
}

int emit_clock(struct emit *e)
{
	const struct clock_moment now = clock_moment_now();
	struct msg m = {
		.id = MSG_CLOCK,
		.clock = { .mono_ns = now.mono_ns, .wall_ns = now.wall_ns, .boot_ns = now.boot_ns }
	};

	return put(e, &m);
}

int emit_end(struct emit *e, enum msg_end_reason reason)
{
	struct msg m = {.id = MSG_END, .end = { .reason = reason, .time_ns = clock_mono_ns() } };
	const int r = put(e, &m);

	if (r)
		return r;
	e->ended = true;
	return stream_flush(&e->out);
}

size_t emit_packed(const struct emit *e)
{
	return e->out.batch.len;
}

int emit_flush(struct emit *e)
{
	return stream_flush(&e->out);
}

bool emit_urgent(const struct emit *e)
{
	return e->urgent;
}
