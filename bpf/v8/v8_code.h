/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * V8's functions, and the code that they run. A function points to its code, or has an index in a
 * table of code. A frame may run older or other code of it. Then the code's head is searched for,
 * which is somewhere before the instructions.
 */
#ifndef BPF_V8_V8_CODE_H
#define BPF_V8_V8_CODE_H

#include "bpf/v8/v8_state.h"

/* Whether an object has elements. `undefined` counts as not. */
ENV_INLINE bool v8_is_array(const struct v8_walk *p, __u64 object)
{
	__u64 word = 0;

	return v8_is_pointer(object) && v8_length(p, object, &word) &&
	       v8_count(p, word) < V8_ELEMENTS_MAX;
}

/* Reads a function's description into p->shared. Returns its key, or 0. */
ENV_FUNCTION __u64 v8_shared(V8_PARAMETERS_AND __u64 shared)
{
	V8_FIND(w, p);
	const struct v8_config *c = &p->config;
	__u64 id = 0, ends = 0;

	if (!v8_is_pointer(shared) ||
	    !runtime_fetch(&p->copies, p->shared, V8_SHARED_BYTES, shared - 1))
		return 0;
	__u64 script = v8_whole(p, V8_FIELD(p->shared, c->shared_script), shared);

	/* Adjacent frames often have the same script. */
	if (script != p->script || p->script_ns != w->sample.time_ns || p->copies.keep) {
		p->script = 0;
		if (!v8_is_pointer(script) || !v8_word(p, script, c->script_id, &id) ||
		    !v8_is_smi(p, id) || v8_smi(p, id) >= V8_SCRIPT_IDS ||
		    !v8_tagged(p, script, c->script_ends, &ends))
			return 0;
		/* The key changes when V8 first computes the line ends of the script. */
		p->ends = v8_is_array(p, ends) ? ends : 0;
		p->script = script;
		p->script_id = (__u64)v8_smi(p, id) << 32;
		p->script_ns = w->sample.time_ns;
	}
	id = p->script_id;
	/* Each isolate numbers its scripts. */
	return v8_mix(v8_mix(v8_isolate(w, shared), id | !p->ends),
		      (__u32)V8_FIELD(p->shared, c->shared_literal)) |
	       1;
}

/* Whether the second property of a map is a name that objects hold in their first field. */
ENV_INLINE bool v8_has_own_name(struct v8_walk *p, __u64 map)
{
	const __u32 second = p->config.descriptors_first + 24u;
	__u64 all = 0, count = 0, key = 0, details = 0, length = 0, text = 0;

	if (!v8_word(p, map, V8_MAP_DESCRIPTORS, &all) || !v8_is_pointer(all) ||
	    !v8_word(p, all, 8, &count) || (count & 0xffff) < 2 || !v8_word(p, all, second, &key) ||
	    !v8_word(p, all, second + 8, &details))
		return false;
	details = v8_smi(p, details);
	/* The property is not an accessor, and is field 0. */
	if (details & 3 || details >> 19 & 1023)
		return false;
	return v8_is_pointer(key) && v8_length(p, key, &length) && length >> 32 == 4 &&
	       v8_word(p, key, v8_characters(p), &text) && (__u32)text == V8_NAME;
}

/* Mixes the characters of a string into a number. Returns 0 if there are too many, or if they are
 * not in one place. */
ENV_FUNCTION __u64 v8_mix_string(V8_PARAMETERS_AND __u64 string, __u64 h)
{
	V8_FIND(w, p);
	const __u32 type = v8_type(p, string);
	__u64 word = 0;

	(void)w;
	if (type >= p->config.type_no_string || type & V8_STRING_SHAPE ||
	    !v8_length(p, string, &word))
		return 0;
	const __u64 bytes = word >> 32 << !(type & V8_STRING_NARROW);

	if (bytes > V8_OWN_WORDS * 8)
		return 0;
	h = v8_mix(h, bytes);
	for (__u32 i = 0; i < V8_OWN_WORDS; i++) {
		if (i * 8 >= bytes)
			break;
		if (!v8_word(p, string, v8_characters(p) + i * 8, &word))
			return 0;
		if (bytes - i * 8 < 8)
			word &= (1ull << (bytes - i * 8) * 8) - 1;
		h = v8_mix(h, word);
	}
	return h | 1;
}

/* Takes the second part of a string made of two; *string becomes the first one. Returns 0 if it has
 * no parts. */
ENV_INLINE __u64 v8_split(struct v8_walk *p, __u64 *string)
{
	const __u32 type = v8_type(p, *string);
	__u64 second = 0;

	if (type >= p->config.type_no_string || (type & V8_STRING_SHAPE) != V8_STRING_CONS ||
	    !v8_word(p, *string, 24, &second) || !v8_word(p, *string, 16, string))
		return 0;
	return second;
}

/* Finds the name that a function itself has, because the program computed it: p->own_name.
 * Functions with the same description may have different ones. Returns a number derived from its
 * characters; 0: there is none. */
ENV_FUNCTION __u64 v8_find_own_name(V8_PARAMETERS_AND __u64 function)
{
	V8_FIND(w, p);
	__u64 map = 0, sizes = 0, name = 0;

	p->own_name = 0;
	if (!p->config.descriptors_first || !v8_word(p, function, 0, &map) || !v8_is_pointer(map) ||
	    (map == p->plain_map && p->plain_ns == w->sample.time_ns) ||
	    !v8_word(p, map, V8_MAP_SIZES, &sizes))
		return 0;
	const __u32 first = sizes >> 8 & 0xff;

	if (!first || (sizes & 0xff) <= first || !v8_has_own_name(p, map)) {
		p->plain_map = map;
		p->plain_ns = w->sample.time_ns;
		return 0;
	}
	if (!v8_word(p, function, first * 8, &name))
		return 0;

	/* The name is an opening bracket, the description of a symbol, and a closing bracket. */
	__u64 begin = name, last = v8_split(p, &begin), middle = v8_split(p, &begin);
	__u64 h = v8_mix_string(V8_ARGUMENTS_AND(w, p) begin, 1);

	if (h && middle)
		h = v8_mix_string(V8_ARGUMENTS_AND(w, p) middle, h);
	if (h && last)
		h = v8_mix_string(V8_ARGUMENTS_AND(w, p) last, h);
	if (h)
		p->own_name = name;
	return h;
}

/* Reads code into p->code. Returns true if pc is in its instructions. */
ENV_INLINE bool v8_code_has(struct v8_walk *p, __u64 code, __u64 pc)
{
	const struct v8_config *c = &p->config;

	p->code_at = 0;
	if (!v8_is_pointer(code) || !runtime_fetch(&p->copies, p->code, V8_CODE_BYTES, code - 1))
		return false;
	p->code_body = c->code_body ? code - 1 + c->code_body : V8_FIELD(p->code, c->code_start);
	p->code_size = (__u32)V8_FIELD(p->code, c->code_size);
	if (p->code_size > V8_CODE_MAX || pc - p->code_body >= p->code_size)
		return false;
	p->code_at = code;
	return true;
}

/* Returns the code that a function has now. */
ENV_INLINE __u64 v8_function_code(struct v8_walk *p, __u64 function)
{
	const struct v8_config *c = &p->config;
	__u64 word = 0, group = 0;

	if (!v8_word(p, function, c->function_code & ~7u, &word))
		return 0;
	if (!c->group)
		return word;
	if (!runtime_fetch(&p->copies, &group, 8, p->base + c->group) ||
	    !runtime_fetch(&p->copies, &p->table, 8, group + c->group_table))
		return 0;
	word = (__u32)(word >> (c->function_code & 7) * 8) >> c->group_shift;
	if (!runtime_fetch(&p->copies, &word, 8, p->table + word * 16 + 8))
		return 0;
	return word >> 16 | 1;
}

/* Searches 512 bytes backwards for the object that contains the instructions. This is the code
 * itself, with this map, or an object that points to the code. Returns the code, or 0. */
ENV_FUNCTION __u64 v8_find_in(V8_PARAMETERS_AND __u64 at, __u64 map)
{
	V8_FIND(w, p);
	const struct v8_config *c = &p->config;
	__u64 start = 0, skip = 0;

	if (at < 4096 || at >= WALK_ADDRESS_END)
		return V8_NO_CODE;
	if (env_read_user(w->window, WALK_WINDOW, at)) {
		/* Pages of code begin after one that nobody may read. */
		skip = 4096 - (at & 4095) + (at & (V8_CODE_UNIT - 1));
		if (skip > WALK_WINDOW || env_read_user(w->window, WALK_WINDOW, at + skip))
			return V8_NO_CODE;
		at += skip;
	}
	for (int k = WALK_WINDOW / V8_CODE_UNIT - 1; k >= 0; k--) {
		__u32 i = (__u32)k * (V8_CODE_UNIT / 8);

		/* Otherwise clang counts from the window's end, which newer verifiers refuse. */
		ENV_OPAQUE(i);
		i &= WALK_WINDOW / 8 - 2;
		__u64 object = w->window[i], code = w->window[i + 1];
		/* What is skipped at the beginning was added at the end. Without a branch. */
		__u64 inside = (k * V8_CODE_UNIT + skip - WALK_WINDOW) >> 63;

		ENV_OPAQUE(inside);
		object &= 0 - inside;
		if (c->code_body) {
			if (object == map)
				return at + k * V8_CODE_UNIT + 1;
			continue;
		}
		if (v8_is_pointer(object) && v8_is_pointer(code) &&
		    runtime_read(code - 1 + c->code_start, &start) &&
		    start == at + k * V8_CODE_UNIT + c->code_head)
			return code;
	}
	return 0;
}

/* Likewise in some windows, from this one backwards. */
ENV_FUNCTION __u64 v8_find_near(V8_PARAMETERS_AND __u64 at, __u64 map)
{
	V8_FIND(w, p);

	(void)w;
	for (int i = 0; i < V8_SCAN_AT_ONCE; i++, at -= WALK_WINDOW) {
		__u64 code = p->scan_left ? v8_find_in(V8_ARGUMENTS_AND(w, p) at, map) : V8_NO_CODE;

		if (code)
			return code;
		p->scan_left--;
	}
	return 0;
}

/* Searches for the code at pc, which begins somewhere before. The caller checks the result. */
ENV_FUNCTION __u64 v8_find_code(V8_PARAMETERS_AND __u64 pc, __u64 map)
{
	V8_FIND(w, p);
	/* The instructions begin at a multiple of the unit, and the object a head before. */
	__u64 at = pc - ((pc + p->config.code_head) & (V8_CODE_UNIT - 1)) -
		   (WALK_WINDOW - V8_CODE_UNIT);

	w->window_start = 0;
	if (p->scan_ns != (w->sample.time_ns | 1)) {
		p->scan_ns = w->sample.time_ns | 1;
		p->scan_left = V8_SCANS;
	}
	for (int i = 0; i < V8_SCAN / V8_SCAN_AT_ONCE; i++) {
		__u64 code = v8_find_near(V8_ARGUMENTS_AND(w, p) at, map);

		if (code)
			return code;
		at -= V8_SCAN_AT_ONCE * WALK_WINDOW;
	}
	return V8_NO_CODE;
}

/* Finds the generated code at pc. */
ENV_FUNCTION __u32 v8_find(V8_PARAMETERS_AND __u64 pc, __u64 function)
{
	V8_FIND(w, p);

	/* How functions lead to code is not known of these builds. */
	if (p->config.compressed)
		return 0;
	__u64 code = v8_function_code(p, function);

	if (v8_code_has(p, code, pc))
		return 1;
	__u64 map = V8_FIELD(p->code, 0), *found = &p->found[(pc >> 10) % V8_FOUND];

	if (v8_code_has(p, V8_FIELD(p->shared, p->config.shared_data), pc) ||
	    v8_code_has(p, *found, pc))
		return 1;
	if (p->copies.keep)
		return 0;
	code = v8_find_code(V8_ARGUMENTS_AND(w, p) pc, map);
	*found = code;
	return v8_code_has(p, code, pc);
}

#endif
