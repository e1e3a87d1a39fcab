/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Java's objects, as far as the walk reads them: the class of an object, the offsets of its fields,
 * and references (hotspot_heap.h).
 *
 * A collector may move an object at any time, and a process may be hostile. So nothing counts as a
 * class unless its superclasses lead to java.lang.Object, and nothing counts as an object unless it
 * has such a class.
 */
#ifndef BPF_HOTSPOT_HOTSPOT_OBJECT_H
#define BPF_HOTSPOT_HOTSPOT_OBJECT_H

#include "bpf/hotspot/hotspot_scopes.h"

#define HOTSPOT_SUPERS 4	  /* superclasses, at most */
#define HOTSPOT_CLASS_FIELDS 48	  /* of a class, at most */
#define HOTSPOT_COMPACT_SHIFT 42  /* of the class in the first word of an object (JDK 24) */
#define HOTSPOT_STATIC 8	  /* of a field's access flags */
#define HOTSPOT_NO_OBJECT (~0ull) /* of hotspot_reference */
#define HOTSPOT_COLOURS 12	  /* log2 of the first of Z's four bits that tell the shift */
#define HOTSPOT_UNCOLOURED 13	  /* the shift for this bit */

/* Whether it is a class. */
ENV_INLINE bool hotspot_is_class(struct hotspot_walk *p, __u64 class, __u64 object_class)
{
	for (int i = 0; i < HOTSPOT_SUPERS; i++) {
		if (class == object_class)
			return true;
		if (class & 7 || !runtime_fetch(&p->copies, &class, 8, class + p->config.super))
			return false;
	}
	return false;
}

/* The class of an object; 0: it is none. How objects refer to classes is an option of Java. */
ENV_FUNCTION __u64 hotspot_class(HOTSPOT_PARAMETER __u64 object)
{
	HOTSPOT_FIND(w, p);
	const struct hotspot_config *c = &p->config;
	__u64 head[2], top, base = 0, class;
	__u32 shift = 0;

	if (object & 7 || !runtime_fetch(&p->copies, head, sizeof(head), object) ||
	    !runtime_fetch(&p->copies, &top, 8, p->base + c->object_class) || !top)
		return 0;
	if (runtime_fetch(&p->copies, &base, 8, p->base + c->class_base) &&
	    runtime_fetch(&p->copies, &shift, 4, p->base + c->class_shift)) {
		class = base + ((head[1] & 0xffffffff) << (shift & 31));
		if (hotspot_is_class(p, class, top))
			return class;
		class = base + (head[0] >> HOTSPOT_COMPACT_SHIFT << (shift & 31));
		if (hotspot_is_class(p, class, top))
			return class;
	}
	return hotspot_is_class(p, head[1], top) ? head[1] : 0;
}

/* Z colours its references: one of four bits tells how far the address is shifted. */
ENV_INLINE __u64 hotspot_uncoloured(__u64 v)
{
	const __u64 bits = v >> HOTSPOT_COLOURS & 15;

	return bits == 1   ? v >> HOTSPOT_UNCOLOURED
	       : bits == 2 ? v >> (HOTSPOT_UNCOLOURED + 1)
	       : bits == 4 ? v >> (HOTSPOT_UNCOLOURED + 2)
	       : bits == 8 ? v >> (HOTSPOT_UNCOLOURED + 3)
			   : 0;
}

/* The object that a field refers to; 0: none; HOTSPOT_NO_OBJECT: this cannot be told. A field holds
 * an address, a compressed one, or a coloured one. */
ENV_FUNCTION __u64 hotspot_reference(HOTSPOT_PARAMETER __u64 at)
{
	HOTSPOT_FIND(w, p);
	const struct hotspot_config *c = &p->config;
	__u64 v, base = 0, object;
	__u32 shift = 0;

	if (!runtime_fetch(&p->copies, &v, 8, at))
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
	if (!runtime_fetch(&p->copies, &base, 8, p->base + c->oop_base) ||
	    !runtime_fetch(&p->copies, &shift, 4, p->base + c->oop_shift))
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

/* Which of the wanted fields has the name at an index of a class's constants; HOTSPOT_FIELDS: none.
 */
ENV_INLINE __u32 hotspot_field_name(struct hotspot_walk *p, __u64 pool, __u64 index)
{
	const struct hotspot_config *c = &p->config;
	__u64 symbol, text;
	__u16 length;

	if (!runtime_fetch(&p->copies, &symbol, 8, pool + c->pool_bytes + (index & 0xffff) * 8) ||
	    !runtime_fetch(&p->copies, &length, 2, symbol + c->symbol_length) || length < 2 ||
	    length > 7 || !runtime_fetch(&p->copies, &text, 8, symbol + c->symbol_text))
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
	}
	return HOTSPOT_FIELDS;
}

/* Reads the field that byte `at` of words[] describes: name, type, offset, access, flags, and what
 * the flags add. Returns where the next one begins. */
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

/* Finds the wanted fields of a class: field[]. 0: its table could not be read. Uses words[]. */
ENV_FUNCTION __u32 hotspot_fields(HOTSPOT_PARAMETER __u64 class)
{
	HOTSPOT_FIND(w, p);
	const struct hotspot_config *c = &p->config;
	__u64 table, pool, n, count, at;
	__u32 length;

	for (__u32 i = 0; i < HOTSPOT_FIELDS; i++)
		p->field[i] = 0;
	p->chunk_class = 0;
	if (!runtime_fetch(&p->copies, &table, 8, class + c->fields) ||
	    !runtime_fetch(&p->copies, &pool, 8, class + c->class_pool) ||
	    !runtime_fetch(&p->copies, &length, 4, table))
		return 0;
	n = length;
	ENV_OPAQUE(n); /* see at_most in sample.bpf.c */
	if (!n || n > sizeof(p->words) || !runtime_fetch(&p->copies, p->words, n, table + 4))
		return 0;
	hotspot_keep(p, table + 4, n);
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
