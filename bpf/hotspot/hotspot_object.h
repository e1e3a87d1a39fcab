/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Java's objects, as far as the walk reads them: the class of an object, the offsets of its fields,
 * and references (hotspot_heap.h).
 *
 * A collector may move an object at any time, and a process may be hostile. So memory counts as a
 * class only if its superclasses lead to java.lang.Object, and as an object only if it has such a
 * class.
 */
#ifndef BPF_HOTSPOT_HOTSPOT_OBJECT_H
#define BPF_HOTSPOT_HOTSPOT_OBJECT_H

#include "bpf/hotspot/hotspot_scopes.h"

#define HOTSPOT_SUPERS 8	  /* superclasses to examine, at most */
#define HOTSPOT_FIXED_BYTES 12	  /* bytes of a field, with HOTSPOT_FIXED_FIELDS */
#define HOTSPOT_FIXED_TAG 2	  /* tag bits below the offset */
#define HOTSPOT_CLASS_FIELDS 48	  /* fields of a class, at most */
#define HOTSPOT_COMPACT_SHIFT 42  /* shift of the class in the first word of an object (JDK 24) */
#define HOTSPOT_STATIC 8	  /* flag in a field's access flags */
#define HOTSPOT_NO_OBJECT (~0ull) /* result of hotspot_reference: unknown */
/* Number of the first of Z's four colour bits, which tell the shift. */
#define HOTSPOT_COLOURS 12
#define HOTSPOT_UNCOLOURED 13 /* the shift if this bit is set */

/* Whether an address is that of a class. */
ENV_FUNCTION __u32 hotspot_is_class(HOTSPOT_PARAMETER __u64 class, __u64 object_class)
{
	HOTSPOT_FIND(w, p);
	for (int i = 0; i < HOTSPOT_SUPERS; i++) {
		if (class == object_class)
			return 1;
		if (class & 7 || !runtime_read_bytes(&class, 8, class + p->config.super))
			return 0;
	}
	return 0;
}

/* Returns the class of an object; 0: it is not one. An option of Java decides how objects refer to
 * classes. */
ENV_FUNCTION __u64 hotspot_class(HOTSPOT_PARAMETER __u64 object)
{
	HOTSPOT_FIND(w, p);
	const struct hotspot_config *c = &p->config;
	__u64 head[2], top, base = 0, class;
	__u32 shift = 0;

	if (object & 7 || !runtime_read_bytes(head, sizeof(head), object) ||
	    !runtime_read_bytes(&top, 8, p->base + c->object_class) || !top)
		return 0;
	if (runtime_read_bytes(&base, 8, p->base + c->class_base) &&
	    runtime_read_bytes(&shift, 4, p->base + c->class_shift)) {
		class = base + ((head[1] & 0xffffffff) << (shift & 31));
		if (hotspot_is_class(HOTSPOT_ARGUMENT(w, p) class, top))
			return class;
		class = base + (head[0] >> HOTSPOT_COMPACT_SHIFT << (shift & 31));
		if (hotspot_is_class(HOTSPOT_ARGUMENT(w, p) class, top))
			return class;
	}
	return hotspot_is_class(HOTSPOT_ARGUMENT(w, p) head[1], top) ? head[1] : 0;
}

/* Removes Z's colour from a reference: one of four bits tells how far the address is shifted. */
ENV_INLINE __u64 hotspot_uncoloured(__u64 v)
{
	const __u64 bits = v >> HOTSPOT_COLOURS & 15;

	return bits == 1   ? v >> HOTSPOT_UNCOLOURED
	       : bits == 2 ? v >> (HOTSPOT_UNCOLOURED + 1)
	       : bits == 4 ? v >> (HOTSPOT_UNCOLOURED + 2)
	       : bits == 8 ? v >> (HOTSPOT_UNCOLOURED + 3)
			   : 0;
}

/* Returns the object that a field refers to; 0: none; HOTSPOT_NO_OBJECT: unknown. A field holds an
 * address, a compressed one, or a coloured one. */
ENV_FUNCTION __u64 hotspot_reference(HOTSPOT_PARAMETER __u64 at)
{
	HOTSPOT_FIND(w, p);
	const struct hotspot_config *c = &p->config;
	__u64 v, base = 0, object;
	__u32 shift = 0;

	if (!runtime_read_bytes(&v, 8, at))
		return HOTSPOT_NO_OBJECT;
	if (!v)
		return 0;
	if (v >> 32 && v < WALK_ADDRESS_END && hotspot_class(HOTSPOT_ARGUMENT(w, p) v))
		return v;
	object = hotspot_uncoloured(v);
	if (object && hotspot_class(HOTSPOT_ARGUMENT(w, p) object))
		return object;
	if (!(v & 0xffffffff))
		return 0;
	if (!runtime_read_bytes(&base, 8, p->base + c->oop_base) ||
	    !runtime_read_bytes(&shift, 4, p->base + c->oop_shift))
		return HOTSPOT_NO_OBJECT;
	object = base + ((v & 0xffffffff) << (shift & 31));
	if (hotspot_class(HOTSPOT_ARGUMENT(w, p) object))
		return object;
	/* A coloured null. */
	return v >> 16 ? HOTSPOT_NO_OBJECT : 0;
}

/* Decodes the number at byte `at` of words[], like hotspot_number. */
ENV_FUNCTION __u64 hotspot_field_number(HOTSPOT_PARAMETER __u64 at)
{
	HOTSPOT_FIND(w, p);
	__u32 sum = 0;

	for (__u32 i = 0; i < 5; i++) {
		__u32 byte = p->words[at / 8 & (HOTSPOT_BLOB_WORDS - 1)] >> (at & 7) * 8 & 0xff;

		at++;
		sum += (byte - 1) << i * HOTSPOT_NUMBER_BITS;
		if (byte < HOTSPOT_NUMBER_HIGH)
			break;
	}
	return sum | at << 32;
}

/* Returns which of the wanted fields has the name at an index of a class's constants;
 * HOTSPOT_FIELDS: none. */
ENV_INLINE __u32 hotspot_field_name(struct hotspot_walk *p, __u64 pool, __u64 index)
{
	const struct hotspot_config *c = &p->config;
	__u64 symbol, text;
	__u16 length;

	if (!runtime_read_bytes(&symbol, 8, pool + c->pool_bytes + (index & 0xffff) * 8) ||
	    !runtime_read_bytes(&length, 2, symbol + c->symbol_length) || length < 2 ||
	    length > 7 || !runtime_read_bytes(&text, 8, symbol + c->symbol_text))
		return HOTSPOT_FIELDS;
	text &= (1ull << length * 8) - 1;
	switch (text) {
	case 0x6c696174ull: /* "tail" */
		return HOTSPOT_TAIL;
	case 0x746e65726170ull: /* "parent" */
		return HOTSPOT_PARENT;
	case 0x657a6973ull: /* "size" */
		return HOTSPOT_SIZE;
	case 0x7073ull: /* "sp" */
		return HOTSPOT_SP;
	case 0x6d6f74746f62ull: /* "bottom" */
		return HOTSPOT_BOTTOM;
	case 0x657a6973677261ull: /* "argsize" */
		return HOTSPOT_ARGSIZE;
	case 0x656d616eull: /* "name" */
		return HOTSPOT_NAME;
	case 0x646974ull: /* "tid" */
		return HOTSPOT_TID;
	case 0x65756c6176ull: /* "value" */
		return HOTSPOT_VALUE;
	case 0x7265646f63ull: /* "coder" */
		return HOTSPOT_CODER;
	}
	return HOTSPOT_FIELDS;
}

/* Reads the description of a field at byte `at` of words[]: name, type, offset, access, flags, and
 * numbers that depend on the flags. Returns where the next description begins. */
ENV_FUNCTION __u64 hotspot_field(HOTSPOT_PARAMETER __u64 at, __u64 pool)
{
	HOTSPOT_FIND(w, p);
	__u64 n = hotspot_field_number(HOTSPOT_ARGUMENT(w, p) at), name = (__u32)n, offset, access;
	__u32 flags, i;

	n = hotspot_field_number(HOTSPOT_ARGUMENT(w, p) n >> 32);
	n = hotspot_field_number(HOTSPOT_ARGUMENT(w, p) n >> 32);
	offset = (__u32)n;
	n = hotspot_field_number(HOTSPOT_ARGUMENT(w, p) n >> 32);
	access = (__u32)n;
	n = hotspot_field_number(HOTSPOT_ARGUMENT(w, p) n >> 32);
	flags = (__u32)n >> (p->config.fields_shift & 15);
	/* Three flags add a number each: an initial value, a generic type, a group. */
	for (i = 1; i <= 16; i <<= 2)
		if (flags & i)
			n = hotspot_field_number(HOTSPOT_ARGUMENT(w, p) n >> 32);
	if (access & HOTSPOT_STATIC)
		return n >> 32;
	i = hotspot_field_name(p, pool, name);
	if (i < HOTSPOT_FIELDS)
		p->field[i] = offset;
	return n >> 32;
}

/* Returns the 16 bits at byte `at` of words[]. */
ENV_INLINE __u32 hotspot_short(const struct hotspot_walk *p, __u32 at)
{
	return p->words[at / 8 & (HOTSPOT_BLOB_WORDS - 1)] >> (at & 7) * 8 & 0xffff;
}

/* Reads the description of a field at byte `at` of words[], which has six numbers: access, name,
 * type, value, and the offset in two. */
ENV_FUNCTION __u32 hotspot_fixed_field(HOTSPOT_PARAMETER __u32 at, __u64 pool)
{
	HOTSPOT_FIND(w, p);
	const __u32 offset = hotspot_short(p, at + 8) | hotspot_short(p, at + 10) << 16;
	__u32 i;

	if (hotspot_short(p, at) & HOTSPOT_STATIC)
		return 1;
	i = hotspot_field_name(p, pool, hotspot_short(p, at + 2));
	if (i < HOTSPOT_FIELDS)
		p->field[i] = offset >> HOTSPOT_FIXED_TAG;
	return 1;
}

/* Finds the wanted fields of a class and sets field[]. Returns 0 if its table could not be read.
 * Uses words[]. */
ENV_FUNCTION __u32 hotspot_fields(HOTSPOT_PARAMETER __u64 class)
{
	HOTSPOT_FIND(w, p);
	const struct hotspot_config *c = &p->config;
	__u64 table, pool, n, count, at;
	__u32 length;

	for (__u32 i = 0; i < HOTSPOT_FIELDS; i++)
		p->field[i] = 0;
	p->chunk_class = 0;
	if (!runtime_read_bytes(&table, 8, class + c->fields) ||
	    !runtime_read_bytes(&pool, 8, class + c->class_pool) ||
	    !runtime_read_bytes(&length, 4, table))
		return 0;
	n = length;
	if (c->flags & HOTSPOT_FIXED_FIELDS) {
		n = n > sizeof(p->words) / 2 ? sizeof(p->words) : n * 2;
		length = 0;
		runtime_read_bytes(&length, 2, class + c->fields_count);
	}
	ENV_OPAQUE(n); /* see at_most in shared.bpf.h */
	if (!n || n > sizeof(p->words) || !runtime_read_bytes(p->words, n, table + 4))
		return 0;
	if (c->flags & HOTSPOT_FIXED_FIELDS) {
		for (__u32 i = 0; i < sizeof(p->words) / HOTSPOT_FIXED_BYTES; i++) {
			if (i < length)
				hotspot_fixed_field(HOTSPOT_ARGUMENT(w, p) i * HOTSPOT_FIXED_BYTES,
						    pool);
		}
		return 1;
	}
	n = hotspot_field_number(HOTSPOT_ARGUMENT(w, p) 0);
	count = (__u32)n;
	at = hotspot_field_number(HOTSPOT_ARGUMENT(w, p) n >> 32) >> 32;
	for (__u32 i = 0; i < HOTSPOT_CLASS_FIELDS; i++) {
		if (i >= count)
			return at <= length;
		at = hotspot_field(HOTSPOT_ARGUMENT(w, p) at, pool);
	}
	return 0;
}

#endif
