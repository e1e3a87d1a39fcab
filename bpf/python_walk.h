/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* CPython's walk: from the thread state to the frames' items (bpf/runtime.h). What is read is
 * memory of a process that may be hostile, by a config that may be wrong: bounded, and only read.
 */
#ifndef PROFPIPE_PYTHON_WALK_H
#define PROFPIPE_PYTHON_WALK_H

#include "bpf/python.h"
#include "bpf/walk.h"

#define PYTHON_NEAR \
	(64u << 10) /* bytes of stack: more than what C functions take, less than a stack */

struct python_walk {
	struct python_config config;
	__u64 base;
	__u64 frame, cframe;
	__u64 words[PYTHON_FRAME_BYTES / 8]; /* the frame */
	__u32 check[PYTHON_CHECK_WORDS];
};

ENV_INLINE bool python_read(__u64 addr, __u64 *ret)
{
	return addr >= 4096 && addr < WALK_ADDRESS_END &&
	       env_read_user(ret, sizeof(*ret), addr) == 0;
}

ENV_INLINE bool python_thread_state(const struct python_walk *p, __u64 *ret)
{
	const struct python_config *c = &p->config;
	__u64 tls = env_tls(), state = p->base + c->state, v = 0, block;

	if (!tls)
		return false;
	switch (c->thread) {
	case PYTHON_TSD:
		if (env_read_user(&v, 4, state))
			return false;
		v &= 0xffffffff;
		if (c->flags & PYTHON_LIBC_FLAT)
			return python_read(tls + c->tsd, &block) && python_read(block + v * 8, ret);
		return python_read(tls + c->tsd + v / 32 * 8, &block) &&
		       python_read(block + v % 32 * 16 + 8, ret);
	case PYTHON_TLS_OFFSET:
		return python_read(tls + c->state, ret);
	case PYTHON_TLS_GOT:
		return python_read(state, &v) && python_read(tls + v, ret);
	case PYTHON_TLS_MODULE:
		if (!python_read(state, &v) || !python_read(tls + 8, &block) ||
		    !python_read(block + v * (c->flags & PYTHON_LIBC_FLAT ? 8 : 16), &block) ||
		    !python_read(state + 8, &v))
			return false;
		return python_read(block + v + c->tls_add, ret);
	}
	return false;
}

/*
 * A thread that runs several interpreters has a state for each, and the key leads to the first of
 * them: the state that runs is the one that has the GIL, if that is this thread's. From 3.11 on its
 * cframe tells, which lies on the stack of who runs it, close above what the loop called.
 */
ENV_INLINE bool python_holds(const struct walk *w, const struct python_walk *p, __u64 holder)
{
	const struct python_config *c = &p->config;
	__u64 v = 0;

	if (c->frames == PYTHON_OBJECTS)
		return python_read(holder + c->tstate_thread, &v) && v == env_tls();
	return python_read(holder + c->tstate_frame, &v) && v - w->sp < PYTHON_NEAR;
}

ENV_INLINE bool python_running_state(const struct walk *w, const struct python_walk *p, __u64 *ret)
{
	__u64 holder = 0;
	bool found = python_thread_state(p, ret) && *ret;

	if (p->config.holder && python_read(p->base + p->config.holder, &holder) &&
	    (!found || holder != *ret) && python_holds(w, p, holder)) {
		*ret = holder;
		return true;
	}
	return found;
}

/* The word of the frame that the field at `offset` lies in, shifted down to it. */
ENV_INLINE __u64 python_field(const struct python_walk *p, __u16 offset)
{
	return p->words[offset / 8 % (PYTHON_FRAME_BYTES / 8)] >> (offset & 7) * 8;
}

/* True where the thread runs Python. */
ENV_INLINE bool python_begin(const struct walk *w, struct python_walk *p)
{
	const struct python_config *c = &p->config;
	__u64 state = 0;

	if (!python_running_state(w, p, &state) || !python_read(state + c->tstate_frame, &p->frame))
		return false;
	p->cframe = p->frame;
	if (c->frames == PYTHON_CFRAMES || c->frames == PYTHON_CFRAME_SHIMS)
		return python_read(p->cframe + c->cframe_frame, &p->frame) && p->frame;
	return p->frame != 0;
}

ENV_INLINE void python_push(struct walk *w, struct python_walk *p)
{
	const struct python_config *c = &p->config;
	__u64 code = python_field(p, c->frame_code) & ~7ull, check = 0;
	__u64 position = python_field(p, c->frame_position);
	__u32 words = c->code_check_words;

	if (c->flags & PYTHON_POSITION_POINTER)
		position = (position - code - c->code_bytecode) >> 1;
	if (words > PYTHON_CHECK_WORDS)
		words = PYTHON_CHECK_WORDS;
	if (env_read_user(p->check, words * sizeof(p->check[0]), code + c->code_check) == 0)
		check = python_check(p->check, words);
	walk_item(w, RUNTIME_PYTHON, RUNTIME_FRAME, code,
		  (position & RUNTIME_POSITION_MASK) | check << RUNTIME_CHECK_SHIFT);
}

/* One frame. 0: there is a caller; 1: that was all. */
ENV_INLINE int python_step(struct walk *w, struct python_walk *p)
{
	const struct python_config *c = &p->config;
	__u64 at = p->frame;
	__u32 size = c->frame_bytes;

	if (!at)
		return 1;
	if (size > PYTHON_FRAME_BYTES)
		size = PYTHON_FRAME_BYTES;
	if (w->sample.items >= RUNTIME_MAX_ITEMS - 2 || at < 4096 || at >= WALK_ADDRESS_END ||
	    env_read_user(p->words, size, at)) {
		walk_item(w, RUNTIME_PYTHON, RUNTIME_STOPPED, 0, 0);
		return 1;
	}
	bool entry = c->frames != PYTHON_OBJECTS &&
		     (python_field(p, c->frame_owner) & 0xff) >= c->entry_owner;
	p->frame = python_field(p, c->frame_previous);
	if (!entry || c->frames == PYTHON_CFRAMES)
		python_push(w, p);
	if (entry && c->frames == PYTHON_CFRAMES) {
		walk_entry(w, RUNTIME_PYTHON, p->cframe);
		if (!python_read(p->cframe + c->cframe_previous, &p->cframe))
			p->cframe = 0;
	} else if (entry) {
		walk_entry(w, RUNTIME_PYTHON, at);
	}
	return 0;
}

#endif
