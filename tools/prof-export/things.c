/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/things.h"

#include <errno.h>
#include "common/account.h"

int things_begin(struct things *t)
{
	uint32_t empty;

	things_done(t);
	return strings_intern(&t->strings, &t->pool, (struct str){ .data = "" }, &empty);
}

void things_done(struct things *t)
{
	strings_done(&t->strings, &t->pool);
	ARRAY_FREE(&t->pool, &t->files);
	ARRAY_FREE(&t->pool, &t->functions);
	ARRAY_FREE(&t->pool, &t->frames);
	ARRAY_FREE(&t->pool, &t->self);
	ARRAY_FREE(&t->pool, &t->stacks);
	ARRAY_FREE(&t->pool, &t->numbers);
	ARRAY_FREE(&t->pool, &t->processes);
	ARRAY_FREE(&t->pool, &t->threads);
	ARRAY_FREE(&t->pool, &t->buckets);
	index_done(&t->file_index, &t->pool);
	index_done(&t->function_index, &t->pool);
	index_done(&t->frame_index, &t->pool);
	index_done(&t->stack_index, &t->pool);
	index_done(&t->process_index, &t->pool);
	index_done(&t->thread_index, &t->pool);
	index_done(&t->bucket_index, &t->pool);
}

#define INTERN(t, array, index, key, hash, equal, ret) \
	({ \
		size_t cursor_ = SIZE_MAX; \
		uint32_t i_; \
		int r_ = 0; \
		while ((i_ = index_next((index), (hash), &cursor_)) != TABLE_NONE && \
		       !(equal)(t, &(array)->data[i_], (key))) \
			; \
		if (i_ == TABLE_NONE) { \
			if (!ARRAY_ROOM(&(t)->pool, array, 1)) { \
				r_ = -ENOBUFS; \
			} else { \
				r_ = index_add((index), &(t)->pool, (hash), \
					       (uint32_t)(array)->len); \
				if (!r_) { \
					i_ = (uint32_t)(array)->len; \
					(array)->data[(array)->len++] = *(key); \
				} \
			} \
		} \
		if (!r_) \
			*(ret) = i_; \
		r_; \
	})

static int intern_str(struct things *t, struct str s, uint32_t *ret)
{
	return strings_intern(&t->strings, &t->pool, s, ret);
}

static uint32_t hash_numbers(const uint64_t *numbers, size_t n)
{
	return table_hash(numbers, n * sizeof(*numbers));
}

static bool same_file(const struct things *t, const struct model_file *a,
		      const struct model_file *b)
{
	return a->path == b->path && a->build_id == b->build_id && a->flags == b->flags &&
	       a->dev == b->dev && a->inode == b->inode && a->ctime_ns == b->ctime_ns &&
	       a->size == b->size;
}

int things_file(struct things *t, const struct msg_file *msg, uint32_t *ret)
{
	struct model_file f = { .flags = (uint32_t)msg->flags,
				.dev = msg->dev,
				.inode = msg->inode,
				.ctime_ns = msg->ctime_ns,
				.size = msg->size,
				.runtime = (uint8_t)account_library(msg->path) };
	char hex[2 * 64];
	static const char digits[] = "0123456789abcdef";
	const size_t n = msg->build_id.len < 64 ? msg->build_id.len : 64;

	for (size_t i = 0; i < n; i++) {
		hex[2 * i] = digits[msg->build_id.data[i] >> 4];
		hex[2 * i + 1] = digits[msg->build_id.data[i] & 15];
	}
	if (intern_str(t, msg->path, &f.path) ||
	    intern_str(t, (struct str){ .data = hex, .len = (uint32_t)(2 * n) }, &f.build_id))
		return -ENOBUFS;
	const uint32_t hash = hash_numbers(
		(uint64_t[]){ f.path, f.build_id, f.flags, f.dev, f.inode, f.ctime_ns, f.size }, 7);

	return INTERN(t, &t->files, &t->file_index, &f, hash, same_file, ret);
}

static bool same_function(const struct things *t, const struct model_function *a,
			  const struct model_function *b)
{
	return a->name == b->name && a->system_name == b->system_name && a->source == b->source &&
	       a->start_line == b->start_line;
}

int things_function(struct things *t, const struct msg_function *msg, uint32_t *ret)
{
	struct model_function f = { .start_line = things_clamp(msg->start_line) };

	if (intern_str(t, msg->name, &f.name) || intern_str(t, msg->source, &f.source))
		return -ENOBUFS;
	/* Outputs that show names only do not show this one. */
	if (t->detail == MODEL_ADDRESSES && intern_str(t, msg->system_name, &f.system_name))
		return -ENOBUFS;
	const uint32_t hash =
		hash_numbers((uint64_t[]){ f.name, f.system_name, f.source, f.start_line }, 4);

	return INTERN(t, &t->functions, &t->function_index, &f, hash, same_function, ret);
}

/* All addresses of a function are one frame. */
static bool is_function(const struct things *t, const struct model_frame *f)
{
	return t->detail == MODEL_NAMES && f->start;
}

/* key->calls points to numbers behind the end of the array's used part, where both lie until the
 * frame turns out to be new. */
static bool same_frame(const struct things *t, const struct model_frame *a,
		       const struct model_frame *b)
{
	const bool same_place = a->start == b->start &&
				(is_function(t, a) ||
				 (a->offset == b->offset && a->address == b->address));

	return same_place && a->file == b->file && a->process == b->process &&
	       a->count == b->count && a->kind == b->kind && a->flags == b->flags &&
	       (!a->count || !memcmp(t->numbers.data + a->calls, t->numbers.data + b->calls,
				     2 * sizeof(uint32_t) * a->count));
}

int things_frame(struct things *t, struct model_frame f, const uint32_t *calls, uint32_t *ret)
{
	const size_t n = 2 * (size_t)f.count, known = t->frames.len;

	if (!ARRAY_ROOM(&t->pool, &t->numbers, n + 1) || t->numbers.len + n >= UINT32_MAX)
		return -ENOBUFS;
	f.calls = (uint32_t)t->numbers.len;
	if (n)
		memcpy(t->numbers.data + f.calls, calls, n * sizeof(*calls));
	const uint64_t calls_hash = n ? table_hash(calls, n * sizeof(*calls)) : 0;
	const uint32_t hash = hash_numbers(
		(uint64_t[]){ is_function(t, &f) ? 0 : f.offset, is_function(t, &f) ? 0 : f.address,
			      f.start, f.file, f.process, f.kind, f.flags, calls_hash },
		8);

	if (!ARRAY_ROOM(&t->pool, &t->self, 1))
		return -ENOBUFS;
	int r = INTERN(t, &t->frames, &t->frame_index, &f, hash, same_frame, ret);

	if (!r && t->frames.len > known) {
		t->numbers.len += n;
		t->self.data[t->self.len++] = 0;
	} else if (!r && is_function(t, &f)) {
		struct model_frame *known_as = &t->frames.data[*ret];

		if (f.offset < known_as->offset)
			known_as->offset = f.offset;
		if (f.address > known_as->address)
			known_as->address = f.address;
	}
	return r;
}

static bool same_stack(const struct things *t, const struct model_stack *a,
		       const struct model_stack *b)
{
	return a->count == b->count && a->reason == b->reason &&
	       (!a->count || !memcmp(t->numbers.data + a->frames, t->numbers.data + b->frames,
				     sizeof(uint32_t) * a->count));
}

/* What a frame says of the stack that it is in. leads_nowhere: its address is no code's. */
static void look_at_frame(const struct things *t, uint32_t frame, bool leads_nowhere,
			  struct model_stack *s)
{
	const struct model_frame *f = &t->frames.data[frame];

	/* Of generated code, as far as can be told: it lies in no file. */
	if (f->kind == MODEL_NATIVE && f->file == MODEL_NONE && !leads_nowhere) {
		s->generated = true;
		s->unnamed |= !f->count;
	}
	if (s->runtime >= STATUS_RUNTIMES && f->file != MODEL_NONE)
		s->runtime = t->files.data[f->file].runtime;
}

int things_stack(struct things *t, uint64_t reason, bool user, const uint32_t *frames, size_t n,
		 uint32_t *ret)
{
	struct model_stack s = { .count = (uint32_t)n,
				 .reason = things_clamp(reason),
				 .user = user,
				 .runtime = STATUS_RUNTIMES };
	const size_t known = t->stacks.len;

	if (!ARRAY_ROOM(&t->pool, &t->numbers, n + 1) || t->numbers.len + n >= UINT32_MAX)
		return -ENOBUFS;
	s.frames = (uint32_t)t->numbers.len;
	if (n)
		memcpy(t->numbers.data + s.frames, frames, n * sizeof(*frames));
	const uint32_t hash = n ? table_hash(frames, n * sizeof(*frames)) : 0;
	for (size_t i = 0; i < n; i++)
		look_at_frame(t, frames[i], reason == WALK_NO_MAPPING && i + 2 == n, &s);
	int r = INTERN(t, &t->stacks, &t->stack_index, &s, hash, same_stack, ret);

	if (!r && t->stacks.len > known)
		t->numbers.len += n;
	return r;
}

static bool same_process(const struct things *t, const struct model_process *a,
			 const struct model_process *b)
{
	return a->pid == b->pid && a->start_ns == b->start_ns && a->execs == b->execs;
}

int things_process(struct things *t, struct model_process p, struct str comm, uint32_t *ret)
{
	if (intern_str(t, comm, &p.comm))
		return -ENOBUFS;
	const uint32_t hash = hash_numbers((uint64_t[]){ p.pid, p.start_ns, p.execs }, 3);

	int r = INTERN(t, &t->processes, &t->process_index, &p, hash, same_process, ret);

	if (r)
		return r;
	struct model_process *kept = &t->processes.data[*ret];

	if (p.exe == MODEL_NONE)
		p.exe = kept->exe;
	*kept = p;
	return 0;
}

static bool same_thread(const struct things *t, const struct model_thread *a,
			const struct model_thread *b)
{
	return a->process == b->process && a->tid == b->tid && a->comm == b->comm;
}

int things_thread(struct things *t, uint32_t process, uint64_t tid, struct str comm, uint32_t *ret)
{
	struct model_thread thread = { .process = process, .tid = tid };

	if (intern_str(t, comm, &thread.comm))
		return -ENOBUFS;
	const uint32_t hash = hash_numbers((uint64_t[]){ process, tid, thread.comm }, 3);

	return INTERN(t, &t->threads, &t->thread_index, &thread, hash, same_thread, ret);
}

static bool same_bucket(const struct things *t, const struct model_bucket *a,
			const struct model_bucket *b)
{
	return a->thread == b->thread && a->stack == b->stack;
}

int things_bucket(struct things *t, uint32_t thread, uint32_t stack, uint32_t *ret)
{
	const struct model_bucket b = { .thread = thread, .stack = stack };
	const uint32_t hash = hash_numbers((uint64_t[]){ thread, stack }, 2);

	return INTERN(t, &t->buckets, &t->bucket_index, &b, hash, same_bucket, ret);
}
