/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The toy JIT's walk: its only frames are those of its code, which it takes over
 * (runtime_walk.h). */
#ifndef TESTS_SKELETON_TOYJIT_WALK_H
#define TESTS_SKELETON_TOYJIT_WALK_H

#include "bpf/walk/runtime_walk.h"
#include "tests/skeleton/toyjit.h"

struct toyjit_walk {
	struct toyjit_config config;
	__u64 base;
	struct runtime_copies copies;
	__u64 region[4];
	__u64 code[TOYJIT_CODE_BYTES / 8]; /* a description */
};

/* It interprets nothing. */
ENV_INLINE bool toyjit_begin(const struct walk *w, struct toyjit_walk *p)
{
	(void)w, (void)p;
	return false;
}

ENV_INLINE int toyjit_step(struct walk *w, struct toyjit_walk *p)
{
	(void)w, (void)p;
	return 1;
}

/* A field of the description, shifted down. */
ENV_INLINE __u64 toyjit_field(const struct toyjit_walk *p, __u16 offset)
{
	return p->code[offset / 8 % (TOYJIT_CODE_BYTES / 8)] >> (offset & 7) * 8;
}

/* Reads the description of the code at pc. Sets *ret_at to its address. */
ENV_INLINE bool toyjit_code(struct toyjit_walk *p, __u64 pc, __u64 *ret_at)
{
	const struct toyjit_config *c = &p->config;
	__u64 bytes = c->code_bytes;

	ENV_OPAQUE(bytes); /* see at_most in sample.bpf.c */
	if (bytes > TOYJIT_CODE_BYTES)
		bytes = TOYJIT_CODE_BYTES;
	if (!runtime_fetch(&p->copies, p->region, sizeof(p->region), p->base + c->region))
		return false;
	__u64 offset = pc - p->region[0],
	      unit = p->region[2] + (offset >> (c->unit_shift & 15)) * 8;

	/* Apart from generated code, there may be code in the file (RUNTIME_TAKES_LOOP). */
	*ret_at = p->region[3];
	if (offset < p->region[1] && !runtime_fetch(&p->copies, ret_at, 8, unit))
		return false;
	return *ret_at && runtime_fetch(&p->copies, p->code, bytes, *ret_at) &&
	       pc - toyjit_field(p, c->code_start) < (__u32)toyjit_field(p, c->code_size);
}

/* Copies the description that was read, and the data that names it. */
ENV_INLINE void toyjit_copy(struct walk *w, struct toyjit_walk *p, __u64 at)
{
	__u64 serial = toyjit_field(p, p->config.code_serial);

	env_moving_object(w, &p->copies, TOYJIT_KEY | serial, toyjit_check(serial), at);
}

ENV_INLINE void toyjit_fetch(struct walk *w, struct toyjit_walk *p, __u64 pc, __u64 fp)
{
	__u64 at;

	if (toyjit_code(p, pc, &at))
		toyjit_copy(w, p, at);
}

ENV_INLINE int toyjit_frame(struct walk *w, struct toyjit_walk *p)
{
	const struct toyjit_config *c = &p->config;
	__u64 pc = w->exact ? w->pc : w->pc - 1, at, cfa = w->sp + 8, fp = w->fp, back;

	if (!toyjit_code(p, pc, &at))
		return RUNTIME_DECLINES;
	__u64 offset = pc - toyjit_field(p, c->code_start);
	__u64 serial = toyjit_field(p, c->code_serial),
	      frame = (__u32)toyjit_field(p, c->code_frame);

	/* Before its frame exists, and at its return instruction, RSP is at the return address. A
	 * frame that has called something is between the two. */
	if (frame > TOYJIT_FRAME)
		return RUNTIME_DECLINES;
	if (offset >= c->allocated && offset != (__u16)toyjit_field(p, c->code_ret)) {
		cfa += frame;
		if (offset >= (__u16)toyjit_field(p, c->code_saved) && !walk_read(w, cfa - 16, &fp))
			return walk_stop(w, WALK_STACK_UNREADABLE);
	}
	if (!walk_read(w, cfa - 8, &back))
		return walk_stop(w, WALK_STACK_UNREADABLE);
	runtime_take(w);
	runtime_took(w, RUNTIME_FRAME, TOYJIT_KEY | serial,
		     (offset & RUNTIME_POSITION_MASK) | toyjit_check(serial)
								<< RUNTIME_CHECK_SHIFT);
	toyjit_copy(w, p, at);
	return runtime_leave(w, cfa, fp, back);
}

#endif
