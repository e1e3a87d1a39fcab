/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: src/deoptimizer/{translation-opcode.h,frame-translation-builder.cc},
 * src/deoptimizer/deoptimization-data.cc, src/base/vlq.h */
#include "common/names/runtime/v8/v8.h"

/* The opcodes of frames of JavaScript are the first ones. */
#define INTERPRETED_FRAMES 2u

/* Reads a number whose lowest bit is the sign of the others. */
static bool take_signed(struct span *rest, int32_t *ret)
{
	uint64_t v;

	if (!v8_take_unsigned(rest, &v) || v > UINT32_MAX)
		return false;
	*ret = v & 1 ? -(int32_t)(v >> 1) : (int32_t)(v >> 1);
	return true;
}

static struct span from(const struct v8_translation *t, uint32_t at)
{
	return at < t->all.len ? (struct span){ .data = t->all.data + at, .len = t->all.len - at }
			       : (struct span){ 0 };
}

static bool begins(const struct v8_naming *n, uint8_t opcode)
{
	return opcode == n->opcode_begin || opcode == n->opcode_begin + 1;
}

/* Takes an opcode with its operands at *at. *ret_operands: the first operand. */
static bool take_opcode(const struct v8_translation *t, uint32_t *at, uint8_t *ret,
			struct span *ret_operands)
{
	struct span rest = from(t, *at);
	uint64_t operand;

	if (!rest.len || rest.data[0] >= t->naming->opcodes)
		return false;
	*ret = rest.data[0];
	rest.data++;
	rest.len--;
	*ret_operands = rest;
	for (unsigned i = 0; i < t->naming->operands[*ret]; i++)
		if (!v8_take_unsigned(&rest, &operand))
			return false;
	*at = (uint32_t)(t->all.len - rest.len);
	return true;
}

/* Begins to repeat opcodes of the earlier translation: those at the place that this one has
 * reached. */
static bool repeat(struct v8_translation *t, uint64_t count)
{
	uint8_t opcode;
	struct span operands;

	if (!count || count > t->all.len)
		return false;
	t->repeated = (uint32_t)count;
	for (; t->passed; t->passed--)
		if (!take_opcode(t, &t->earlier, &opcode, &operands))
			return false;
	return true;
}

/* Takes the next opcode of the translation, which may be one of the earlier one. */
static bool next_opcode(struct v8_translation *t, uint8_t *ret, struct span *ret_operands)
{
	const uint8_t opcodes = t->naming->opcodes;
	struct span rest = from(t, t->at);

	/* The last opcode repeats others. A byte above it does too, and tells how many. */
	if (!t->repeated && rest.len && rest.data[0] >= opcodes - 1) {
		uint64_t count = rest.data[0] - (uint64_t)opcodes;
		const bool told = rest.data[0] >= opcodes;

		rest.data++;
		rest.len--;
		if (!told && !v8_take_unsigned(&rest, &count))
			return false;
		t->at = (uint32_t)(t->all.len - rest.len);
		if (!repeat(t, count))
			return false;
	}
	if (t->repeated) {
		t->repeated--;
		return take_opcode(t, &t->earlier, ret, ret_operands);
	}
	t->passed++;
	return take_opcode(t, &t->at, ret, ret_operands);
}

bool v8_translation_begin(struct v8_translation *t, const struct v8_naming *n, struct span all,
			  uint32_t at)
{
	uint8_t opcode;
	struct span operands;
	uint64_t distance;

	*t = (struct v8_translation){ .naming = n, .all = all, .at = at };
	if (!n->opcodes || !take_opcode(t, &t->at, &opcode, &operands) || !begins(n, opcode) ||
	    !v8_take_unsigned(&operands, &distance) || distance > at)
		return false;
	t->earlier = at - (uint32_t)distance;
	t->passed = 1;
	return true;
}

bool v8_translation_next(struct v8_translation *t, int32_t *ret_bytecode, int32_t *ret_function)
{
	struct span operands;
	uint8_t opcode;

	while (next_opcode(t, &opcode, &operands) && !begins(t->naming, opcode))
		if (opcode < INTERPRETED_FRAMES)
			return take_signed(&operands, ret_bytecode) &&
			       take_signed(&operands, ret_function);
	return false;
}
