/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * WebAssembly's functions in V8. A frame has a marker of its own in place of a context, and then
 * the instance of the module. Each module has a table with one jump for each function, and direct
 * calls go through it: so a caller's call tells the number of the function. Otherwise the beginning
 * of the code is searched for by its first instructions. The number is in these, or it is that of
 * the jump that leads there. The names are in a section of the module's bytes, if the compiler kept
 * them.
 *
 * Sources: src/wasm/{wasm-objects,wasm-code-manager,jump-table-assembler,wasm-module}.{h,tq},
 * src/objects/managed.h of V8, the "name" section of WebAssembly's specification
 */
#ifndef BPF_V8_V8_WASM_H
#define BPF_V8_V8_WASM_H

#include "bpf/v8/v8_block.h"
#include "bpf/v8/v8_code.h"

/* push rbp; mov rbp, rsp; push MARKER */
#define V8_WASM_PUSHES 0x6ae5894855ull
/* xor r12d, r12d; call BUILTIN: function 0 */
#define V8_WASM_FIRST 0xe8e43145u
/* mov r12d, NUMBER; call BUILTIN */
#define V8_WASM_OTHER 0x00e800000000bc41ull
#define V8_WASM_OTHER_MASK 0x00ff00000000ffffull
#define V8_WASM_CALL 0xe8	  /* call rel32 */
#define V8_WASM_JUMP 0xe9	  /* jmp rel32 */
#define V8_WASM_LINE 64		  /* bytes of a line of the table; no jump crosses its end */
#define V8_WASM_WINDOWS 512	  /* 256 KiB: 32,768 functions or more */
#define V8_WASM_END 0x10000u	  /* the table ends: more than any place */
#define V8_WASM_SCAN 64		  /* times 512 bytes: how far back a function begins */
#define V8_WASM_SECTIONS 64	  /* at most so many sections are looked at, */
#define V8_WASM_READS 2200	  /* and so many names and windows of jumps for a sample */
#define V8_WASM_AT_ONCE 32	  /* of these */
#define V8_WASM_BLOCK_SHIFT 10	  /* log2 of the functions of a block (v8_block.h) */
#define V8_WASM_NAME 0x656d616e04 /* the name of the section: its length, "name" */

/* Offsets: from the object of a module to its bytes. */
#define V8_WASM_MANAGED 24   /* in a module: what holds the compiled module */
#define V8_WASM_HOLDER 8     /* in that: an address, */
#define V8_WASM_POINTER 24   /* where another one leads to the compiled module */
#define V8_WASM_DESCRIBED 24 /* in that, the module's description is so far before its bytes */

#ifndef __bpf__
static_assert(WALK_WINDOW == V8_TOLD_WORDS * 8, "a window fits where a description is made");
#endif

/* Bytes of a jump in the table; not 0, also if the config is wrong. */
ENV_INLINE __u32 v8_wasm_size(const struct v8_walk *p)
{
	const __u32 size = p->config.wasm_jump & 15;

	return size ? size : 8;
}

ENV_INLINE bool v8_wasm_is(const struct v8_walk *p)
{
	return p->config.wasm_jump && V8_MARKER(p) == p->config.wasm_marker;
}

/* Whether a function's code may begin with these 16 bytes. */
ENV_INLINE bool v8_wasm_begins(const struct v8_config *c, __u64 first, __u64 second)
{
	if ((first & 0xffffffffffffull) == (V8_WASM_PUSHES | (__u64)c->wasm_marker << 40))
		return true;
	/* After the call: sub rsp, BYTES, or a jump to what does so for large frames. */
	if (!(c->wasm_jump & V8_WASM_SETUP))
		return false;
	if ((__u32)first == V8_WASM_FIRST)
		return (second & 0xff) == 0x48 || (second & 0xff) == V8_WASM_JUMP;
	return (first & V8_WASM_OTHER_MASK) == V8_WASM_OTHER &&
	       ((second >> 24 & 0xff) == 0x48 || (second >> 24 & 0xff) == V8_WASM_JUMP);
}

/* Searches 512 bytes backwards for the beginning of a function. Returns its address, or 0. The
 * bytes are read to where a description is made later, since the stack may be in the walk's
 * window. */
ENV_FUNCTION __u64 v8_wasm_find_in(V8_PARAMETERS_AND __u64 at)
{
	V8_FIND(w, p);
	(void)w;
	if (at < 4096 || at >= WALK_ADDRESS_END || env_read_user(p->told, WALK_WINDOW, at))
		return V8_NO_CODE;
	for (int k = WALK_WINDOW / V8_CODE_UNIT - 1; k >= 0; k--) {
		__u32 i = (__u32)k * (V8_CODE_UNIT / 8);

		ENV_OPAQUE(i); /* as in v8_find_in */
		i &= WALK_WINDOW / 8 - 2;
		if (v8_wasm_begins(&p->config, p->told[i], p->told[i + 1]))
			return at + k * V8_CODE_UNIT;
	}
	return 0;
}

/* Finds where the function at pc begins. Returns V8_NO_CODE if it is too far. */
ENV_FUNCTION __u64 v8_wasm_find(V8_PARAMETERS_AND __u64 pc)
{
	V8_FIND(w, p);
	__u64 at = (pc & ~(V8_CODE_UNIT - 1ull)) - (WALK_WINDOW - V8_CODE_UNIT);

	(void)w;
	(void)p;
	for (int i = 0; i < V8_WASM_SCAN; i++, at -= WALK_WINDOW) {
		__u64 start = v8_wasm_find_in(V8_ARGUMENTS_AND(w, p) at);

		if (start)
			return start;
	}
	return V8_NO_CODE;
}

/* Finds the jump through which the frame's caller has called the function, if it did so directly.
 * Returns its address, or 0. */
ENV_INLINE __u64 v8_wasm_called(const struct v8_walk *p, __u64 instance, __u64 *ret_jump)
{
	const __u64 back = V8_RETURN(p);
	__u64 call = 0, jumps = 0;

	if (back < 8192 || back >= WALK_ADDRESS_END ||
	    !runtime_fetch(&p->copies, &call, 8, back - 8) || (call >> 24 & 0xff) != V8_WASM_CALL ||
	    !v8_word(p, instance, p->config.wasm_jumps, &jumps))
		return 0;
	const __u64 to = back + (__s64)(__s32)(call >> 32), place = to - jumps;

	if (place >= V8_WASM_WINDOWS * WALK_WINDOW || place % V8_WASM_LINE % v8_wasm_size(p) ||
	    !runtime_fetch(&p->copies, ret_jump, 8, to) || (*ret_jump & 0xff) != V8_WASM_JUMP)
		return 0;
	return to;
}

/* Finds the function at pc, whose frame was read. Returns its identity, or 0. Memory of a module
 * may be used for another one, so some bytes of the code are part of the identity. */
ENV_INLINE __u64 v8_wasm(struct walk *w, struct v8_walk *p, __u64 pc, __u64 *ret_position,
			 __u64 *ret_instance)
{
	__u64 instance = V8_FUNCTION_SLOT(p), told[SAMPLE_TOLD] = { 0 };

	if (!v8_is_pointer(instance))
		return 0;
	p->kind = V8_WASM;
	p->own_name = 0;
	p->code_body = v8_wasm_called(p, instance, &told[1]);
	*ret_position = RUNTIME_POSITION_MASK;
	*ret_instance = instance;
	if (p->code_body)
		return v8_mix(v8_mix(p->code_body, told[1] & 0xffffffffff), V8_WASM) | 1;
	if (!runtime_was_told(RUNTIME_TOLD(pc), told)) {
		told[0] = v8_wasm_find(V8_ARGUMENTS_AND(w, p) pc);
		if (told[0] == V8_NO_CODE || !runtime_read(told[0] + 8, &told[1]) ||
		    !runtime_read(told[0] + 16, &told[2]))
			return 0;
		runtime_tell(&p->copies, RUNTIME_TOLD(pc), told);
	}
	p->code_body = told[0];
	return v8_mix(v8_mix(v8_mix(told[0], told[1]), told[2]), V8_WASM) | 1;
}

/* --- numbers --- */

/* Looks in 512 bytes of the table for the jump to the function's code. Returns 1 + its place, 0, or
 * V8_WASM_END. */
ENV_FUNCTION __u32 v8_wasm_jump_in(V8_PARAMETERS_AND __u64 at)
{
	V8_FIND(w, p);
	const __u32 size = v8_wasm_size(p);

	w->window_start = 0;
	if (at < 4096 || at >= WALK_ADDRESS_END || env_read_user(w->window, WALK_WINDOW, at))
		return V8_WASM_END;
	for (__u32 line = 0; line < WALK_WINDOW / V8_WASM_LINE; line++) {
		for (__u32 k = 0, from = 0; k < V8_WASM_LINE / 5; k++, from += size) {
			__u32 place = line * V8_WASM_LINE + from, word = place / 8,
			      shift = place % 8 * 8;

			if (from + 5 > V8_WASM_LINE)
				break;
			ENV_OPAQUE(word);
			word &= WALK_WINDOW / 8 - 1;
			__u64 jump = w->window[word] >> shift;

			ENV_OPAQUE(shift);
			if (shift > 24)
				jump |= w->window[(word + 1) & (WALK_WINDOW / 8 - 1)]
					<< (64 - shift);
			if ((jump & 0xff) != V8_WASM_JUMP)
				return V8_WASM_END;
			if (at + place + 5 + (__s64)(__s32)(jump >> 8) == p->code_body)
				return 1 + place;
		}
	}
	return 0;
}

/* Likewise in V8_WASM_AT_ONCE times 512 bytes. */
ENV_FUNCTION __u32 v8_wasm_jump_near(V8_PARAMETERS_AND __u64 at)
{
	V8_FIND(w, p);

	(void)w;
	for (__u32 i = 0; i < V8_WASM_AT_ONCE; i++) {
		const __u32 found = v8_wasm_jump_in(V8_ARGUMENTS_AND(w, p) at + i * WALK_WINDOW);

		if (p->wasm_left)
			p->wasm_left--;
		if (found)
			return found == V8_WASM_END ? found : i * WALK_WINDOW + found;
	}
	return 0;
}

/* Returns the number of a jump by its place in the table. */
ENV_INLINE __u64 v8_wasm_place(__u64 at, __u32 size)
{
	return at / V8_WASM_LINE * (V8_WASM_LINE / size) + at % V8_WASM_LINE / size;
}

/* Returns how many functions of the module come before the one at p->code_body, which is its code
 * or the jump to it, without those that are imported; V8_NO_NUMBER: not known, since the code was
 * replaced. */
ENV_FUNCTION __u64 v8_wasm_number(V8_PARAMETERS_AND __u64 jumps)
{
	V8_FIND(w, p);
	const __u32 size = v8_wasm_size(p);
	__u64 first = 0;

	if (!runtime_read(p->code_body, &first))
		return V8_NO_NUMBER;
	if ((first & 0xff) == V8_WASM_JUMP)
		return v8_wasm_place(p->code_body - jumps, size);
	if (p->config.wasm_jump & V8_WASM_SETUP && (__u32)first == V8_WASM_FIRST)
		return 0;
	if (p->config.wasm_jump & V8_WASM_SETUP && (first & V8_WASM_OTHER_MASK) == V8_WASM_OTHER)
		return (__u32)(first >> 16);
	for (__u32 i = 0; i < V8_WASM_WINDOWS; i += V8_WASM_AT_ONCE) {
		const __u32 found =
			v8_wasm_jump_near(V8_ARGUMENTS_AND(w, p) jumps + i * WALK_WINDOW);

		if (found == V8_WASM_END)
			break;
		if (found)
			return v8_wasm_place(i * WALK_WINDOW + found - 1, size);
	}
	return V8_NO_NUMBER;
}

/* --- names --- */

/* Reads a number of variable length (LEB128), at most five bytes. Returns how many it has. Without
 * branches (search.h). */
ENV_INLINE __u32 v8_wasm_leb(__u64 bytes, __u64 *ret)
{
	const __u64 stops = ~bytes & 0x8080808080, stop = stops & -stops;
	const __u64 x = bytes & (stop ^ (stop - 1));

	*ret = (x & 0x7f) | (x >> 1 & 0x3f80) | (x >> 2 & 0x1fc000) | (x >> 3 & 0xfe00000) |
	       (x >> 4 & 0xf0000000);
	return 1 + (__u32)((0x80 - stop) >> 63) + (__u32)((0x8000 - stop) >> 63) +
	       (__u32)((0x800000 - stop) >> 63) + (__u32)((0x80000000 - stop) >> 63);
}

enum v8_wasm_verdict { V8_WASM_GOES_ON, V8_WASM_FOUND, V8_WASM_MISSING };

/* Looks at the section at p->wasm_at: the one of names, or in it the part with those of functions.
 * If it is that one, p->wasm_at and wasm_end become its contents. Otherwise moves to the next. */
ENV_FUNCTION __u32 v8_wasm_section(V8_PARAMETERS_AND __u32 part)
{
	V8_FIND(w, p);
	__u64 at = p->wasm_at, head = 0, name = 0, size;

	(void)w;
	if (at >= p->wasm_end || !runtime_read(at, &head))
		return V8_WASM_MISSING;
	at += 1 + v8_wasm_leb(head >> 8, &size);
	if ((head & 0xff) == (part ? 1 : 0) && at + size <= p->wasm_end &&
	    (part || (runtime_read(at, &name) && (name & 0xffffffffff) == V8_WASM_NAME))) {
		p->wasm_at = at + (part ? 0 : 5);
		p->wasm_end = at + size;
		return V8_WASM_FOUND;
	}
	p->wasm_at = at + size;
	return V8_WASM_GOES_ON;
}

/* Finds the names of functions in the bytes p->wasm_at to wasm_end of a module. */
ENV_FUNCTION __u32 v8_wasm_names(V8_PARAMETERS)
{
	V8_FIND(w, p);
	__u32 r = V8_WASM_GOES_ON;

	(void)w;
	p->wasm_at += 8; /* the magic number and the version */
	for (int i = 0; i < V8_WASM_SECTIONS && r == V8_WASM_GOES_ON; i++)
		r = v8_wasm_section(V8_ARGUMENTS_AND(w, p) 0);
	if (r != V8_WASM_FOUND)
		return 0;
	r = V8_WASM_GOES_ON;
	for (int i = 0; i < 4 && r == V8_WASM_GOES_ON; i++)
		r = v8_wasm_section(V8_ARGUMENTS_AND(w, p) 1);
	if (r != V8_WASM_FOUND)
		return 0;
	__u64 word = 0, count;

	if (!runtime_read(p->wasm_at, &word))
		return 0;
	p->wasm_at += v8_wasm_leb(word, &count);
	return 1;
}

/* Remembers where the names of a block of functions begin. */
ENV_INLINE void v8_wasm_remember(__u64 names, __u64 block, __u64 at)
{
	const __u64 id = v8_mix(names, block) | 1, all = names | 1;
	struct v8_block *b = v8_block_at(id), *last = v8_block_at(all);

	if (b && last) {
		b->text = id;
		b->value = at;
		if (last->text != all || last->value < block) {
			last->text = all;
			last->value = block;
		}
	}
}

/* Goes to the nearest known block at or before this one; to the last one known if all known ones
 * are far before; or stays at the first name. */
ENV_FUNCTION __u32 v8_wasm_recall(V8_PARAMETERS_AND __u64 names, __u64 block)
{
	V8_FIND(w, p);
	const struct v8_block *last = v8_block_at(names | 1);

	(void)w;
	if (last && last->text == (names | 1) && last->value < block)
		block = last->value;
	for (int i = 0; i < V8_BLOCKS_AT_ONCE && block; i++, block--) {
		const __u64 id = v8_mix(names, block) | 1;
		const struct v8_block *b = v8_block_at(id);

		if (b && b->text == id && b->value < p->wasm_end) {
			p->wasm_at = b->value;
			return (__u32)block;
		}
	}
	return 0;
}

/* Looks at the name at p->wasm_at, and describes it if it is that of this function. Otherwise moves
 * to the next one. */
ENV_FUNCTION __u32 v8_wasm_next_name(V8_PARAMETERS_AND __u64 names, __u64 number)
{
	V8_FIND(w, p);
	__u64 words[2] = { 0 }, found, size, at = p->wasm_at;

	(void)w;
	if (at >= p->wasm_end || !runtime_read_bytes(words, sizeof(words), at))
		return V8_WASM_MISSING;
	__u32 n = v8_wasm_leb(words[0], &found), shift = n * 8;

	ENV_OPAQUE(shift);
	at += n + v8_wasm_leb(words[0] >> (shift & 63) | words[1] << (-shift & 63), &size);
	if (found > number || at + size > p->wasm_end)
		return V8_WASM_MISSING;
	if (found == number) {
		p->told[V8_TOLD_NAME] = at;
		p->told[V8_TOLD_NAME_SIZE] = size;
		return V8_WASM_FOUND;
	}
	if (found >> V8_WASM_BLOCK_SHIFT > p->wasm_block) {
		p->wasm_block = found >> V8_WASM_BLOCK_SHIFT;
		v8_wasm_remember(names, p->wasm_block, p->wasm_at);
	}
	p->wasm_at = at + size;
	return V8_WASM_GOES_ON;
}

/* Looks at some names. A separate function, so that the verifier sees fewer turns of loops. */
ENV_FUNCTION __u32 v8_wasm_some_names(V8_PARAMETERS_AND __u64 names, __u64 number)
{
	V8_FIND(w, p);
	__u32 r = V8_WASM_GOES_ON;

	(void)w;
	for (int i = 0; i < V8_WASM_AT_ONCE && r == V8_WASM_GOES_ON && p->wasm_left; i++) {
		r = v8_wasm_next_name(V8_ARGUMENTS_AND(w, p) names, number);
		p->wasm_left--;
	}
	return r;
}

/* Describes the name of a function, of the names at p->wasm_at. If it is too far from what is
 * known, the next sample goes on. */
ENV_FUNCTION __u32 v8_wasm_name(V8_PARAMETERS_AND __u64 number)
{
	V8_FIND(w, p);
	const __u64 names = v8_mix(v8_mix(v8_thread(w), w->sample.start_ns), p->wasm_at);
	__u32 r = V8_WASM_GOES_ON;

	p->wasm_block = v8_wasm_recall(V8_ARGUMENTS_AND(w, p) names, number >> V8_WASM_BLOCK_SHIFT);
	for (int i = 0; i < V8_WASM_READS / V8_WASM_AT_ONCE && r == V8_WASM_GOES_ON; i++)
		r = v8_wasm_some_names(V8_ARGUMENTS_AND(w, p) names, number);
	return r;
}

/* --- describing --- */

/* Finds the compiled module of an instance. Returns 0 if it is unreadable. */
ENV_INLINE __u64 v8_wasm_compiled(struct v8_walk *p, __u64 instance)
{
	const struct v8_config *c = &p->config;
	__u64 at = instance;

	if (c->wasm_instance && !v8_word(p, at, c->wasm_instance, &at))
		return 0;
	if (!v8_is_pointer(at) || !v8_word(p, at, c->wasm_module, &at) || !v8_is_pointer(at) ||
	    !v8_word(p, at, V8_WASM_MANAGED, &at) || !v8_is_pointer(at) ||
	    !v8_word(p, at, V8_WASM_HOLDER, &at) || !runtime_read(at + V8_WASM_POINTER, &at) ||
	    !runtime_read(at, &at))
		return 0;
	return at;
}

/* Describes the number of the function at p->code_body, and its name if it has one. */
ENV_FUNCTION __u32 v8_wasm_describe(V8_PARAMETERS_AND __u64 instance)
{
	V8_FIND(w, p);
	const struct v8_config *c = &p->config;
	__u64 jumps = 0, compiled = v8_wasm_compiled(p, instance), module = 0, bytes = 0, word = 0;

	if (p->wasm_ns != (w->sample.time_ns | 1)) {
		p->wasm_ns = w->sample.time_ns | 1;
		p->wasm_left = V8_WASM_READS;
	}
	if (!p->wasm_left) {
		p->lost = 1;
		return 0;
	}
	if (!c->wasm_module || !v8_word(p, instance, c->wasm_jumps, &jumps) || !compiled ||
	    !runtime_read(compiled + c->wasm_bytes - V8_WASM_DESCRIBED, &module) ||
	    !runtime_read(module + (c->wasm_imported & ~7u), &word))
		return 0;
	__u64 number = v8_wasm_number(V8_ARGUMENTS_AND(w, p) jumps);

	if (number >= V8_NO_NUMBER)
		return 0;
	number += (__u32)(word >> (c->wasm_imported & 7) * 8);
	p->told[V8_TOLD_RANGE] = number;
	if (!runtime_read(compiled + c->wasm_bytes, &bytes) || !runtime_read(bytes, &p->wasm_at) ||
	    !runtime_read(bytes + 8, &word))
		return 0;
	p->wasm_end = p->wasm_at + word;
	if (v8_wasm_names(V8_ARGUMENTS(w, p)) &&
	    v8_wasm_name(V8_ARGUMENTS_AND(w, p) number) == V8_WASM_GOES_ON)
		p->lost = 1;
	return 1;
}

#endif
