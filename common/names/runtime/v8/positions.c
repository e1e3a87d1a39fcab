/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: src/codegen/source-position{,-table}.{h,cc}, src/base/vlq.h,
 * src/baseline/bytecode-offset-iterator.h, src/interpreter/bytecodes.h */
#include "common/names/runtime/v8/v8.h"

bool v8_take_unsigned(struct span *rest, uint64_t *ret)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		if (!rest->len)
			return false;
		const uint8_t b = *rest->data;

		rest->data++;
		rest->len--;
		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80)) {
			*ret = v;
			return true;
		}
	}
	return false;
}

/* Like take_unsigned, with the sign in the lowest bit. */
static bool take_signed(struct span *rest, int64_t *ret)
{
	uint64_t v;

	if (!v8_take_unsigned(rest, &v))
		return false;
	*ret = (int64_t)(v >> 1 ^ -(v & 1));
	return true;
}

struct v8_position v8_position_of(int64_t raw)
{
	const uint64_t v = (uint64_t)raw;
	const uint32_t character = (uint32_t)(v >> 1) & 0x3fffffff;

	return (struct v8_position){
		/* Positions of generated files are lines of C++. */
		.character = v & 1 || !character ? V8_NO_POSITION : character - 1,
		.inlined = (uint32_t)(v >> 31) & 0xffff,
	};
}

bool v8_positions_next(struct v8_positions *p, struct v8_position *ret)
{
	int64_t code, position;
	uint64_t flagged;

	if (p->flags) {
		if (!v8_take_unsigned(&p->rest, &flagged))
			return false;
		code = (int64_t)(flagged >> p->flags);
	} else {
		if (!take_signed(&p->rest, &code))
			return false;
		/* Positions of expressions are stored as the complement. */
		code = code < 0 ? -(code + 1) : code;
	}
	if (!take_signed(&p->rest, &position) || code > UINT32_MAX || p->code + code > UINT32_MAX)
		return false;
	p->code += code;
	p->raw = (int64_t)((uint64_t)p->raw + (uint64_t)position);
	*ret = v8_position_of(p->raw);
	/* A function's entry is before its first bytecode. */
	ret->code = p->code ? (uint32_t)p->code - p->before_first : 0;
	return true;
}

/* Returns the size in bytes of the next bytecode with its prefix; 0: malformed. */
static uint32_t bytecode_size(const struct v8_baseline *b)
{
	uint32_t at = b->next, scale = 0;

	if (at >= b->bytecodes.len)
		return 0;
	uint8_t code = b->bytecodes.data[at];

	/* Two prefixes widen the operands of the next bytecode: Wide and ExtraWide, or their debug
	 * forms. */
	if (code < 4) {
		scale = code % 2 + 1;
		if (++at >= b->bytecodes.len)
			return 0;
		code = b->bytecodes.data[at];
	}
	if (code >= b->naming->bytecodes || !b->naming->size[scale][code])
		return 0;
	return at - b->next + b->naming->size[scale][code];
}

bool v8_baseline_next(struct v8_baseline *b, uint32_t *ret_end, uint32_t *ret_bytecode)
{
	uint64_t size;
	uint32_t bytes = 0;

	if (!v8_take_unsigned(&b->sizes, &size) || size > UINT32_MAX - b->end)
		return false;
	*ret_bytecode = b->next;
	if (b->entered)
		bytes = bytecode_size(b);
	if (b->entered && !bytes)
		return false;
	b->entered = true;
	b->next += bytes;
	b->end += (uint32_t)size;
	*ret_end = b->end;
	return true;
}

/* --- safepoints --- */

#define SAFEPOINTS_MAGLEV 16 /* bytes of the header of Maglev's tables */
#define HAS_EXITS 1u

/* Reads a number of up to four bytes. */
static bool take_bytes(struct span *rest, uint32_t bytes, uint32_t *ret)
{
	struct span part;
	uint32_t v = 0;

	if (bytes > sizeof(v) || !span_take(rest, bytes, &part))
		return false;
	memcpy(&v, part.data, bytes);
	*ret = v;
	return true;
}

bool v8_safepoints_begin(struct v8_safepoints *s, struct span table, uint32_t at, bool maglev)
{
	struct span head, config = { 0 };
	uint32_t left, bits;

	*s = (struct v8_safepoints){ 0 };
	if (at > SAFEPOINTS_MAGLEV - 8 ||
	    !span_take(&table, maglev ? SAFEPOINTS_MAGLEV : at + 8, &head))
		return false;
	config = (struct span){ .data = head.data + at, .len = 8 };
	if (!take_bytes(&config, 4, &left) || !take_bytes(&config, 4, &bits) || !(bits >> 4 & 7))
		return false;
	s->left = left;
	s->rest = table;
	s->pc_bytes = bits >> 4 & 7;
	s->exit_bytes = bits & HAS_EXITS ? bits >> 7 & 7 : 0;
	s->late_bytes = bits & HAS_EXITS ? s->pc_bytes : 0;
	/* Skip the number of registers that the call spills, and which hold objects. */
	s->skip = maglev + (bits >> 1 & 7);
	return true;
}

bool v8_safepoints_next(struct v8_safepoints *s, struct v8_safepoint *ret)
{
	struct span part;

	if (!s->left || !take_bytes(&s->rest, s->pc_bytes, &ret->pc) ||
	    !take_bytes(&s->rest, s->exit_bytes, &ret->exit) ||
	    !take_bytes(&s->rest, s->late_bytes, &ret->late) ||
	    !span_take(&s->rest, s->skip, &part))
		return false;
	s->left--;
	/* 0 in the table means none. */
	ret->exit--;
	ret->late--;
	return true;
}
