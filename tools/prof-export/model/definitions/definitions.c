/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/definitions/definitions.h"

#include <errno.h>
#include "common/base/bytes/numbers.h"
#include "common/status/account.h"

int definitions_begin(struct definitions *d)
{
	uint32_t empty;

	definitions_done(d);
	return table_strings_intern(&d->strings, &d->pool, (struct str){ .data = "" }, &empty);
}

void definitions_done(struct definitions *d)
{
	table_strings_done(&d->strings, &d->pool);
	POOL_ARRAY_FREE(&d->pool, &d->files);
	POOL_ARRAY_FREE(&d->pool, &d->functions);
	POOL_ARRAY_FREE(&d->pool, &d->frames);
	POOL_ARRAY_FREE(&d->pool, &d->self);
	POOL_ARRAY_FREE(&d->pool, &d->stacks);
	POOL_ARRAY_FREE(&d->pool, &d->numbers);
	POOL_ARRAY_FREE(&d->pool, &d->processes);
	POOL_ARRAY_FREE(&d->pool, &d->threads);
	POOL_ARRAY_FREE(&d->pool, &d->buckets);
	table_index_done(&d->file_index, &d->pool);
	table_index_done(&d->function_index, &d->pool);
	table_index_done(&d->frame_index, &d->pool);
	table_index_done(&d->stack_index, &d->pool);
	table_index_done(&d->process_index, &d->pool);
	table_index_done(&d->thread_index, &d->pool);
	table_index_done(&d->bucket_index, &d->pool);
}

#define INTERN(d, array, index, key, hash, equal, ret) \
	({ \
		size_t cursor_ = SIZE_MAX; \
		uint32_t i_; \
		int r_ = 0; \
		do \
			i_ = table_index_next((index), (hash), &cursor_); \
		while (i_ != TABLE_NONE && !(equal)(d, &(array)->data[i_], (key))); \
		if (i_ == TABLE_NONE) { \
			if (pool_is_closed(&(d)->pool) || \
			    !POOL_ARRAY_ROOM(&(d)->pool, array, 1)) { \
				r_ = -ENOBUFS; \
			} else { \
				r_ = table_index_add((index), &(d)->pool, (hash), \
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

static int intern_str(struct definitions *d, struct str s, uint32_t *ret)
{
	return table_strings_intern(&d->strings, &d->pool, s, ret);
}

static uint32_t hash_numbers(const uint64_t *numbers, size_t n)
{
	return table_hash(numbers, n * sizeof(*numbers));
}

/* A file may be defined before its build id is known. */
static bool same_file(const struct definitions *d, const struct model_file *a,
		      const struct model_file *b)
{
	return a->path == b->path && a->dev == b->dev && a->inode == b->inode &&
	       a->ctime_ns == b->ctime_ns && a->size == b->size &&
	       (a->build_id == b->build_id || !a->build_id || !b->build_id);
}

struct str definitions_hex(char hex[static DEFINITIONS_HEX], struct span bytes)
{
	static const char digits[] = "0123456789abcdef";
	const size_t n = numbers_smaller(bytes.len, DEFINITIONS_HEX / 2);

	for (size_t i = 0; i < n; i++) {
		hex[2 * i] = digits[bytes.data[i] >> 4];
		hex[2 * i + 1] = digits[bytes.data[i] & 15];
	}
	return (struct str){ .data = hex, .len = (uint32_t)(2 * n) };
}

/* Interns the ids by which backends find the names of the file's functions. */
static int intern_identity(struct definitions *d, const struct msg_file *msg, struct model_file *f)
{
	const struct str segments = { .data = (const char *)msg->segments.data,
				      .len = (uint32_t)(msg->segments.len *
							sizeof(*msg->segments.data)) };
	char hex[DEFINITIONS_HEX];

	return intern_str(d, definitions_hex(hex, msg->htlhash), &f->htlhash) ||
			       intern_str(d, msg->go_build_id, &f->go_build_id) ||
			       intern_str(d, segments, &f->segments)
		       ? -ENOBUFS
		       : 0;
}

/* Returns the newer number, unless it is 0. */
static uint32_t newer(uint32_t known, uint32_t now)
{
	return now ? now : known;
}

int definitions_file(struct definitions *d, const struct msg_file *msg, uint32_t *ret)
{
	struct model_file f = { .flags = (uint32_t)msg->flags,
				.dev = msg->dev,
				.inode = msg->inode,
				.ctime_ns = msg->ctime_ns,
				.size = msg->size,
				.runtime = (uint8_t)account_library(msg->path) };
	char hex[DEFINITIONS_HEX];

	if (intern_str(d, msg->path, &f.path) ||
	    intern_str(d, definitions_hex(hex, msg->build_id), &f.build_id))
		return -ENOBUFS;
	if (d->detail == MODEL_ADDRESSES && intern_identity(d, msg, &f))
		return -ENOBUFS;
	const uint32_t hash =
		hash_numbers((uint64_t[]){ f.path, f.dev, f.inode, f.ctime_ns, f.size }, 5);
	const int r = INTERN(d, &d->files, &d->file_index, &f, hash, same_file, ret);

	if (!r) {
		struct model_file *kept = &d->files.data[*ret];

		kept->flags = f.flags;
		kept->build_id = newer(kept->build_id, f.build_id);
		kept->htlhash = newer(kept->htlhash, f.htlhash);
		kept->go_build_id = newer(kept->go_build_id, f.go_build_id);
		kept->segments = newer(kept->segments, f.segments);
	}
	return r;
}

static bool same_function(const struct definitions *d, const struct model_function *a,
			  const struct model_function *b)
{
	return a->name == b->name && a->system_name == b->system_name && a->source == b->source &&
	       a->start_line == b->start_line;
}

static int intern_function(struct definitions *d, const struct model_function *f, uint32_t *ret)
{
	const uint32_t hash =
		hash_numbers((uint64_t[]){ f->name, f->system_name, f->source, f->start_line }, 4);

	return INTERN(d, &d->functions, &d->function_index, f, hash, same_function, ret);
}

int definitions_function(struct definitions *d, const struct msg_function *msg, uint32_t *ret)
{
	struct model_function f = { .start_line = numbers_u32(msg->start_line) };

	if (intern_str(d, msg->name, &f.name) || intern_str(d, msg->source, &f.source))
		return -ENOBUFS;
	/* Formats that show names never show system_name. */
	if (d->detail == MODEL_ADDRESSES && intern_str(d, msg->system_name, &f.system_name))
		return -ENOBUFS;
	return intern_function(d, &f, ret);
}

int definitions_marked(struct definitions *d, uint32_t function, const char *word, uint32_t *ret)
{
	struct model_function f = d->functions.data[function];
	const struct str s = table_strings_get(&d->strings, f.name);
	struct buf name = { 0 };
	int r = buf_append(&name, s.data, s.len);

	if (!r)
		r = buf_append_str(&name, word);
	if (!r &&
	    intern_str(d, (struct str){ .data = (char *)name.data, .len = (uint32_t)name.len },
		       &f.name))
		r = -ENOBUFS;
	buf_done(&name);
	return r ? r : intern_function(d, &f, ret);
}

/* Whether all addresses of the function share one frame. */
static bool is_function(const struct definitions *d, const struct model_frame *f)
{
	return d->detail == MODEL_NAMES && f->start;
}

/* key->calls is an index behind the used part of the array. The calls are already stored there;
 * they become part of the array if the frame is new. */
static bool same_frame(const struct definitions *d, const struct model_frame *a,
		       const struct model_frame *b)
{
	const bool same_place = a->start == b->start &&
				(is_function(d, a) ||
				 (a->offset == b->offset && a->address == b->address));

	return same_place && a->file == b->file && a->process == b->process &&
	       a->count == b->count && a->runtime == b->runtime && a->kind == b->kind &&
	       a->flags == b->flags &&
	       (!a->count || !memcmp(d->numbers.data + a->calls, d->numbers.data + b->calls,
				     2 * sizeof(uint32_t) * a->count));
}

int definitions_frame(struct definitions *d, struct model_frame f, const uint32_t *calls,
		      uint32_t *ret)
{
	const size_t n = 2 * (size_t)f.count, known = d->frames.len;

	if (!POOL_ARRAY_ROOM(&d->pool, &d->numbers, n + 1) || d->numbers.len + n >= UINT32_MAX)
		return -ENOBUFS;
	f.calls = (uint32_t)d->numbers.len;
	if (n)
		memcpy(d->numbers.data + f.calls, calls, n * sizeof(*calls));
	const uint64_t calls_hash = n ? table_hash(calls, n * sizeof(*calls)) : 0;
	const uint32_t hash = hash_numbers(
		(uint64_t[]){ is_function(d, &f) ? 0 : f.offset, is_function(d, &f) ? 0 : f.address,
			      f.start, f.file, f.process, f.kind, f.flags, calls_hash },
		8);

	if (!POOL_ARRAY_ROOM(&d->pool, &d->self, 1))
		return -ENOBUFS;
	int r = INTERN(d, &d->frames, &d->frame_index, &f, hash, same_frame, ret);

	if (!r && d->frames.len > known) {
		d->numbers.len += n;
		d->self.data[d->self.len++] = 0;
	} else if (!r && is_function(d, &f)) {
		struct model_frame *known_as = &d->frames.data[*ret];

		if (f.offset < known_as->offset)
			known_as->offset = f.offset;
		if (f.address > known_as->address)
			known_as->address = f.address;
	}
	return r;
}

static bool same_stack(const struct definitions *d, const struct model_stack *a,
		       const struct model_stack *b)
{
	return a->count == b->count && a->reason == b->reason &&
	       (!a->count || !memcmp(d->numbers.data + a->frames, d->numbers.data + b->frames,
				     sizeof(uint32_t) * a->count));
}

/* Adds what is known about a frame to its stack. leads_nowhere: the frame's address is not in
 * code. */
static void look_at_frame(const struct definitions *d, uint32_t frame, bool leads_nowhere,
			  struct model_stack *s)
{
	const struct model_frame *f = &d->frames.data[frame];

	/* Code outside files is assumed to be generated. */
	if (f->kind == MODEL_NATIVE && f->file == MODEL_NONE && !leads_nowhere) {
		s->generated = true;
		s->unnamed |= !f->count;
	}
	if (f->flags & MSG_FRAME_UNNAMED_SLOW)
		s->lacks = UNNAMED_SLOW;
	else if (f->flags & MSG_FRAME_UNNAMED_MEMORY)
		s->lacks = UNNAMED_MEMORY_LIMIT;
	else if (f->flags & MSG_FRAME_UNNAMED_FILE)
		s->lacks = UNNAMED_NO_FILE;
	else if (f->flags & MSG_FRAME_UNNAMED_GONE)
		s->lacks = UNNAMED_GONE;
	if (s->runtime >= STATUS_RUNTIMES && f->file != MODEL_NONE)
		s->runtime = d->files.data[f->file].runtime;
}

int definitions_stack(struct definitions *d, uint64_t reason, bool user, const uint32_t *frames,
		      size_t n, uint32_t *ret)
{
	struct model_stack s = { .count = (uint32_t)n,
				 .reason = numbers_u32(reason),
				 .user = user,
				 .runtime = STATUS_RUNTIMES };
	const size_t known = d->stacks.len;

	if (!POOL_ARRAY_ROOM(&d->pool, &d->numbers, n + 1) || d->numbers.len + n >= UINT32_MAX)
		return -ENOBUFS;
	s.frames = (uint32_t)d->numbers.len;
	if (n)
		memcpy(d->numbers.data + s.frames, frames, n * sizeof(*frames));
	const uint32_t hash = n ? table_hash(frames, n * sizeof(*frames)) : 0;
	for (size_t i = 0; i < n; i++)
		look_at_frame(d, frames[i], reason == WALK_NO_MAPPING && i + 2 == n, &s);
	int r = INTERN(d, &d->stacks, &d->stack_index, &s, hash, same_stack, ret);

	if (!r && d->stacks.len > known)
		d->numbers.len += n;
	return r;
}

static bool same_process(const struct definitions *d, const struct model_process *a,
			 const struct model_process *b)
{
	return a->pid == b->pid && a->start_ns == b->start_ns && a->execs == b->execs;
}

int definitions_process(struct definitions *d, struct model_process p, struct str comm,
			uint32_t *ret)
{
	if (intern_str(d, comm, &p.comm))
		return -ENOBUFS;
	const uint32_t hash = hash_numbers((uint64_t[]){ p.pid, p.start_ns, p.execs }, 3);

	int r = INTERN(d, &d->processes, &d->process_index, &p, hash, same_process, ret);

	if (r)
		return r;
	struct model_process *kept = &d->processes.data[*ret];

	if (p.exe == MODEL_NONE)
		p.exe = kept->exe;
	*kept = p;
	return 0;
}

static bool same_thread(const struct definitions *d, const struct model_thread *a,
			const struct model_thread *b)
{
	return a->process == b->process && a->tid == b->tid && a->comm == b->comm;
}

int definitions_thread(struct definitions *d, uint32_t process, uint64_t tid, struct str comm,
		       uint32_t *ret)
{
	struct model_thread thread = { .process = process, .tid = tid };

	if (intern_str(d, comm, &thread.comm))
		return -ENOBUFS;
	const uint32_t hash = hash_numbers((uint64_t[]){ process, tid, thread.comm }, 3);

	return INTERN(d, &d->threads, &d->thread_index, &thread, hash, same_thread, ret);
}

static bool same_bucket(const struct definitions *d, const struct model_bucket *a,
			const struct model_bucket *b)
{
	return a->thread == b->thread && a->stack == b->stack;
}

int definitions_bucket(struct definitions *d, uint32_t thread, uint32_t stack, uint32_t *ret)
{
	const struct model_bucket b = { .thread = thread, .stack = stack };
	const uint32_t hash = hash_numbers((uint64_t[]){ thread, stack }, 2);

	return INTERN(d, &d->buckets, &d->bucket_index, &b, hash, same_bucket, ret);
}

bool definitions_segment(const struct definitions *d, const struct model_frame *f,
			 struct model_segment *ret)
{
	const uint64_t offset = definitions_call(f, f->offset);
	struct model_segment s;

	if (f->kind != MODEL_NATIVE || f->file == MODEL_NONE)
		return false;
	const struct str all = table_strings_get(&d->strings, d->files.data[f->file].segments);

	for (uint32_t i = 0; all.len - i >= sizeof(s); i += sizeof(s)) {
		memcpy(&s, all.data + i, sizeof(s));
		if (offset < s.offset || offset - s.offset >= s.size ||
		    s.size > UINT64_MAX - s.address)
			continue;
		*ret = s;
		return true;
	}
	return false;
}

uint64_t definitions_pc(const struct definitions *d, const struct model_frame *f)
{
	struct model_segment s;

	if (f->address || !definitions_segment(d, f, &s))
		return f->address ? f->address : f->offset;
	return s.address + (f->offset - s.offset);
}
