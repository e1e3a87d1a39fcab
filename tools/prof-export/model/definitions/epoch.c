/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/definitions/epoch.h"

#include <assert.h>
#include <errno.h>
#include "bpf/runtime.h"
#include "common/base/bytes/numbers.h"
#include "common/status/account.h"
#include "common/wire/marks.h"

/* Marks the value of a frame id that stands for several frames. The other bits are an index into
 * `groups`. */
#define GROUP 0x80000000u
#define UNNAMED \
	(MSG_FRAME_UNNAMED_SLOW | MSG_FRAME_UNNAMED_MEMORY | MSG_FRAME_UNNAMED_FILE | \
	 MSG_FRAME_UNNAMED_GONE)

void epoch_init(struct epoch *e, struct definitions *d, const struct epoch_options *o)
{
	*e = (struct epoch){ .definitions = d,
			     .options = *o,
			     .free_process = MODEL_NONE,
			     .free_thread = MODEL_NONE };
}

void epoch_forget(struct epoch *e)
{
	struct pool *pool = &e->definitions->pool;

	for (size_t i = 0; i < e->processes.len; i++)
		attributes_done(&e->processes.data[i].attributes, pool);
	e->attributes = 0;
	annotations_done(&e->annotations, pool);
	table_ids_done(&e->cgroup_ids, pool);
	table_ids_done(&e->process_ids, pool);
	table_ids_done(&e->thread_ids, pool);
	table_ids_done(&e->file_ids, pool);
	table_ids_done(&e->function_ids, pool);
	table_ids_done(&e->frame_ids, pool);
	table_ids_done(&e->stack_ids, pool);
	POOL_ARRAY_FREE(pool, &e->processes);
	POOL_ARRAY_FREE(pool, &e->threads);
	POOL_ARRAY_FREE(pool, &e->groups);
	e->free_process = e->free_thread = MODEL_NONE;
}

void epoch_done(struct epoch *e)
{
	epoch_forget(e);
	POOL_ARRAY_FREE(&e->definitions->pool, &e->scratch);
}

static int intern_process(struct epoch *e, struct epoch_process *d)
{
	const struct model_process p = { .pid = d->pid,
					 .start_ns = d->start_ns,
					 .execs = d->execs,
					 .flags = d->flags,
					 .exe = d->exe };

	return definitions_process(e->definitions, p,
				   (struct str){ .data = d->comm, .len = d->comm_len },
				   &d->process);
}

static int keep_process(struct epoch *e, struct epoch_process *d)
{
	return d->process == MODEL_NONE ? intern_process(e, d) : 0;
}

int epoch_keep_thread(struct epoch *e, struct epoch_thread *d)
{
	struct epoch_process *p = &e->processes.data[d->process];

	if (d->thread != MODEL_NONE)
		return 0;
	int r = keep_process(e, p);

	return r ? r
		 : definitions_thread(e->definitions, p->process, d->tid, epoch_thread_name(e, d),
				      &d->thread);
}

struct str epoch_thread_name(const struct epoch *e, const struct epoch_thread *t)
{
	return t->title ? table_strings_get(&e->definitions->strings, t->title)
			: (struct str){ .data = t->comm, .len = t->comm_len };
}

static uint8_t keep_comm(char into[static 16], struct str s)
{
	const struct str kept = str_cut(s, 16);

	if (kept.len)
		memcpy(into, kept.data, kept.len);
	return (uint8_t)kept.len;
}

static void set_exe(struct epoch *e, struct epoch_process *d, uint32_t exe)
{
	d->exe = exe;
	if (exe != MODEL_NONE && d->runtime >= STATUS_RUNTIMES)
		d->runtime = (uint8_t)account_program(table_strings_get(
			&e->definitions->strings, e->definitions->files.data[exe].path));
}

static void set_cgroup(const struct epoch *e, struct epoch_process *d, uint64_t id)
{
	const uint32_t path = id ? table_ids_get(&e->cgroup_ids, id) : TABLE_NONE;

	if (path != TABLE_NONE)
		d->cgroup = path;
}

/* Takes a repeated definition of a process. */
static int update_process(struct epoch *e, struct epoch_process *d, const struct msg_process *msg)
{
	const uint32_t exe = msg->exe ? table_ids_get(&e->file_ids, msg->exe) : MODEL_NONE;

	if (exe != MODEL_NONE)
		set_exe(e, d, exe);
	set_cgroup(e, d, msg->cgroup);
	d->flags = (uint32_t)msg->flags;
	d->comm_len = keep_comm(d->comm, msg->comm);
	return d->process == MODEL_NONE ? 0 : intern_process(e, d);
}

int epoch_process(struct epoch *e, const struct msg_process *msg)
{
	const uint32_t known = table_ids_get(&e->process_ids, msg->id);

	if (known != TABLE_NONE)
		return update_process(e, &e->processes.data[known], msg);
	const bool reuse = e->free_process != MODEL_NONE;

	if (!reuse && !POOL_ARRAY_ROOM(&e->definitions->pool, &e->processes, 1))
		return -ENOBUFS;
	const uint32_t slot = reuse ? e->free_process : (uint32_t)e->processes.len;
	int r = table_ids_add(&e->process_ids, &e->definitions->pool, msg->id, slot);

	if (r)
		return r;
	struct epoch_process *d = &e->processes.data[slot];

	if (reuse)
		e->free_process = d->threads;
	else
		e->processes.len++;
	*d = (struct epoch_process){ .pid = msg->pid,
				     .start_ns = msg->start_ns,
				     .execs = msg->execs,
				     .flags = (uint32_t)msg->flags,
				     .owner = msg->owner,
				     .process = MODEL_NONE,
				     .threads = MODEL_NONE,
				     .runtime = STATUS_RUNTIMES };
	set_exe(e, d, msg->exe ? table_ids_get(&e->file_ids, msg->exe) : MODEL_NONE);
	set_cgroup(e, d, msg->cgroup);
	d->comm_len = keep_comm(d->comm, msg->comm);
	return 0;
}

int epoch_thread(struct epoch *e, const struct msg_thread *msg)
{
	const uint32_t process = table_ids_get(&e->process_ids, msg->process);

	if (process == TABLE_NONE || table_ids_get(&e->thread_ids, msg->id) != TABLE_NONE)
		return 0;
	const bool reuse = e->free_thread != MODEL_NONE;
	uint32_t title = 0;

	if (msg->title.len && table_strings_intern(&e->definitions->strings, &e->definitions->pool,
						   str_cut(msg->title, 128), &title))
		return -ENOBUFS;

	if (!reuse && !POOL_ARRAY_ROOM(&e->definitions->pool, &e->threads, 1))
		return -ENOBUFS;
	const uint32_t slot = reuse ? e->free_thread : (uint32_t)e->threads.len;
	int r = table_ids_add(&e->thread_ids, &e->definitions->pool, msg->id, slot);

	if (r)
		return r;
	struct epoch_thread *d = &e->threads.data[slot];
	struct epoch_process *p = &e->processes.data[process];

	if (reuse)
		e->free_thread = d->next;
	else
		e->threads.len++;
	*d = (struct epoch_thread){ .id = msg->id,
				    .tid = msg->tid,
				    .process = process,
				    .title = title,
				    .thread = MODEL_NONE,
				    .next = p->threads,
				    .previous = MODEL_NONE };
	d->comm_len = keep_comm(d->comm, msg->comm);
	if (d->next != MODEL_NONE)
		e->threads.data[d->next].previous = slot;
	p->threads = slot;
	return 0;
}

void epoch_thread_end(struct epoch *e, const struct msg_thread_end *msg)
{
	const uint32_t slot = table_ids_get(&e->thread_ids, msg->id);

	if (slot == TABLE_NONE)
		return;
	struct epoch_thread *d = &e->threads.data[slot];

	if (d->next != MODEL_NONE)
		e->threads.data[d->next].previous = d->previous;
	if (d->previous != MODEL_NONE)
		e->threads.data[d->previous].next = d->next;
	else
		e->processes.data[d->process].threads = d->next;
	table_ids_remove(&e->thread_ids, msg->id);
	d->next = e->free_thread;
	e->free_thread = slot;
}

void epoch_process_end(struct epoch *e, const struct msg_process_end *msg)
{
	const uint32_t slot = table_ids_get(&e->process_ids, msg->id);

	if (slot == TABLE_NONE)
		return;
	struct epoch_process *p = &e->processes.data[slot];

	for (uint32_t t = p->threads; t != MODEL_NONE;) {
		struct epoch_thread *d = &e->threads.data[t];
		const uint32_t next = d->next;

		table_ids_remove(&e->thread_ids, d->id);
		d->next = e->free_thread;
		e->free_thread = t;
		t = next;
	}
	e->attributes -= p->attributes.bytes.len;
	attributes_done(&p->attributes, &e->definitions->pool);
	table_ids_remove(&e->process_ids, msg->id);
	p->threads = e->free_process;
	e->free_process = slot;
}

/* Makes the id refer to its latest definition. */
static int redefine(struct epoch *e, struct table_ids *ids, uint64_t id, uint32_t number)
{
	return table_ids_set(ids, &e->definitions->pool, id, number);
}

int epoch_cgroup(struct epoch *e, const struct msg_cgroup *msg)
{
	uint32_t path;
	int r = table_strings_intern(&e->definitions->strings, &e->definitions->pool, msg->path,
				     &path);

	return r ? r : redefine(e, &e->cgroup_ids, msg->id, path);
}

int epoch_attribute(struct epoch *e, const struct msg_attribute *msg)
{
	const uint32_t slot = table_ids_get(&e->process_ids, msg->process);

	if (slot == TABLE_NONE)
		return 0;
	struct attributes *a = &e->processes.data[slot].attributes;
	const size_t before = a->bytes.len;
	const int r = attributes_set(a, &e->definitions->pool, msg->key, msg->value);

	e->attributes += a->bytes.len - before;
	return r;
}

int epoch_file(struct epoch *e, const struct msg_file *msg)
{
	uint32_t file;
	int r = definitions_file(e->definitions, msg, &file);

	return r ? r : redefine(e, &e->file_ids, msg->id, file);
}

int epoch_function(struct epoch *e, const struct msg_function *msg)
{
	uint32_t function;

	if (table_ids_get(&e->function_ids, msg->id) != TABLE_NONE)
		return 0;
	int r = definitions_function(e->definitions, msg, &function);

	return r ? r : table_ids_add(&e->function_ids, &e->definitions->pool, msg->id, function);
}

/* Makes one frame for each call, innermost first. A single frame needs no group. */
static int split_frame(struct epoch *e, const struct model_frame *whole, const uint32_t *calls,
		       uint32_t *ret)
{
	const uint32_t at = (uint32_t)e->groups.len;

	if (!POOL_ARRAY_ROOM(&e->definitions->pool, &e->groups, whole->count + 1u) ||
	    e->groups.len >= GROUP - 512)
		return -ENOBUFS;
	for (unsigned i = 0; i < whole->count; i++) {
		struct model_frame f = {
			.file = whole->file, .process = MODEL_NONE, .count = 1, .kind = whole->kind
		};
		const bool keeps_line = whole->kind == MODEL_INTERPRETED && e->options.lines;
		const uint32_t call[2] = { calls[i], keeps_line ? calls[whole->count + i] : 0 };

		f.flags = whole->flags & (MSG_FRAME_LOOP | UNNAMED);
		if (i + 1 < whole->count)
			f.flags |= MODEL_INLINED;
		int r = definitions_frame(e->definitions, f, call, &e->groups.data[at + 1 + i]);

		if (r)
			return r;
	}
	if (whole->count == 1) {
		*ret = e->groups.data[at + 1];
		return 0;
	}
	e->groups.data[at] = whole->count;
	e->groups.len += whole->count + 1u;
	*ret = at | GROUP;
	return 0;
}

static bool keeps_names(const struct epoch *e, const struct msg_frame *msg)
{
	if (e->options.names == REPORTING_INTERPRETED)
		return msg->kind != MSG_FRAME_NATIVE || !msg->file;
	return e->options.names == REPORTING_ALL;
}

/* Appends to each function's name what kind of code runs in the frame. */
static int mark_code(struct epoch *e, uint64_t code, uint32_t *calls, uint32_t n)
{
	static_assert(MARKS_CODES == RUNTIME_CODES, "each kind of code has a mark");
	int r = 0;

	if (!e->options.code || code >= RUNTIME_CODES || !*marks_of_code[code])
		return 0;
	for (uint32_t i = 0; !r && i < n; i++)
		r = definitions_marked(e->definitions, calls[i], marks_of_code[code], &calls[i]);
	return r;
}

int epoch_frame(struct epoch *e, const struct msg_frame *msg)
{
	struct model_frame f = { .offset = msg->offset,
				 .address = msg->address,
				 .file = MODEL_NONE,
				 .process = MODEL_NONE,
				 .kind = msg_frame_kind(msg->kind),
				 .flags = (uint8_t)(msg->flags & (MSG_FRAME_LEAF | MSG_FRAME_BY_FP |
								  MSG_FRAME_SIGNAL |
								  MSG_FRAME_LOOP | UNNAMED)) };
	uint32_t calls[2 * 256], frame;
	uint32_t n = msg->functions.len < 256 ? msg->functions.len : 256;

	if (!keeps_names(e, msg))
		n = 0;
	/* If a part of a frame was lost, drop all of it: the rest would mislead. An interpreted
	 * frame belongs to its function, not to the interpreter's file. */
	if (msg->file && f.kind != MODEL_INTERPRETED) {
		f.file = table_ids_get(&e->file_ids, msg->file);
		if (f.file == TABLE_NONE)
			return 0;
	}
	if (f.kind == MODEL_INTERPRETED && e->definitions->detail == MODEL_ADDRESSES)
		f.runtime = msg->runtime < RUNTIME_MAX ? (uint16_t)msg->runtime : 0;
	f.count = (uint16_t)n;
	for (uint32_t i = 0; i < n; i++) {
		calls[i] = table_ids_get(&e->function_ids, msg->functions.data[i]);
		calls[n + i] = i < msg->lines.len ? numbers_u32(msg->lines.data[i]) : 0;
		if (calls[i] == TABLE_NONE)
			return 0;
	}
	int r = f.kind == MODEL_INTERPRETED ? mark_code(e, msg->code, calls, n) : 0;

	if (r)
		return r;
	if (f.file == MODEL_NONE && f.kind != MODEL_KERNEL &&
	    e->definitions->detail == MODEL_ADDRESSES) {
		const uint32_t d = table_ids_get(&e->process_ids, msg->process);

		if (d != TABLE_NONE && keep_process(e, &e->processes.data[d]))
			return -ENOBUFS;
		if (d != TABLE_NONE)
			f.process = e->processes.data[d].process;
	}
	if (e->definitions->detail == MODEL_NAMES && n) {
		r = split_frame(e, &f, calls, &frame);
	} else {
		if (f.kind == MODEL_NATIVE && !msg->functions.len)
			f.start = msg->start;
		if (e->definitions->detail == MODEL_NAMES) {
			f.flags &= MSG_FRAME_LOOP | UNNAMED;
			if (f.start)
				f.offset = f.address = msg->address;
		}
		r = definitions_frame(e->definitions, f, calls, &frame);
	}
	return r ? r : redefine(e, &e->frame_ids, msg->id, frame);
}

static const struct model_frame *frame_at(const struct epoch *e, uint32_t frame)
{
	if (frame & GROUP)
		frame = e->groups.data[(frame & ~GROUP) + 1];
	return &e->definitions->frames.data[frame];
}

/* Whether this frame is part of an interpreter's loop and is hidden, because the interpreted frame
 * behind it stands for it. */
static bool is_folded(const struct epoch *e, const struct msg_stack *msg, uint32_t i)
{
	while (!e->options.interpreter_frames && i < msg->frames.len) {
		const uint32_t frame = table_ids_get(&e->frame_ids, msg->frames.data[i++]);
		const struct model_frame *f = frame == TABLE_NONE ? NULL : frame_at(e, frame);

		if (!f || !(f->flags & MSG_FRAME_LOOP))
			return f && f->kind == MODEL_INTERPRETED;
	}
	return false;
}

int epoch_stack(struct epoch *e, const struct msg_stack *msg)
{
	bool user = msg->reason != 0;
	uint32_t stack;

	e->scratch.len = 0;
	for (uint32_t i = 0; i < msg->frames.len; i++) {
		uint32_t frame = table_ids_get(&e->frame_ids, msg->frames.data[i]), one = 1;
		const uint32_t *from = &frame;

		if (frame == TABLE_NONE)
			return 0;
		if (frame & GROUP) {
			from = &e->groups.data[(frame & ~GROUP) + 1];
			one = from[-1];
		}
		if (frame_at(e, frame)->flags & MSG_FRAME_LOOP && is_folded(e, msg, i))
			continue;
		if (!POOL_ARRAY_ROOM(&e->definitions->pool, &e->scratch, one + 1))
			return -ENOBUFS;
		memcpy(e->scratch.data + e->scratch.len, from, one * sizeof(*from));
		e->scratch.len += one;
		user = user || e->definitions->frames.data[*from].kind != MODEL_KERNEL;
	}
	if (msg->reason) {
		struct model_frame f = { .offset = msg->reason,
					 .process = MODEL_NONE,
					 .kind = MODEL_TRUNCATED,
					 .file = table_ids_get(&e->file_ids, msg->at_file) };

		if (!POOL_ARRAY_ROOM(&e->definitions->pool, &e->scratch, 1) ||
		    definitions_frame(e->definitions, f, NULL, &e->scratch.data[e->scratch.len]))
			return -ENOBUFS;
		e->scratch.len++;
	}
	int r = definitions_stack(e->definitions, msg->reason, user, e->scratch.data,
				  e->scratch.len, &stack);

	return r ? r : redefine(e, &e->stack_ids, msg->id, stack);
}
