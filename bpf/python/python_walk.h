/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* CPython's walk: from the thread state to the frames' items (bpf/runtime.h). The process may be
 * hostile and the config may be wrong, so the walk is bounded and only reads. */
#ifndef BPF_PYTHON_PYTHON_WALK_H
#define BPF_PYTHON_PYTHON_WALK_H

#include "bpf/python/python.h"
#include "bpf/walk/runtime_walk.h"

/* A distance on the stack in bytes: more than C functions need, less than a whole stack. */
#define PYTHON_NEAR (64u << 10)
/* Bytes read at once, since from 3.11 on callers' frames lie below a frame. */
#define PYTHON_WINDOW 512
#define PYTHON_KNOWN 16
#define PYTHON_UNREAD 32 /* reads that fail, until no more code objects are read */

struct python_known {
	__u64 code, check;
	__u64 bytecode; /* start of the instructions */
	__u64 copy;
};

struct python_walk {
	struct python_config config;
	__u64 base;
	struct runtime_copies copies;
	__u64 frame, cframe;
	__u64 window_start, window_end; /* user addresses of the contents of window[] */
	__u32 at;			/* index of the frame in window[], in words */
	__u32 unread;			/* objects and texts that could not be read */
	__u64 window[PYTHON_WINDOW / 8];
	UW_U64 check[PYTHON_CHECK_WORDS / 2];
	UW_U64 text[PYTHON_TEXT_WORDS];
	struct python_known known[PYTHON_KNOWN]; /* code objects seen in this walk */
};

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
			return runtime_read(tls + c->tsd, &block) &&
			       runtime_read(block + v * 8, ret);
		return runtime_read(tls + c->tsd + v / 32 * 8, &block) &&
		       runtime_read(block + v % 32 * 16 + 8, ret);
	case PYTHON_TLS_OFFSET:
		return runtime_read(tls + c->state, ret);
	case PYTHON_TLS_GOT:
		return runtime_read(state, &v) && runtime_read(tls + v, ret);
	case PYTHON_TLS_MODULE:
		if (!runtime_read(state, &v) || !runtime_read(tls + 8, &block) ||
		    !runtime_read(block + v * (c->flags & PYTHON_LIBC_FLAT ? 8 : 16), &block) ||
		    !runtime_read(state + 8, &v))
			return false;
		return runtime_read(block + v + c->tls_add, ret);
	}
	return false;
}

/*
 * Whether this thread has the state `holder`, which has the GIL. A thread that runs several
 * interpreters has a state for each. The key leads to the first of them, but the state with the GIL
 * is the one that runs. From 3.11 on its cframe tells this: it lies on the stack of its thread,
 * close above the frames that the loop called.
 */
ENV_INLINE bool python_holds(const struct walk *w, const struct python_walk *p, __u64 holder)
{
	const struct python_config *c = &p->config;
	__u64 v = 0;

	if (c->frames == PYTHON_OBJECTS)
		return runtime_read(holder + c->tstate_thread, &v) && v == env_tls();
	return runtime_read(holder + c->tstate_frame, &v) && v - w->sp < PYTHON_NEAR;
}

ENV_INLINE bool python_running_state(const struct walk *w, const struct python_walk *p, __u64 *ret)
{
	__u64 holder = 0;
	bool found = python_thread_state(p, ret) && *ret;

	if (p->config.holder && runtime_read(p->base + p->config.holder, &holder) &&
	    (!found || holder != *ret) && python_holds(w, p, holder)) {
		*ret = holder;
		return true;
	}
	return found;
}

/* Returns the frame's word that contains the field at `offset`, shifted down to the field. */
ENV_INLINE __u64 python_field(const struct python_walk *p, __u16 offset)
{
	return p->window[(p->at + offset / 8) % (PYTHON_WINDOW / 8)] >> (offset & 7) * 8;
}

/* Reads the frame of `size` bytes at `at` into the window, with the bytes below it. */
ENV_INLINE bool python_read_frame(struct python_walk *p, __u64 at, __u32 size)
{
	__u64 offset = at - p->window_start;

	if (size > PYTHON_FRAME_BYTES)
		size = PYTHON_FRAME_BYTES;
	if (at < 4096 || at >= WALK_ADDRESS_END)
		return false;
	if (at >= p->window_start && at + size <= p->window_end && !(offset & 7)) {
		p->at = offset / 8;
		return true;
	}
	/* Read from one page only: the page before may not be mapped. */
	__u64 page = at & ~4095ull, end = at + size;
	__u32 below = 0;

	if (p->config.frames != PYTHON_OBJECTS)
		below = at - page < PYTHON_WINDOW - size ? at - page : PYTHON_WINDOW - size;
	below &= ~7u & (PYTHON_WINDOW - 1);
	p->at = below / 8;
	p->window_start = at - below;
	p->window_end = end;
	size += below;
	if (size > PYTHON_WINDOW)
		size = PYTHON_WINDOW;
	return env_read_user(p->window, size, p->window_start) == 0;
}

/* Reads a str from its length on, as far as it is readable: the page after it may not be. */
ENV_INLINE bool python_read_text(struct python_walk *p, __u64 at)
{
	__u32 rest = 4096 - (at & 4095), n = rest & (sizeof(p->text) - 1);

	if (at < 4096 || at >= WALK_ADDRESS_END)
		return false;
	if (env_read_user(p->text, sizeof(p->text), at) == 0)
		return true;
	p->unread++;
	if (rest >= sizeof(p->text) || n < 32)
		return false;
	for (__u32 i = 0; i < PYTHON_TEXT_WORDS; i++)
		p->text[i] = 0;
	return env_read_user(p->text, n, at) == 0;
}

/* Returns the identity of a code object and of the copy of its instructions. Each is read once in a
 * walk. check is 0 if it cannot be read. */
ENV_INLINE const struct python_known *python_code(struct python_walk *p, __u64 code, __u32 copy)
{
	const struct python_config *c = &p->config;
	__u64 words = c->code_check_words;
	struct python_known *k = &p->known[(code >> 4 ^ code >> 8 ^ code >> 12) % PYTHON_KNOWN];
	__u64 copies;

	if (k->code == code && k->copy == copy)
		return k;
	ENV_OPAQUE(words); /* see at_most in shared.bpf.h */
	if (words > PYTHON_CHECK_WORDS)
		words = PYTHON_CHECK_WORDS;
	k->code = code;
	k->copy = copy;
	k->check = 0;
	k->bytecode = code + c->code_bytecode;
	/* A read that fails takes a microsecond. No real process has many of them in one walk. */
	if (p->unread >= PYTHON_UNREAD)
		return k;
	if (copy && (!runtime_read(code + c->code_copies, &copies) ||
		     !runtime_read(copies + 8 + 8 * (__u64)copy, &k->bytecode))) {
		p->unread++;
		return k;
	}
	if (env_read_user(p->check, words * 4, code + c->code_check)) {
		p->unread++;
	} else {
		__u32 name = (__u16)(c->code_name - c->code_check) / 8u % (PYTHON_CHECK_WORDS / 2);

		k->check = python_check(p->check, words);
		if (c->check_text && python_read_text(p, p->check[name] + c->check_text))
			k->check = python_check_text(k->check, p->text);
	}
	return k;
}

/* Finds the first frame, through the cframe. While a C frame of the loop begins, its cframe is
 * already linked but still contains old stack contents. Then the previous cframe is used. */
ENV_INLINE bool python_first_frame(struct python_walk *p)
{
	const struct python_config *c = &p->config;
	__u64 code = 0, v, before = 0;

	if (!runtime_read(p->cframe + c->cframe_frame, &p->frame))
		return false;
	if (runtime_read(p->frame + c->frame_code, &code) &&
	    runtime_read((code & ~7ull) + c->code_check, &v))
		return true;
	if (!runtime_read(p->cframe + c->cframe_previous, &before) || !before)
		return p->frame != 0;
	p->cframe = before;
	return runtime_read(p->cframe + c->cframe_frame, &p->frame) && p->frame;
}

/* Returns true if the thread runs Python. */
ENV_INLINE bool python_begin(const struct walk *w, struct python_walk *p)
{
	const struct python_config *c = &p->config;
	__u64 state = 0;

	if (!python_running_state(w, p, &state) ||
	    !runtime_read(state + c->tstate_frame, &p->frame))
		return false;
	p->window_start = p->window_end = 0;
	p->unread = 0;
	for (__u32 i = 0; i < PYTHON_KNOWN; i++)
		p->known[i].code = 1; /* no object has this address */
	p->cframe = p->frame;
	if (c->frames == PYTHON_CFRAMES || c->frames == PYTHON_CFRAME_SHIMS)
		return python_first_frame(p);
	return p->frame != 0;
}

ENV_INLINE void python_push(struct walk *w, struct python_walk *p)
{
	const struct python_config *c = &p->config;
	__u64 code = python_field(p, c->frame_code) & ~7ull;
	__u64 position = python_field(p, c->frame_position);
	__u32 copy = c->code_copies ? python_field(p, c->frame_copy) : 0;
	const struct python_known *k = python_code(p, code, copy);

	if (c->flags & PYTHON_POSITION_POINTER)
		position = (position - k->bytecode) >> 1;
	walk_item(w, RUNTIME_FRAME, code,
		  (position & RUNTIME_POSITION_MASK) | k->check << RUNTIME_CHECK_SHIFT);
	if (k->check)
		env_object(w, &p->copies, code, k->check);
}

/* Walks one frame. Returns 0 if there is a caller, 1 if this was the last one. */
ENV_INLINE int python_step(struct walk *w, struct python_walk *p)
{
	const struct python_config *c = &p->config;
	__u64 at = p->frame;

	if (!at)
		return 1;
	if (w->sample.items >= RUNTIME_MAX_ITEMS - 2 || !python_read_frame(p, at, c->frame_bytes)) {
		walk_item(w, RUNTIME_STOPPED, 0, 0);
		return 1;
	}
	bool entry = c->frames != PYTHON_OBJECTS &&
		     (python_field(p, c->frame_owner) & 0xff) >= c->entry_owner;
	p->frame = python_field(p, c->frame_previous);
	if (!entry || c->frames == PYTHON_CFRAMES)
		python_push(w, p);
	if (entry && c->frames == PYTHON_CFRAMES) {
		walk_entry(w, p->cframe);
		if (!runtime_read(p->cframe + c->cframe_previous, &p->cframe))
			p->cframe = 0;
	} else if (entry) {
		walk_entry(w, at);
	}
	return 0;
}

RUNTIME_TAKES_NOTHING(python)

#endif
