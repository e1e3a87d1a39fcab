/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two layers. Definitions map the ids of the present epoch to things; they go with the epoch,
 * processes and threads with PROCESS_END. Things (strings, files, functions, frames, stacks, and
 * those processes and threads of which there are samples) are kept once each, by content, in
 * arrays.
 */
#include "tools/prof-export/model.h"

#include <errno.h>
#include <inttypes.h>
#include "common/account.h"
#include "common/budget.h"
#include "tools/prof-export/hot.h"
#include "tools/prof-export/label.h"
#include "tools/prof-export/lives.h"
#include "tools/prof-export/things.h"

/* A frame id that stands for several frames: the rest is its place in groups. */
#define GROUP 0x80000000u

struct process_def {
	uint64_t pid, start_ns, execs;
	uint32_t flags;
	uint32_t exe;			/* file, or MODEL_NONE */
	uint32_t process;		/* once it has a sample */
	uint32_t threads;		/* its first; next free slot for an unused one */
	uint64_t samples, cut, unnamed; /* as in struct status, until its runtime is known */
	uint8_t runtime;		/* of common/remedies.def; STATUS_RUNTIMES: none */
	uint8_t comm_len;
	char comm[16];
};

struct thread_def {
	uint64_t id, tid;
	uint32_t process_def, thread, next;
	bool counted;
	uint8_t comm_len;
	char comm[16];
};

/* A prof-bpf: when it began, what it says it took; and what all before it came to. */
struct sampler {
	uint64_t began_ns, taken, accounted, bpf_runs, bpf_ns;
};

/* What the launcher says of the run (common/deploy.h). */
struct launched {
	uint64_t taken, restarts[STATUS_TOOLS];
};

struct model {
	struct model_options options;
	struct model_header header;
	char header_text[6][256];
	struct model_totals totals;
	struct sampler sampler;
	struct lives lives;
	struct launched launched;
	bool gap_seen, limit_hit; /* in this epoch */

	/* of this epoch */
	struct idmap process_ids, thread_ids, file_ids, function_ids, frame_ids, stack_ids;
	ARRAY(struct process_def) process_defs;
	ARRAY(struct thread_def) thread_defs;
	uint32_t free_process_def, free_thread_def;
	ARRAY(uint32_t) groups;

	struct things things;
	struct index seen; /* processes and threads told of: hashes only */

	struct hot hot;		 /* of epochs that are forgotten */
	ARRAY(uint32_t) scratch; /* a stack being taken */
};

static void add(uint64_t *sum, uint64_t n)
{
	if (__builtin_add_overflow(*sum, n, sum))
		*sum = UINT64_MAX;
}

int model_new(const struct model_options *o, struct model **ret)
{
	struct model *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->options = *o;
	m->things.pool.max = o->memory_max;
	m->things.detail = o->detail;
	m->totals.first_ns = UINT64_MAX;
	m->free_process_def = m->free_thread_def = MODEL_NONE;
	if (things_begin(&m->things)) {
		model_free(m);
		return -EINVAL;
	}
	*ret = m;
	return 0;
}

static void free_definitions(struct model *m)
{
	idmap_done(&m->process_ids, &m->things.pool);
	idmap_done(&m->thread_ids, &m->things.pool);
	idmap_done(&m->file_ids, &m->things.pool);
	idmap_done(&m->function_ids, &m->things.pool);
	idmap_done(&m->frame_ids, &m->things.pool);
	idmap_done(&m->stack_ids, &m->things.pool);
	ARRAY_FREE(&m->things.pool, &m->process_defs);
	ARRAY_FREE(&m->things.pool, &m->thread_defs);
	ARRAY_FREE(&m->things.pool, &m->groups);
	m->free_process_def = m->free_thread_def = MODEL_NONE;
}

void model_free(struct model *m)
{
	if (!m)
		return;
	free_definitions(m);
	things_done(&m->things);
	hot_done(&m->hot, &m->things.pool);
	index_done(&m->seen, &m->things.pool);
	ARRAY_FREE(&m->things.pool, &m->scratch);
	free(m);
}

/* Counts a process or thread once, by a 64-bit hash of what it is. Where there is no room to
 * remember it, it may be counted again. */
static void count_once(struct model *m, const uint64_t *numbers, size_t n, uint64_t *count)
{
	const uint64_t h = table_hash64(numbers, n * sizeof(*numbers));
	const uint32_t number = (uint32_t)(h >> 32) & 0x7fffffff;
	size_t cursor = SIZE_MAX;
	uint32_t i;

	while ((i = index_next(&m->seen, (uint32_t)h, &cursor)) != TABLE_NONE)
		if (i == number)
			return;
	index_add(&m->seen, &m->things.pool, (uint32_t)h, number);
	++*count;
}

/* --- definitions --- */

static int intern_process(struct model *m, struct process_def *d)
{
	const struct model_process p = { .pid = d->pid,
					 .start_ns = d->start_ns,
					 .execs = d->execs,
					 .flags = d->flags,
					 .exe = d->exe };

	return things_process(&m->things, p, (struct str){ .data = d->comm, .len = d->comm_len },
			      &d->process);
}

/* Processes and threads become things with their first sample. 0, -ENOBUFS. */
static int keep_process(struct model *m, struct process_def *d)
{
	return d->process == MODEL_NONE ? intern_process(m, d) : 0;
}

static int keep_thread(struct model *m, struct thread_def *d)
{
	struct process_def *p = &m->process_defs.data[d->process_def];

	if (d->thread != MODEL_NONE)
		return 0;
	int r = keep_process(m, p);

	return r ? r
		 : things_thread(&m->things, p->process, d->tid,
				 (struct str){ .data = d->comm, .len = d->comm_len }, &d->thread);
}

static int count_bucket(struct model *m, uint32_t thread, uint32_t stack, uint64_t value)
{
	uint32_t i;
	int r = things_bucket(&m->things, thread, stack, &i);

	if (r)
		return r;
	m->things.buckets.data[i].samples++;
	add(&m->things.buckets.data[i].value, value);
	return 0;
}

/* What could not be kept: samples that name it are lost for this reason. */
static void not_kept(struct model *m, int r)
{
	if (r == -ENOBUFS)
		m->limit_hit = true;
}

static uint8_t keep_comm(char into[static 16], struct str s)
{
	const struct str kept = str_cut(s, 16);

	if (kept.len)
		memcpy(into, kept.data, kept.len);
	return (uint8_t)kept.len;
}

static void set_exe(struct model *m, struct process_def *d, uint32_t exe)
{
	d->exe = exe;
	if (exe != MODEL_NONE && d->runtime >= STATUS_RUNTIMES)
		d->runtime =
			(uint8_t)account_program(model_string(m, m->things.files.data[exe].path));
}

/* A second definition of a process. */
static int update_process(struct model *m, struct process_def *d, const struct msg_process *msg)
{
	const uint32_t exe = msg->exe ? idmap_get(&m->file_ids, msg->exe) : MODEL_NONE;

	if (exe != MODEL_NONE)
		set_exe(m, d, exe);
	d->flags = (uint32_t)msg->flags;
	d->comm_len = keep_comm(d->comm, msg->comm);
	return d->process == MODEL_NONE ? 0 : intern_process(m, d);
}

static int take_process(struct model *m, const struct msg_process *msg)
{
	const uint32_t known = idmap_get(&m->process_ids, msg->id);

	if (known != TABLE_NONE)
		return update_process(m, &m->process_defs.data[known], msg);
	count_once(m, (uint64_t[]){ msg->pid, msg->start_ns }, 2, &m->totals.processes);
	const bool reuse = m->free_process_def != MODEL_NONE;

	if (!reuse && !ARRAY_ROOM(&m->things.pool, &m->process_defs, 1))
		return -ENOBUFS;
	const uint32_t slot = reuse ? m->free_process_def : (uint32_t)m->process_defs.len;
	int r = idmap_add(&m->process_ids, &m->things.pool, msg->id, slot);

	if (r)
		return r;
	struct process_def *d = &m->process_defs.data[slot];

	if (reuse)
		m->free_process_def = d->threads;
	else
		m->process_defs.len++;
	*d = (struct process_def){ .pid = msg->pid,
				   .start_ns = msg->start_ns,
				   .execs = msg->execs,
				   .flags = (uint32_t)msg->flags,
				   .process = MODEL_NONE,
				   .threads = MODEL_NONE,
				   .runtime = STATUS_RUNTIMES };
	set_exe(m, d, msg->exe ? idmap_get(&m->file_ids, msg->exe) : MODEL_NONE);
	d->comm_len = keep_comm(d->comm, msg->comm);
	return 0;
}

static int take_thread(struct model *m, const struct msg_thread *msg)
{
	const uint32_t process = idmap_get(&m->process_ids, msg->process);

	if (process == TABLE_NONE || idmap_get(&m->thread_ids, msg->id) != TABLE_NONE)
		return 0;
	const bool reuse = m->free_thread_def != MODEL_NONE;

	if (!reuse && !ARRAY_ROOM(&m->things.pool, &m->thread_defs, 1))
		return -ENOBUFS;
	const uint32_t slot = reuse ? m->free_thread_def : (uint32_t)m->thread_defs.len;
	int r = idmap_add(&m->thread_ids, &m->things.pool, msg->id, slot);

	if (r)
		return r;
	struct thread_def *d = &m->thread_defs.data[slot];
	struct process_def *p = &m->process_defs.data[process];

	if (reuse)
		m->free_thread_def = d->next;
	else
		m->thread_defs.len++;
	*d = (struct thread_def){ .id = msg->id,
				  .tid = msg->tid,
				  .process_def = process,
				  .thread = MODEL_NONE,
				  .next = p->threads };
	d->comm_len = keep_comm(d->comm, msg->comm);
	p->threads = slot;
	return 0;
}

static void end_process(struct model *m, const struct msg_process_end *msg)
{
	const uint32_t slot = idmap_get(&m->process_ids, msg->id);

	if (slot == TABLE_NONE)
		return;
	struct process_def *p = &m->process_defs.data[slot];

	for (uint32_t t = p->threads; t != MODEL_NONE;) {
		struct thread_def *d = &m->thread_defs.data[t];
		const uint32_t next = d->next;

		idmap_remove(&m->thread_ids, d->id);
		d->next = m->free_thread_def;
		m->free_thread_def = t;
		t = next;
	}
	idmap_remove(&m->process_ids, msg->id);
	p->threads = m->free_process_def;
	m->free_process_def = slot;
}

/* An id that is defined again stands for the new thing from here on. */
static int redefine(struct model *m, struct idmap *ids, uint64_t id, uint32_t thing)
{
	idmap_remove(ids, id);
	return idmap_add(ids, &m->things.pool, id, thing);
}

static int take_file(struct model *m, const struct msg_file *msg)
{
	uint32_t file;

	if (idmap_get(&m->file_ids, msg->id) != TABLE_NONE)
		return 0;
	int r = things_file(&m->things, msg, &file);

	return r ? r : idmap_add(&m->file_ids, &m->things.pool, msg->id, file);
}

static int take_function(struct model *m, const struct msg_function *msg)
{
	uint32_t function;

	if (idmap_get(&m->function_ids, msg->id) != TABLE_NONE)
		return 0;
	int r = things_function(&m->things, msg, &function);

	return r ? r : idmap_add(&m->function_ids, &m->things.pool, msg->id, function);
}

/* One frame for each call, innermost first; a single one is its own group. */
static int split_frame(struct model *m, const struct model_frame *whole, const uint32_t *calls,
		       uint32_t *ret)
{
	const uint32_t at = (uint32_t)m->groups.len;

	if (!ARRAY_ROOM(&m->things.pool, &m->groups, whole->count + 1u) ||
	    m->groups.len >= GROUP - 512)
		return -ENOBUFS;
	for (unsigned i = 0; i < whole->count; i++) {
		struct model_frame f = {
			.file = whole->file, .process = MODEL_NONE, .count = 1, .kind = whole->kind
		};
		const bool keeps_line = whole->kind == MODEL_INTERPRETED && m->options.lines;
		const uint32_t call[2] = { calls[i], keeps_line ? calls[whole->count + i] : 0 };

		f.flags = whole->flags & FRAME_LOOP;
		if (i + 1 < whole->count)
			f.flags |= MODEL_INLINED;
		int r = things_frame(&m->things, f, call, &m->groups.data[at + 1 + i]);

		if (r)
			return r;
	}
	if (whole->count == 1) {
		*ret = m->groups.data[at + 1];
		return 0;
	}
	m->groups.data[at] = whole->count;
	m->groups.len += whole->count + 1u;
	*ret = at | GROUP;
	return 0;
}

static int take_frame(struct model *m, const struct msg_frame *msg)
{
	struct model_frame f = { .offset = msg->offset,
				 .address = msg->address,
				 .file = MODEL_NONE,
				 .process = MODEL_NONE,
				 .kind = msg_frame_kind(msg->kind),
				 .flags = (uint8_t)(msg->flags & (FRAME_LEAF | FRAME_BY_FP |
								  FRAME_SIGNAL | FRAME_LOOP)) };
	uint32_t calls[2 * 256], frame;
	const uint32_t n = msg->functions.len < 256 ? msg->functions.len : 256;

	/* A frame of which a part was lost is lost: it would show what is not there. An interpreted
	 * one is its function's, whichever file holds the interpreter. */
	if (msg->file && f.kind != MODEL_INTERPRETED) {
		f.file = idmap_get(&m->file_ids, msg->file);
		if (f.file == TABLE_NONE)
			return 0;
	}
	f.count = (uint16_t)n;
	for (uint32_t i = 0; i < n; i++) {
		calls[i] = idmap_get(&m->function_ids, msg->functions.data[i]);
		calls[n + i] = i < msg->lines.len ? things_clamp(msg->lines.data[i]) : 0;
		if (calls[i] == TABLE_NONE)
			return 0;
	}
	if (f.file == MODEL_NONE && f.kind != MODEL_KERNEL &&
	    m->options.detail == MODEL_ADDRESSES) {
		const uint32_t d = idmap_get(&m->process_ids, msg->process);

		if (d != TABLE_NONE && keep_process(m, &m->process_defs.data[d]))
			return -ENOBUFS;
		if (d != TABLE_NONE)
			f.process = m->process_defs.data[d].process;
	}
	int r;

	if (m->options.detail == MODEL_NAMES && n) {
		r = split_frame(m, &f, calls, &frame);
	} else {
		if (f.kind == MODEL_NATIVE && !n)
			f.start = msg->start;
		if (m->options.detail == MODEL_NAMES) {
			f.flags &= FRAME_LOOP;
			if (f.start)
				f.offset = f.address = msg->address;
		}
		r = things_frame(&m->things, f, calls, &frame);
	}
	return r ? r : redefine(m, &m->frame_ids, msg->id, frame);
}

static const struct model_frame *frame_at(const struct model *m, uint32_t frame)
{
	if (frame & GROUP)
		frame = m->groups.data[(frame & ~GROUP) + 1];
	return &m->things.frames.data[frame];
}

/* Whether a frame of an interpreter's loop is shown as the interpreted frame that it runs, behind
 * it. */
static bool is_folded(const struct model *m, const struct msg_stack *msg, uint32_t i)
{
	while (!m->options.interpreter_frames && i < msg->frames.len) {
		const uint32_t frame = idmap_get(&m->frame_ids, msg->frames.data[i++]);
		const struct model_frame *f = frame == TABLE_NONE ? NULL : frame_at(m, frame);

		if (!f || !(f->flags & FRAME_LOOP))
			return f && f->kind == MODEL_INTERPRETED;
	}
	return false;
}

static int take_stack(struct model *m, const struct msg_stack *msg)
{
	bool user = msg->reason != 0;
	uint32_t stack;

	m->scratch.len = 0;
	for (uint32_t i = 0; i < msg->frames.len; i++) {
		uint32_t frame = idmap_get(&m->frame_ids, msg->frames.data[i]), one = 1;
		const uint32_t *from = &frame;

		if (frame == TABLE_NONE)
			return 0;
		if (frame & GROUP) {
			from = &m->groups.data[(frame & ~GROUP) + 1];
			one = from[-1];
		}
		if (frame_at(m, frame)->flags & FRAME_LOOP && is_folded(m, msg, i))
			continue;
		if (!ARRAY_ROOM(&m->things.pool, &m->scratch, one + 1))
			return -ENOBUFS;
		memcpy(m->scratch.data + m->scratch.len, from, one * sizeof(*from));
		m->scratch.len += one;
		user = user || m->things.frames.data[*from].kind != MODEL_KERNEL;
	}
	if (msg->reason) {
		struct model_frame f = { .offset = msg->reason,
					 .process = MODEL_NONE,
					 .kind = MODEL_TRUNCATED,
					 .file = idmap_get(&m->file_ids, msg->at_file) };

		if (!ARRAY_ROOM(&m->things.pool, &m->scratch, 1) ||
		    things_frame(&m->things, f, NULL, &m->scratch.data[m->scratch.len]))
			return -ENOBUFS;
		m->scratch.len++;
	}
	int r = things_stack(&m->things, msg->reason, user, m->scratch.data, m->scratch.len,
			     &stack);

	return r ? r : redefine(m, &m->stack_ids, msg->id, stack);
}

/* --- samples --- */

static size_t reason_slot(uint64_t reason)
{
	return reason < STATUS_REASONS ? (size_t)reason : STATUS_REASONS - 1;
}

/* Before it is known which runtime a process runs, its samples are counted with it. */
static void count_runtime(struct model *m, struct process_def *p, const struct model_stack *s)
{
	struct model_totals *t = &m->totals;

	p->samples++;
	p->cut += s->generated &&
		  (s->reason == WALK_NO_ROWS || s->reason == WALK_NO_MAPPING ||
		   s->reason == WALK_NO_PROGRESS || s->reason == WALK_STACK_UNREADABLE ||
		   s->reason == WALK_CALLER_UNSURE);
	p->unnamed += s->unnamed;
	if (p->runtime >= STATUS_RUNTIMES)
		p->runtime = s->runtime;
	if (p->runtime >= STATUS_RUNTIMES)
		return;
	t->runtime_samples[p->runtime] += p->samples;
	t->runtime_cut[p->runtime] += p->cut;
	t->runtime_unnamed[p->runtime] += p->unnamed;
	p->samples = p->cut = p->unnamed = 0;
}

static void lose_to_limit(struct model *m)
{
	m->totals.unkept++;
	model_lose(m, LOST_LIMIT, 1);
}

static void lose_sample(struct model *m)
{
	if (m->limit_hit)
		lose_to_limit(m);
	else
		model_lose(m, m->gap_seen ? LOST_SEQUENCE : LOST_MALFORMED, 1);
}

static int take_sample(struct model *m, const struct msg_sample *msg, struct model_sample *ret)
{
	struct model_totals *t = &m->totals;
	uint32_t stack = idmap_get(&m->stack_ids, msg->stack),
		 thread_def = idmap_get(&m->thread_ids, msg->thread);
	uint32_t thread = MODEL_NONE;

	if ((msg->thread && thread_def == TABLE_NONE) || (msg->stack && stack == TABLE_NONE)) {
		lose_sample(m);
		return 0;
	}
	if (!msg->stack && things_stack(&m->things, 0, false, NULL, 0, &stack)) {
		lose_to_limit(m);
		return 0;
	}
	if (msg->thread && m->options.aggregate) {
		if (keep_thread(m, &m->thread_defs.data[thread_def])) {
			lose_to_limit(m);
			return 0;
		}
		thread = m->thread_defs.data[thread_def].thread;
	}
	if (m->options.aggregate && count_bucket(m, thread, stack, msg->value)) {
		lose_to_limit(m);
		return 0;
	}
	const struct model_stack *s = &m->things.stacks.data[stack];

	*ret = (struct model_sample){
		.cpu = msg->cpu, .time_ns = msg->time_ns, .value = msg->value, .stack = s
	};
	if (msg->thread) {
		struct thread_def *d = &m->thread_defs.data[thread_def];
		struct process_def *p = &m->process_defs.data[d->process_def];

		if (!d->counted)
			count_once(m, (uint64_t[]){ p->pid, p->start_ns, d->tid }, 3, &t->threads);
		d->counted = true;
		ret->comm = (struct str){ .data = d->comm, .len = d->comm_len };
		ret->process_comm = (struct str){ .data = p->comm, .len = p->comm_len };
		ret->pid = p->pid;
		ret->tid = d->tid;
		count_runtime(m, p, s);
	}
	t->samples++;
	add(&t->value, msg->value);
	t->user_stacks += s->user;
	if (s->reason) {
		t->truncated[reason_slot(s->reason)]++;
	} else {
		t->complete++;
		if (!t->first_complete_ns || msg->time_ns < t->first_complete_ns)
			t->first_complete_ns = msg->time_ns;
	}
	if (msg->time_ns < t->first_ns)
		t->first_ns = msg->time_ns;
	if (msg->time_ns > t->last_ns)
		t->last_ns = msg->time_ns;
	lives_until(&m->lives, msg->time_ns);
	if (s->count)
		m->things.self.data[m->things.numbers.data[s->frames]]++;
	return MODEL_SAMPLE;
}

/* --- the rest --- */

static void take_hello(struct model *m, const struct msg_hello *msg)
{
	struct model_header *h = &m->header;
	const struct str from[] = { msg->producer, msg->arch,  msg->kernel,
				    msg->hostname, msg->event, msg->unit };
	struct str *const to[] = { &h->producer, &h->arch,  &h->kernel,
				   &h->hostname, &h->event, &h->unit };

	if (h->seen)
		return;
	for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		const struct str s = str_cut(from[i], sizeof(m->header_text[i]));

		if (s.len)
			memcpy(m->header_text[i], s.data, s.len);
		*to[i] = (struct str){ .data = m->header_text[i], .len = s.len };
	}
	h->kind = msg->kind;
	h->cpus = msg->cpus;
	h->hz = msg->hz;
	h->period = msg->period;
	h->mono_ns = msg->mono_ns;
	h->wall_ns = msg->wall_ns;
	h->seen = true;
}

/* Samples of which it is known what became of them. */
static uint64_t accounted(const struct model_totals *t)
{
	return t->samples + lost_samples(t->lost) - t->lost[LOST_RESTART];
}

/* What the sampler took and did not come was in the hands of tools that ended: it is known when
 * all has come that will, at the end of that sampler's life or of the stream. */
static void settle(struct model *m)
{
	const uint64_t came = accounted(&m->totals) - m->sampler.accounted;

	if (m->sampler.taken > came)
		model_lose(m, LOST_RESTART, m->sampler.taken - came);
	m->sampler.taken = 0;
}

static void begin_sampler(struct model *m, uint64_t began_ns)
{
	if (m->sampler.began_ns == began_ns)
		return;
	settle(m);
	lives_next(&m->lives);
	m->sampler = (struct sampler){ .began_ns = began_ns,
				       .accounted = accounted(&m->totals),
				       .bpf_runs = m->totals.bpf_runs,
				       .bpf_ns = m->totals.bpf_ns };
}

/* Others leave it so much: what it was given at the start is its own in any case. */
static void grant(struct model *m, uint64_t share)
{
	const uint64_t granted =
		budget_model(share < m->options.share_most ? share : m->options.share_most);

	if (m->options.share_most)
		m->things.pool.max = granted > m->options.memory_max ? granted
								     : m->options.memory_max;
}

static void take_figure(struct model *m, const struct msg_figure *msg)
{
	struct model_totals *t = &m->totals;
	const struct {
		const char *name;
		uint64_t *value, before;
	} kept[] = {
		{ "taken", &m->sampler.taken, 0 },
		{ "bpf_runs", &t->bpf_runs, m->sampler.bpf_runs },
		{ "bpf_ns", &t->bpf_ns, m->sampler.bpf_ns },
		{ "map_bytes", &t->map_bytes, 0 },
		{ "memory_enough", &t->memory_enough, 0 },
		{ "memory_peak", &t->memory_peak, 0 },
		{ "run_taken", &m->launched.taken, 0 },
		{ "run_until", &m->lives.run_until_ns, 0 },
		{ "restarts_bpf", &m->launched.restarts[0], 0 },
		{ "restarts_deltas", &m->launched.restarts[1], 0 },
		{ "restarts_symd", &m->launched.restarts[2], 0 },
		{ "restarts_export", &m->launched.restarts[3], 0 },
	};

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (str_eq(msg->name, str_from(kept[i].name)))
			*kept[i].value = kept[i].before + msg->value;
	if (str_eq(msg->name, STR_LIT("began")))
		begin_sampler(m, msg->value);
	else if (str_eq(msg->name, STR_LIT("sampling_since")))
		lives_since(&m->lives, msg->value);
	else if (str_eq(msg->name, STR_LIT("sampled_until")))
		lives_until(&m->lives, msg->value);
	else if (str_eq(msg->name, STR_LIT("memory_export")))
		grant(m, msg->value);
}

int model_take(struct model *m, const struct msg *msg, struct model_sample *ret_sample)
{
	switch (msg->id) {
	case MSG_HELLO:
		take_hello(m, &msg->hello);
		break;
	case MSG_CLOCK:
		break; /* all times that are shown are of the beginning */
	case MSG_PROCESS:
		not_kept(m, take_process(m, &msg->process));
		break;
	case MSG_PROCESS_END:
		end_process(m, &msg->process_end);
		break;
	case MSG_THREAD:
		not_kept(m, take_thread(m, &msg->thread));
		break;
	case MSG_FILE:
		not_kept(m, take_file(m, &msg->file));
		break;
	case MSG_FUNCTION:
		not_kept(m, take_function(m, &msg->function));
		break;
	case MSG_FRAME:
		not_kept(m, take_frame(m, &msg->frame));
		break;
	case MSG_STACK:
		not_kept(m, take_stack(m, &msg->stack));
		break;
	case MSG_SAMPLE:
		return take_sample(m, &msg->sample, ret_sample);
	case MSG_LOST:
		model_lose(m, (enum lost_reason)reason_slot(msg->lost.reason), msg->lost.count);
		break;
	case MSG_FIGURE:
		take_figure(m, &msg->figure);
		break;
	case MSG_END:
		if (msg->end.reason != END_PEER_LOST)
			settle(m);
		m->totals.ended = true;
		m->totals.end_reason = msg->end.reason;
		m->totals.end_ns = msg->end.time_ns;
		break;
	default:
		model_lose(m, LOST_MALFORMED, 1); /* no message of a stream */
	}
	return 0;
}

bool model_ended_well(const struct model *m)
{
	const struct model_totals *t = &m->totals;

	return t->ended && t->end_reason != END_PEER_LOST && t->end_reason != END_FAILED;
}

void model_conclude(struct model *m)
{
	const uint64_t came = m->totals.samples + lost_samples(m->totals.lost);

	/* What the launcher heard of being taken, and nobody told of here. */
	if (m->launched.taken > came)
		model_lose(m, LOST_RESTART, m->launched.taken - came);
	lives_conclude(&m->lives, model_ended_well(m), m->totals.end_ns);
}

/* Adds self counts by name to h, as far as there is room. */
static void fold_hot(const struct model *m, struct hot *h, struct pool *p)
{
	struct buf name = BUF_INIT(0);

	for (size_t i = 0; i < m->things.self.len; i++) {
		const struct model_frame *f = &m->things.frames.data[i];

		if (!m->things.self.data[i] || f->kind == MODEL_TRUNCATED)
			continue;
		buf_reset(&name);
		if (label_call(&name, m, f, 0) ||
		    !hot_add(h, p,
			     (struct str){ .data = (char *)name.data, .len = (uint32_t)name.len },
			     m->things.self.data[i]))
			break;
	}
	buf_done(&name);
}

void model_forget(struct model *m)
{
	free_definitions(m);
	if (!m->options.aggregate) {
		fold_hot(m, &m->hot, &m->things.pool);
		things_begin(&m->things); /* cannot fail: more than it takes was just given back */
	}
	m->gap_seen = m->limit_hit = false;
}

void model_missing(struct model *m, uint64_t n)
{
	m->gap_seen = m->gap_seen || n;
	add(&m->totals.lost[LOST_SEQUENCE], n);
}

void model_lose(struct model *m, enum lost_reason reason, uint64_t n)
{
	add(&m->totals.lost[reason], n);
}

/* --- what is known --- */

const struct model_header *model_header(const struct model *m)
{
	return &m->header;
}

const struct model_totals *model_totals(const struct model *m)
{
	return &m->totals;
}

struct pool model_memory(const struct model *m)
{
	return m->things.pool;
}

uint64_t model_start_ns(const struct model *m)
{
	if (m->lives.first_ns)
		return m->lives.first_ns;
	return m->totals.first_ns < m->header.mono_ns ? m->totals.first_ns : m->header.mono_ns;
}

uint64_t model_start_wall_ns(const struct model *m)
{
	return m->header.wall_ns - (m->header.mono_ns - model_start_ns(m));
}

uint64_t model_duration_ns(const struct model *m)
{
	const struct model_totals *t = &m->totals;
	const uint64_t start = model_start_ns(m);
	uint64_t end = lives_end_ns(&m->lives);

	if (!end)
		end = t->end_ns > t->last_ns ? t->end_ns : t->last_ns;
	return end > start ? end - start : 0;
}

/* What would have been taken while nobody was there to: as much as at other times. */
static uint64_t unsampled(const struct model *m)
{
	const double came = (double)(m->totals.samples + lost_samples(m->totals.lost)),
		     sampled = (double)lives_sampled_ns(&m->lives),
		     away = (double)m->lives.unsampled_ns,
		     most = away / 1e9 * (double)m->header.hz * (double)m->header.cpus,
		     n = sampled > 0 ? came / sampled * away : 0, least = n < most ? n : most;

	return least < 1e18 ? (uint64_t)least : (uint64_t)1e18;
}

#define ACCESSOR(name, type) \
	size_t model_##name(const struct model *m, const struct model_##type **ret) \
	{ \
		*ret = m->things.name.data; \
		return m->things.name.len; \
	}
ACCESSOR(files, file)
ACCESSOR(functions, function)
ACCESSOR(frames, frame)
ACCESSOR(stacks, stack)
ACCESSOR(processes, process)
ACCESSOR(threads, thread)
ACCESSOR(buckets, bucket)

size_t model_strings(const struct model *m)
{
	return m->things.strings.len;
}

struct str model_string(const struct model *m, uint32_t i)
{
	return strings_get(&m->things.strings, i);
}

const uint32_t *model_frames_of(const struct model *m, const struct model_stack *s)
{
	return m->things.numbers.data + s->frames;
}

const uint32_t *model_functions_of(const struct model *m, const struct model_frame *f)
{
	return m->things.numbers.data + f->calls;
}

const uint32_t *model_lines_of(const struct model *m, const struct model_frame *f)
{
	return m->things.numbers.data + f->calls + f->count;
}

/* --- all figures --- */

static void fill_top(const struct model *m, struct status_top top[static STATUS_TOP])
{
	struct pool p = { .max = m->things.pool.max };
	struct hot h = { 0 };

	hot_add_all(&h, &p, &m->hot);
	fold_hot(m, &h, &p);
	hot_top(&h, top);
	hot_done(&h, &p);
}

void model_status(const struct model *m, struct status *st, bool with_top)
{
	const struct model_totals *t = &m->totals;

	*st = (struct status){ .samples = t->samples,
			       .user_stacks = t->user_stacks,
			       .complete = t->complete,
			       .processes = t->processes,
			       .threads = t->threads,
			       .bpf_runs = t->bpf_runs,
			       .bpf_ns = t->bpf_ns,
			       .map_bytes = t->map_bytes,
			       .enough = t->memory_enough,
			       .memory_peak = t->memory_peak,
			       .first_complete_ns = t->first_complete_ns,
			       .duration_ns = model_duration_ns(m),
			       .unsampled_ns = m->lives.unsampled_ns,
			       .unsampled = unsampled(m) };
	memcpy(st->truncated, t->truncated, sizeof(st->truncated));
	memcpy(st->lost, t->lost, sizeof(st->lost));
	memcpy(st->restarts, m->launched.restarts, sizeof(st->restarts));
	memcpy(st->runtime_samples, t->runtime_samples, sizeof(st->runtime_samples));
	memcpy(st->runtime_cut, t->runtime_cut, sizeof(st->runtime_cut));
	memcpy(st->runtime_unnamed, t->runtime_unnamed, sizeof(st->runtime_unnamed));
	const struct str event = str_cut(m->header.event, STATUS_EVENT - 1);

	if (event.len)
		memcpy(st->event, event.data, event.len);
	if (with_top)
		fill_top(m, st->top);
}
