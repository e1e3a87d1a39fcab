/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Emits the methods of HotSpot's frames (hotspot_walk.h) as items. For compiled code these are its
 * method and the methods that are inlined at the pc. A table of places (PcDesc, sorted by pc) leads
 * to the scope of each place, and a scope leads to that of its caller.
 */
#ifndef BPF_HOTSPOT_HOTSPOT_SCOPES_H
#define BPF_HOTSPOT_HOTSPOT_SCOPES_H

#include "bpf/hotspot/hotspot_lowered.h"
#include "bpf/hotspot/hotspot_state.h"

#define HOTSPOT_PC_SHIFT 16 /* log2 of the limit of places of an nmethod */
/* Bytes of a PcDesc: four ints, of which only the first two are used. */
#define HOTSPOT_PC_BYTES 16
#define HOTSPOT_SCOPES 32     /* nested scopes, at most */
#define HOTSPOT_NUMBER_BITS 6 /* bits in each byte of a number except the first */
/* If a byte is at least this (1 less without zeros), another byte follows. */
#define HOTSPOT_NUMBER_HIGH 192
#define HOTSPOT_SCOPE_NONE 0		/* no scope: of a caller, or of a place */
#define HOTSPOT_SCOPE_HERE (1ull << 32) /* flag of hotspot_find_scope() */

/* Returns a 16-bit field in head[]. */
ENV_INLINE __u64 hotspot_head(const struct hotspot_walk *p, __u16 offset)
{
	return p->head[offset / 8 & (HOTSPOT_CONST_BYTES / 8 - 1)] >> (offset & 7) * 8;
}

/* Looks up a method in known[], and reads it if it is not there. Returns 1 + its index, or 0 if it
 * is no method. */
ENV_FUNCTION __u32 hotspot_method(HOTSPOT_PARAMETER __u64 method)
{
	HOTSPOT_FIND(w, p);
	const struct hotspot_config *c = &p->config;
	__u32 i = (method >> 3 ^ method >> 6 ^ method >> 9) & (HOTSPOT_KNOWN - 1);
	struct hotspot_known *k = &p->known[i];
	__u64 at, told[SAMPLE_TOLD];

	if (k->method == method)
		return k->check ? i + 1 : 0;
	k->method = method;
	k->check = 0;
	if (runtime_was_told(RUNTIME_TOLD(method), told)) {
		k->check = told[0];
		k->code = told[1];
		k->size = told[2];
		return i + 1;
	}
	if (method & 7 || !runtime_read(method + c->method_const, &at) || at & 7 ||
	    !runtime_read_bytes(p->head, HOTSPOT_CONST_BYTES, at))
		return 0;
	k->code = at + c->const_bytes;
	k->size = (__u16)hotspot_head(p, c->const_code_size);
	k->check = hotspot_check(at, hotspot_head(p, c->const_pool),
				 (__u32)hotspot_head(p, c->const_size) | k->size << 32,
				 (__u16)hotspot_head(p, c->const_name) |
					 (hotspot_head(p, c->const_signature) & 0xffff) << 16);
	told[0] = k->check;
	told[1] = k->code;
	told[2] = k->size;
	runtime_tell(&p->copies, RUNTIME_TOLD(method), told);
	return i + 1;
}

/* Copies an object, so that it can be named. */
ENV_FUNCTION __u32 hotspot_copied(HOTSPOT_PARAMETER __u64 address, __u64 check)
{
	HOTSPOT_FIND(w, p);
	env_object(w, &p->copies, address, check);
	return 1;
}

/* Emits a method, and the index of the bytecode in it. Returns 0 if it is no method. */
ENV_FUNCTION __u32 hotspot_emit(HOTSPOT_PARAMETER __u64 method, __u64 index)
{
	HOTSPOT_FIND(w, p);
	__u32 i = hotspot_method(HOTSPOT_ARGUMENT(w, p) method);
	const struct hotspot_known *k = &p->known[(i - 1) & (HOTSPOT_KNOWN - 1)];
	__u64 taken = w->taken;

	if (!i)
		return 0;
	if (!p->copies.keep) {
		ENV_OPAQUE(taken); /* see at_most in shared.bpf.h */
		/* If a frame has no space for more items, they go into another frame with the same
		 * pc. The first frame has space: its walk began only if it has. */
		if (taken < SAMPLE_WORDS &&
		    sample_frame_slot(w->words[taken]) == SAMPLE_FRAME_TAKEN + SAMPLE_TAKEN_ITEMS) {
			if (!runtime_has_room(w))
				return 0;
			runtime_take(w);
		}
		runtime_took(w, RUNTIME_FRAME, method,
			     (index & RUNTIME_HOTSPOT_INDEX) |
				     (__u64)(p->code_kind & 15) << RUNTIME_HOTSPOT_CODE_SHIFT |
				     k->check << RUNTIME_CHECK_SHIFT);
	}
	return hotspot_copied(HOTSPOT_ARGUMENT(w, p) method, k->check);
}

/* Reads places from number `first` on to place[]: at most HOTSPOT_PLACES. Returns their number. */
ENV_FUNCTION __u32 hotspot_read_places(HOTSPOT_PARAMETER __u64 first)
{
	HOTSPOT_FIND(w, p);
	__u64 bytes = (p->pcs_count - first) * HOTSPOT_PC_BYTES;

	if (first >= p->pcs_count)
		return 0;
	ENV_OPAQUE(bytes); /* see at_most in shared.bpf.h */
	if (bytes > sizeof(p->place))
		bytes = sizeof(p->place);
	if (!runtime_fetch(&p->copies, p->place, bytes, p->pcs + first * HOTSPOT_PC_BYTES))
		return 0;
	hotspot_keep(p, p->pcs + first * HOTSPOT_PC_BYTES, bytes);
	return bytes / HOTSPOT_PC_BYTES;
}

/* Returns 0 if the place's code is after the offset, otherwise -1. It has no branch, since the
 * verifier follows both sides of one. */
ENV_INLINE __u64 hotspot_not_behind(__u64 at, __u64 offset)
{
	return (__u64)((__s64)(at - offset - 1) >> 63);
}

/* Returns `by` if the `by` places from number `before` on are not after the offset, otherwise 0. */
ENV_FUNCTION __u64 hotspot_ahead(HOTSPOT_PARAMETER __u64 before, __u64 by, __u64 offset)
{
	HOTSPOT_FIND(w, p);
	__u64 i = before + by - 1;
	__u32 at;

	if (i >= p->pcs_count || !runtime_fetch(&p->copies, &at, 4, p->pcs + i * HOTSPOT_PC_BYTES))
		return 0;
	/* The table begins with an entry before all code. */
	return at >> 31 || at <= offset ? by : 0;
}

/* Finds the scope at an offset of the code: that of the first place after it. HOTSPOT_SCOPE_HERE:
 * the place is at the next byte. */
ENV_FUNCTION __u64 hotspot_find_scope(HOTSPOT_PARAMETER __u64 offset)
{
	HOTSPOT_FIND(w, p);
	__u64 before = 0, k = 0; /* so many places are known not to be after the offset */

	for (int i = 0; i <= HOTSPOT_PC_SHIFT - HOTSPOT_PLACES_SHIFT; i++)
		before += hotspot_ahead(HOTSPOT_ARGUMENT(w, p) before, 1u << (HOTSPOT_PC_SHIFT - i),
					offset);
	__u64 count = hotspot_read_places(HOTSPOT_ARGUMENT(w, p) before);

	for (int i = HOTSPOT_PLACES_SHIFT - 1; i >= 0; i--) {
		__u64 next = k + (1ull << i), at;

		/* Ignore places after the last one: memory there has old contents. */
		if (next > count)
			continue;
		at = (__u32)p->place[(next - 1) * 2 & (HOTSPOT_PLACES * 2 - 1)];
		at &= (at >> 31) - 1; /* the table begins with an entry before all code */
		k += hotspot_not_behind(at, offset) & 1ull << i;
	}
	if (k >= count)
		return HOTSPOT_SCOPE_NONE;
	const __u64 place = p->place[k * 2 & (HOTSPOT_PLACES * 2 - 1)];

	return place >> 32 | OWNER_SAME((__u32)place, (__u32)offset + 1) << 32;
}

/* Finds the scope of a call without a place, which returns to an offset of the code. A slow path
 * has the scope of the code that it jumps back to. next: the scope of the place after the call.
 * Sets p->lowered. */
ENV_FUNCTION __u64 hotspot_scope_of_call(HOTSPOT_PARAMETER __u64 offset, __u64 next)
{
	HOTSPOT_FIND(w, p);
	__u64 after = hotspot_after(HOTSPOT_ARGUMENT(w, p) hotspot_code_of(p) + offset);
	const __u64 jumped = HOTSPOT_JUMPED(after);

	p->lowered = after;
	if (jumped && jumped <= offset)
		return hotspot_find_scope(HOTSPOT_ARGUMENT(w, p) offset - jumped);
	return HOTSPOT_RAISED(after) && !(after & HOTSPOT_IN_LINE) ? HOTSPOT_SCOPE_NONE : next;
}

/* Returns the scope at an offset of the code, and sets p->lowered. called: the code has a call that
 * returns to the next byte. A deferred walk gets the result instead of the memory, since the search
 * reads a dozen lines of memory. */
ENV_INLINE __u32 hotspot_scope_at(struct walk *w, struct hotspot_walk *p, __u64 offset,
				  __u64 called)
{
	const __u64 key = RUNTIME_TOLD(p->block + offset);
	const __u32 keep = p->copies.keep;
	__u64 scope[SAMPLE_TOLD] = { 0 };

	if (runtime_was_told(key, scope)) {
		p->lowered = scope[1];
		return (__u32)scope[0];
	}
	p->copies.keep = 0;
	p->lowered = HOTSPOT_ASKS;
	scope[0] = hotspot_find_scope(HOTSPOT_ARGUMENT(w, p) offset);
	if (called && scope[0] & HOTSPOT_SCOPE_HERE)
		p->lowered = HOTSPOT_PLACED;
	else if (called)
		scope[0] = hotspot_scope_of_call(HOTSPOT_ARGUMENT(w, p) offset + 1, scope[0]);
	else if (keep)
		p->lowered = hotspot_after(HOTSPOT_ARGUMENT(w, p) hotspot_code_of(p) + offset);
	p->copies.keep = keep;
	scope[1] = p->lowered;
	runtime_tell(&p->copies, key, scope);
	return (__u32)scope[0];
}

/* Decodes the number at byte `at` of number[] (CompressedStream, UNSIGNED5). Returns the number,
 * and in the upper half the offset where the next one begins. */
ENV_FUNCTION __u64 hotspot_number(HOTSPOT_PARAMETER __u64 at)
{
	HOTSPOT_FIND(w, p);
	__u32 less = !!(p->config.flags & HOTSPOT_NO_ZEROS);
	__u32 sum = 0;

	for (__u32 i = 0; i < 5; i++) {
		__u32 byte = p->number[at / 8 & 1] >> (at & 7) * 8 & 0xff;

		at++;
		sum += (byte - less) << i * HOTSPOT_NUMBER_BITS;
		if (byte < HOTSPOT_NUMBER_HIGH)
			break;
	}
	return sum | at << 32;
}

/* Emits the method of a scope. Returns 1 + the offset of its caller's scope; 0: unreadable. */
ENV_FUNCTION __u64 hotspot_scope(HOTSPOT_PARAMETER __u64 offset)
{
	HOTSPOT_FIND(w, p);
	__u64 n, caller, method;

	/* Three numbers: the caller's scope, the method, and 1 + the index of its bytecode. */
	if (!runtime_fetch(&p->copies, p->number, sizeof(p->number), p->scopes + offset))
		return 0;
	n = hotspot_number(HOTSPOT_ARGUMENT(w, p) 0);
	caller = (__u32)n;
	n = hotspot_number(HOTSPOT_ARGUMENT(w, p) n >> 32);
	method = (__u32)n;
	n = hotspot_number(HOTSPOT_ARGUMENT(w, p) n >> 32);
	if (!method || !runtime_fetch(&p->copies, &method, 8, p->metadata + (method - 1) * 8) ||
	    !hotspot_emit(HOTSPOT_ARGUMENT(w, p) method, (__u32)n - 1))
		return 0;
	return caller + 1;
}

/* Finds the tables of the nmethod in words[]. Returns false if they are unreadable. */
ENV_INLINE bool hotspot_tables(struct hotspot_walk *p)
{
	const struct hotspot_config *c = &p->config;
	__u64 blob = hotspot_blob(p), from = blob, metadata = hotspot_word(p, c->metadata), end;

	if (c->immutable)
		from = hotspot_word(p, c->immutable);
	p->pcs = from + (__u32)hotspot_word(p, c->pcs);
	end = from + (__u32)hotspot_word(p, c->pcs_end);
	p->pcs_count = end > p->pcs ? (end - p->pcs) / HOTSPOT_PC_BYTES : 0;
	if (p->pcs_count > 1 << HOTSPOT_PC_SHIFT)
		p->pcs_count = 0;
	p->scopes = hotspot_word(p, c->data);
	if (!(c->flags & HOTSPOT_DATA_ADDRESS))
		p->scopes = from + (__u32)p->scopes;
	if (c->flags & HOTSPOT_METADATA_IN_DATA)
		p->metadata = blob + (__u32)hotspot_word(p, c->mutable_data) + (__u16)metadata;
	else
		p->metadata = (c->mutable_data ? hotspot_word(p, c->mutable_data) : blob) +
			      (__u32)metadata;
	return p->pcs_count;
}

/* Emits the methods at an offset of the nmethod in words[], innermost first. called: as above.
 * Returns 0 if only its own method is known. */
ENV_FUNCTION __u32 hotspot_scopes(HOTSPOT_PARAMETER __u64 offset, __u64 called)
{
	HOTSPOT_FIND(w, p);
	__u64 scope = 0;

	p->lowered = HOTSPOT_ASKS;
	if (hotspot_tables(p))
		scope = hotspot_scope_at(w, p, offset, called);
	if (scope == HOTSPOT_SCOPE_NONE) {
		hotspot_emit(HOTSPOT_ARGUMENT(w, p) hotspot_word(p, p->config.method),
			     RUNTIME_POSITION_MASK);
		return 0;
	}
	for (int i = 0; i < HOTSPOT_SCOPES; i++) {
		scope = hotspot_scope(HOTSPOT_ARGUMENT(w, p) scope);
		if (scope <= 1)
			break;
		scope--;
	}
	return 1;
}

#endif
