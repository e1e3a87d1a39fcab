/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * V8's walk: takes over the frames of V8's code, which all keep a frame pointer
 * (bpf/walk/runtime_walk.h).
 *
 * A frame has its caller's RBP and the return address at RBP, as in the psABI. Below are a marker
 * of the frame's kind (an even number) or a context, then a JSFunction. Only the leaf may have no
 * frame: not yet, no more, or because it needs none. The return address is then on top of the
 * stack.
 *
 * A frame of WebAssembly has a marker and its instance (v8_wasm.h).
 *
 * Code is the interpreter's entry, another builtin, or generated. The interpreter's frame also has
 * the bytecodes and the position in them. Generated code is found through its function, which may
 * have other code by now, or through its head, which is somewhere before the instructions.
 */
#ifndef BPF_V8_V8_WALK_H
#define BPF_V8_V8_WALK_H

#include "bpf/v8/v8_describe.h"

/* V8 has only frames that it takes over, which are all on the stack, so there is nothing to walk
 * here. */
ENV_INLINE bool v8_begin(const struct walk *w, struct v8_walk *p)
{
	return false;
}

ENV_INLINE int v8_step(struct walk *w, struct v8_walk *p)
{
	return 1;
}

/* Returns the target of the call that returns to an address; 0: unknown. */
ENV_INLINE __u64 v8_called(struct walk *w, const struct v8_walk *p, __u64 at)
{
	__u64 b = 0, to = 0;

	if (at < 8192 || at >= WALK_ADDRESS_END || !runtime_fetch(&p->copies, &b, 8, at - 8))
		return 0;
	if ((b >> 24 & 0xff) == 0xe8) /* call rel32 */
		return at + (__s64)(__s32)(b >> 32);
	/* call [r13 + disp32]: a builtin of this isolate */
	if ((b >> 8 & 0xffffff) == 0x95ff41 && w->leaf && !w->regs_at &&
	    runtime_read(w->regs[V8_REGISTER_ROOT] + (__s64)(__s32)(b >> 32), &to))
		return to;
	return 0;
}

#define V8_HANDLER_WORDS 32
#define V8_PUSH_FRAME 0xe5894855ull /* push rbp; mov rbp, rsp */

enum v8_framed {
	V8_FRAMED,
	V8_FRAMELESS, /* the return address is on top of the stack */
	V8_PUSHED,    /* RBP is on top of the stack, then the return address */
};

/* Whether code at pc, before any call, has no frame yet or no frame any more. */
ENV_FUNCTION __u32 v8_near_frame(V8_PARAMETERS_AND __u64 pc)
{
	V8_FIND(w, p);
	__u64 b[5];
	enum v8_framed ret = V8_FRAMED;

	(void)w;
	if (pc < 8192 || pc >= WALK_ADDRESS_END || !runtime_fetch(&p->copies, b, sizeof(b), pc - 8))
		return ret;
	const __u8 before = b[0] >> 56, now = (__u8)b[1];

	if (before == 0x55 && (b[1] & 0xffffff) == V8_PUSH_FRAME >> 8)
		return V8_PUSHED;
	/* xor r12d, r12d or mov r12d, NUMBER; then the call that sets up a frame */
	if (p->config.wasm_jump & V8_WASM_SETUP &&
	    ((__u32)b[1] == V8_WASM_FIRST || (b[1] & V8_WASM_OTHER_MASK) == V8_WASM_OTHER))
		return V8_FRAMELESS;
	/* ret; ret imm16; after mov rsp, rbp; pop rbp; and after leave */
	if (now == 0xc3 || now == 0xc2 || b[0] >> 32 == 0x5de58b48 ||
	    (before == 0xc9 && now == 0x59))
		return V8_FRAMELESS;
	__u64 found = 0;

	/* Other code may come right before the place: it ends with jmp REG, ret, int3 or a jump
	 * that is not far. Without branches (search.h). */
	for (int i = 0; i < 24; i++) {
		const int from = i + 6; /* two bytes earlier */
		__u64 word = b[from / 8] >> from % 8 * 8;

		if (from % 8 > 2)
			word |= b[from / 8 + 1] << (64 - from % 8 * 8);
		const __u64 last = word >> 8 & 0xff,
			    other = (word >> 16 & 0xffffffff) ^ V8_PUSH_FRAME;
		const __u64 opcode = b[(i + 3) / 8] >> (i + 3) % 8 * 8 & 0xff, high = word & 0xffff;
		/* 0: other code ends here */
		__u64 runs = i ? ((word & 0xf8ff) ^ 0xe0ff) * (last ^ 0xc3) * (last ^ 0xcc) *
					     ((opcode ^ 0xe9) | high * (high ^ 0xffff)) *
					     ((word & 0xff) ^ 0xeb)
			       : 1;

		ENV_OPAQUE(runs);
		found |= (other - 1) >> 63 & (runs | (0 - runs)) >> 63;
	}
	return found ? V8_FRAMELESS : ret;
}

/* Whether the frame at RBP is that of a stub, and not of JavaScript. */
ENV_INLINE bool v8_is_stub(const struct v8_walk *p)
{
	return !(V8_MARKER(p) & 1);
}

/* Like v8_near_frame, for all code. The frame at RBP has been read. */
ENV_INLINE enum v8_framed v8_is_framed(struct walk *w, struct v8_walk *p, __u64 pc, bool file)
{
	const struct v8_config *c = &p->config;
	const __u64 at = pc - w->map.bias;
	enum v8_framed near = v8_near_frame(V8_ARGUMENTS_AND(w, p) pc);
	__u64 top = 0;

	if (near != V8_FRAMED || !file)
		return near;
	/* The interpreter's entry sets up its frame late. */
	if (at - c->entry_start <= c->entry_frame)
		return V8_FRAMELESS;
	/* Handlers that have no frame run in that of the interpreter. */
	if (at >= c->handlers)
		return v8_is_stub(p) || w->sp == w->fp ? V8_FRAMED : V8_FRAMELESS;
	/* Words in a frame may be left from older calls, but those calls had other targets. */
	if (walk_read(w, w->sp, &top) &&
	    pc + V8_BUILTIN_BACK - v8_called(w, p, top) < V8_BUILTIN_BACK + V8_BUILTIN_MAX)
		return V8_FRAMELESS;
	return V8_FRAMED;
}

/* Adds the code at pc, which is in p->code, to the identity of its function. */
ENV_INLINE __u64 v8_mix_code(const struct v8_walk *p, __u64 identity)
{
	identity = v8_mix(identity, p->code_size);
	return p->kind == V8_OPTIMIZED ? v8_mix(identity, p->code_body) : identity;
}

/* Finds the function of the optimized code in p->code: its data for deoptimization lead there.
 * Returns the function's identity, or 0. */
ENV_INLINE __u64 v8_code_function(struct walk *w, struct v8_walk *p, __u64 *ret_shared)
{
	const __u64 deopt = V8_FIELD(p->code, p->config.code_deopt);
	__u64 shared = 0, identity;

	if (!v8_is_pointer(deopt) || !v8_word(p, deopt, p->config.deopt_inlining - 8u, &shared))
		return 0;
	identity = v8_shared(V8_ARGUMENTS_AND(w, p) shared);
	/* Newer versions have an object in between, which has no scope. */
	if (!identity ||
	    v8_type(p, V8_FIELD(p->shared, p->config.shared_scope)) != p->config.type_scope_info)
		identity = v8_word(p, shared, 8, &shared) ? v8_shared(V8_ARGUMENTS_AND(w, p) shared)
							  : 0;
	*ret_shared = shared;
	return identity;
}

/* Finds the function whose optimized code the leaf has begun to run, or is about to leave. It has
 * no frame. Returns as v8_runs does. */
ENV_INLINE __u64 v8_enters(struct walk *w, struct v8_walk *p, __u64 pc, __u64 *ret_position,
			   __u64 *ret_shared)
{
	const struct v8_config *c = &p->config;
	/* Later, the register may hold another function. */
	const __u64 function = w->regs[V8_REGISTER_FUNCTION];
	__u64 own = 0, shared = 0;

	if (!w->leaf || w->regs_at || !v8_find(V8_ARGUMENTS_AND(w, p) pc, function))
		return 0;
	const __u32 kind = (__u32)V8_FIELD(p->code, c->code_flags) & V8_CODE_KIND;

	if (kind == c->kind_baseline || kind == c->kind_interpreted ||
	    (c->wasm_caller && kind == c->wasm_caller))
		return 0;
	p->upper = function;
	const __u64 identity = v8_code_function(w, p, ret_shared);

	if (!identity)
		return 0;
	if (v8_tagged(p, function, c->function_shared, &shared) && shared == *ret_shared)
		own = v8_find_own_name(V8_ARGUMENTS_AND(w, p) function);
	p->kind = V8_OPTIMIZED;
	*ret_position = pc - p->code_body;
	return v8_mix(v8_mix_code(p, own ? v8_mix(identity, own) : identity), p->kind);
}

/* Finds what runs in the frame at fp, whose words were read, and sets p->kind. Returns the identity
 * of the object; 0: no JavaScript. *ret_position: position in the object. */
ENV_INLINE __u64 v8_runs(struct walk *w, struct v8_walk *p, __u64 pc, bool interpreter,
			 __u64 *ret_position, __u64 *ret_shared)
{
	const struct v8_config *c = &p->config;
	__u64 function = V8_FUNCTION_SLOT(p), shared = 0;

	if (v8_wasm_is(p) && !interpreter)
		return v8_wasm(w, p, pc, ret_position, ret_shared);
	if (c->regexp_marker && V8_MARKER(p) == c->regexp_marker && !interpreter) {
		p->kind = V8_REGEXP;
		*ret_position = RUNTIME_POSITION_MASK;
		*ret_shared = V8_NO_CODE;
		return v8_mix(1, V8_REGEXP);
	}
	p->upper = function;
	if (!v8_is_pointer(V8_MARKER(p)) || !v8_is_pointer(function) ||
	    !v8_tagged(p, function, c->function_shared, &shared))
		return 0;
	__u64 identity = v8_shared(V8_ARGUMENTS_AND(w, p) shared);

	*ret_shared = shared;
	if (!identity)
		return 0;
	const __u64 own = v8_find_own_name(V8_ARGUMENTS_AND(w, p) function);

	if (own)
		identity = v8_mix(identity, own);
	p->kind = V8_INTERPRETED;
	if (!interpreter) {
		__u32 found = v8_find(V8_ARGUMENTS_AND(w, p) pc, function);
		__u32 kind = (__u32)V8_FIELD(p->code, c->code_flags) & V8_CODE_KIND;

		/* V8's tracebacks do not show it either. */
		if (found && c->wasm_caller && kind == c->wasm_caller)
			return 0;
		p->kind = !found			? V8_FUNCTION
			  : kind == c->kind_baseline	? V8_BASELINE
			  : kind == c->kind_interpreted ? V8_INTERPRETED
							: V8_OPTIMIZED;
	}
	*ret_position = RUNTIME_POSITION_MASK;
	if (p->kind == V8_INTERPRETED || p->kind == V8_BASELINE) {
		__u64 code = V8_BYTECODES(p), table = 0;

		/* V8 may create the table of positions only when it first needs it. */
		if (v8_is_pointer(code) && v8_tagged(p, code, c->bytecodes_positions, &table))
			identity ^= (__u64)v8_is_array(p, table) << 1;
	}
	if (p->kind == V8_INTERPRETED) {
		__u64 offset = v8_smi(p, V8_OFFSET(p)), start = c->bytecodes_start - 1;

		if (p->handled_fp == w->fp && p->handled_ns == w->sample.time_ns)
			offset = p->handled_offset;
		if (v8_is_smi(p, V8_OFFSET(p)) && offset >= start)
			*ret_position = offset - start;
	} else if (p->kind != V8_FUNCTION) {
		*ret_position = pc - p->code_body;
		identity = v8_mix_code(p, identity);
	}
	return v8_mix(identity, p->kind);
}

/* Copies the object if it is new. */
ENV_INLINE void v8_meet(struct walk *w, struct v8_walk *p, __u64 identity, __u64 shared)
{
	p->tell_shared = 0;
	if (!env_is_new(w, &p->copies, v8_key(identity), v8_check(identity)))
		return;
	p->tell_identity = identity;
	p->tell_shared = shared;
	p->tell_name = p->own_name;
#ifndef __bpf__
	v8_describe(w, p);
#endif
}

ENV_INLINE bool v8_is_entry(const struct v8_walk *p, const struct walk *w, __u64 pc)
{
	return w->map.slot && pc - w->map.bias - p->config.entry_start < p->config.entry_size;
}

ENV_INLINE void v8_fetch(struct walk *w, struct v8_walk *p, __u64 pc, __u64 fp)
{
	__u64 position, shared = 0, identity;
	const bool interpreter = v8_is_entry(p, w, pc);

	p->tell_shared = 0;
	if (w->map.slot && !interpreter)
		return;
	if (w->leaf_exact && pc == w->leaf_pc &&
	    v8_near_frame(V8_ARGUMENTS_AND(w, p) pc) != V8_FRAMED && !w->map.slot) {
		identity = v8_enters(w, p, pc, &position, &shared);
		if (identity)
			v8_meet(w, p, identity, shared);
		return;
	}
	if (!runtime_read_bytes(p->frame, sizeof(p->frame), fp - V8_FRAME_BELOW))
		return;
	identity = v8_runs(w, p, pc, interpreter, &position, &shared);
	if (identity)
		v8_meet(w, p, identity, shared);
}

/* Records the interpreter's position, if its handler at the leaf has no frame. */
ENV_INLINE void v8_note_handler(struct walk *w, struct v8_walk *p)
{
	__u64 offset = w->regs[V8_REGISTER_OFFSET];

	if (!w->leaf || w->regs_at || w->regs[V8_REGISTER_BYTECODES] != V8_BYTECODES(p) ||
	    offset >> 32 || offset < p->config.bytecodes_start - 1u)
		return;
	p->handled_fp = w->fp;
	p->handled_ns = w->sample.time_ns;
	p->handled_offset = offset;
}

/* Emits the frame. */
ENV_INLINE void v8_take(struct walk *w, bool native)
{
	if (!native) {
		runtime_take(w);
		return;
	}
	walk_push(w);
	w->taken = w->base + w->count - 1;
}

/* Adds what runs in the frame; identity: 0 if that is no JavaScript. */
ENV_INLINE void v8_tell(struct walk *w, struct v8_walk *p, __u64 identity, __u64 position,
			__u64 shared)
{
	if (!identity)
		return;
	runtime_took(w, RUNTIME_FRAME, v8_key(identity),
		     (position & RUNTIME_POSITION_MASK) | v8_check(identity)
								  << RUNTIME_CHECK_SHIFT);
	v8_meet(w, p, identity, shared);
}

/* Finds where a handler of the interpreter that has no frame, or is about to leave it, has its
 * return address, which leads into the interpreter's entry. Above it may be words that the handler
 * pushed, or its frame. */
ENV_INLINE __u64 v8_handler_return(struct walk *w, struct v8_walk *p)
{
	const __u64 entry = w->map.bias + p->config.entry_start, size = p->config.entry_size;
	__u64 at = w->sp;

	/* The words are read to where a description is made later. */
	if (!runtime_read_bytes(p->told, V8_HANDLER_WORDS * 8, at))
		return at;
	/* Without branches (search.h). */
	for (int k = V8_HANDLER_WORDS - 1; k >= 0; k--) {
		const __u64 inside = p->told[k] - entry;
		__u64 hit = (~inside & (inside - size)) >> 63;

		ENV_OPAQUE(hit);
		at ^= (at ^ (w->sp + k * 8)) & -hit;
	}
	return at;
}

ENV_INLINE int v8_frame(struct walk *w, struct v8_walk *p)
{
	const struct v8_config *c = &p->config;
	__u64 pc = w->exact ? w->pc : w->pc - 1, fp = w->fp, top = 0;
	__u64 position = 0, shared = 0, identity = 0, at = pc - w->map.bias;
	bool file = w->map.slot != 0, interpreter = v8_is_entry(p, w, pc);

	p->tell_shared = 0;
	bool readable = runtime_read_bytes(p->frame, sizeof(p->frame), fp - V8_FRAME_BELOW);

	if (w->exact) {
		enum v8_framed framed = v8_is_framed(w, p, pc, file);

		if (framed != V8_FRAMED) {
			__u64 back = w->sp + (framed == V8_PUSHED ? 8 : 0);

			if (framed == V8_FRAMELESS && file && at >= c->handlers)
				back = v8_handler_return(w, p);
			if (!walk_read(w, back, &top))
				return walk_stop(w, WALK_STACK_UNREADABLE);
			if (readable && file && at >= c->handlers)
				v8_note_handler(w, p);
			if (!file)
				identity = v8_enters(w, p, pc, &position, &shared);
			v8_take(w, file);
			v8_tell(w, p, identity, position, shared);
			return runtime_leave(w, back + 8, fp, top);
		}
	}
	if (!readable || fp < w->sp || fp - w->sp > WALK_FP_MAX_FRAME || fp & 7)
		return RUNTIME_DECLINES;
	if (!file || interpreter)
		identity = v8_runs(w, p, pc, interpreter, &position, &shared);
	if (interpreter && w->exact && w->sp > fp - V8_FRAME_BELOW)
		position = RUNTIME_POSITION_MASK;
	v8_take(w, file && !identity);
	v8_tell(w, p, identity, position, shared);
	return runtime_leave(w, fp + 16, V8_CALLER_FP(p), V8_RETURN(p));
}

#endif
