/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/cfi/expr.h"

#include <dwarf.h>
#include "bpf/unwind.h"
#include "common/base/bytes/numbers.h"
#include "common/rows/elf/ehpointer.h"

#define DEPTH 8

/* Recognizes a lazy PLT's expression, whose threshold depends on the kind of PLT: breg7 8; breg16
 * 0; lit15; and; lit<threshold>; ge; lit3; shl; plus. */
static bool plt_parse(struct span s, struct expr *ret)
{
	static const uint8_t head[] = { DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and };
	static const uint8_t tail[] = { DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };

	if (s.len != sizeof(head) + 1 + sizeof(tail) || memcmp(s.data, head, sizeof(head)) != 0 ||
	    memcmp(s.data + sizeof(head) + 1, tail, sizeof(tail)) != 0)
		return false;

	uint8_t threshold = s.data[sizeof(head)];

	if (threshold < DW_OP_lit0 || threshold > DW_OP_lit15)
		return false;
	*ret = (struct expr){ .kind = EXPR_PLT, .off = threshold - DW_OP_lit0 };
	return true;
}

static bool add_const(struct expr *e, int64_t value)
{
	bool loaded = e->kind == EXPR_DEREF || e->kind == EXPR_DEREF_TWICE;
	int32_t *field = loaded ? &e->add : &e->off;
	int64_t sum;

	if (__builtin_add_overflow((int64_t)*field, value, &sum) || sum < INT32_MIN ||
	    sum > INT32_MAX)
		return false;
	*field = (int32_t)sum;
	return true;
}

/* Computes an operation on two constants. */
static bool fold(uint8_t op, int64_t a, int64_t b, int64_t *ret)
{
	switch (op) {
	case DW_OP_mul:
		return !__builtin_mul_overflow(a, b, ret);
	case DW_OP_shl:
		if (b < 0 || b > 31 || a < 0)
			return false;
		*ret = a << b;
		return true;
	case DW_OP_and:
		*ret = a & b;
		return true;
	case DW_OP_or:
		*ret = a | b;
		return true;
	default:
		return false;
	}
}

/* Multiplies a register by a factor, which makes it an index. */
static bool scale(struct expr *e, int64_t factor)
{
	int64_t off;
	uint8_t index = 1;

	if (e->kind != EXPR_REG || e->index)
		return false;
	while (index < UNWIND_INDEX_MAX && 1 << (index - 1) != factor)
		index++;
	if (1 << (index - 1) != factor || __builtin_mul_overflow((int64_t)e->off, factor, &off))
		return false;
	*e = (struct expr){ .kind = EXPR_INDEX, .index = index, .index_reg = e->reg };
	return add_const(e, off);
}

/* Adds two operands, neither of which is constant. */
static bool add_index(struct expr *a, const struct expr *b)
{
	struct expr base = *a, index = *b;

	if (base.kind == EXPR_INDEX) {
		base = *b;
		index = *a;
	}
	if (base.kind != EXPR_REG || base.index)
		return false;
	if (index.kind != EXPR_INDEX && !scale(&index, 1))
		return false;
	base.index = index.index;
	base.index_reg = index.index_reg;
	*a = base;
	return add_const(a, index.off);
}

/* Computes a op b. */
static bool combine(struct expr *a, const struct expr *b, uint8_t op)
{
	bool minus = op == DW_OP_minus, a_const = a->kind == EXPR_CONST,
	     b_const = b->kind == EXPR_CONST;
	int64_t value;

	if (op == DW_OP_plus || minus) {
		if (b_const)
			return add_const(a, minus ? -(int64_t)b->off : b->off);
		if (minus || !a_const)
			return !minus && add_index(a, b);
		value = a->off;
		*a = *b;
		return add_const(a, value);
	}
	if (a_const && b_const) {
		if (!fold(op, a->off, b->off, &value))
			return false;
		a->off = 0;
		return add_const(a, value);
	}
	if (op == DW_OP_mul && a_const) {
		value = a->off;
		*a = *b;
		return scale(a, value);
	}
	if (!b_const)
		return false;
	return op == DW_OP_mul ? scale(a, b->off)
			       : op == DW_OP_shl && b->off >= 0 && b->off < UNWIND_INDEX_MAX &&
					 scale(a, 1 << b->off);
}

/* Loads the word at e. */
static bool load(struct expr *e)
{
	if (e->kind == EXPR_REG) {
		e->kind = EXPR_DEREF;
		return true;
	}
	if (e->kind != EXPR_DEREF || e->add < INT16_MIN || e->add > INT16_MAX)
		return false;
	e->kind = EXPR_DEREF_TWICE;
	e->mid = (int16_t)e->add;
	e->add = 0;
	return true;
}

static bool read_signed(struct span *s, size_t n, int64_t *ret)
{
	uint64_t raw = 0;

	if (!span_read(s, &raw, n))
		return false;
	*ret = n == 8 ? (int64_t)raw : (int64_t)(raw << (64 - 8 * n)) >> (64 - 8 * n);
	return true;
}

static bool read_unsigned(struct span *s, size_t n, int64_t *ret)
{
	uint64_t raw = 0;

	if (!span_read(s, &raw, n))
		return false;
	*ret = (int64_t)raw;
	return true;
}

/* Reads a constant or an offset in the encoding of op. Returns false if cut short. */
static bool read_operand(struct span *s, uint8_t op, int64_t *ret)
{
	uint64_t u;

	switch (op) {
	case DW_OP_const1u:
		return read_unsigned(s, 1, ret);
	case DW_OP_const2u:
		return read_unsigned(s, 2, ret);
	case DW_OP_const4u:
		return read_unsigned(s, 4, ret);
	case DW_OP_const8u:
		return read_unsigned(s, 8, ret);
	case DW_OP_const1s:
		return read_signed(s, 1, ret);
	case DW_OP_const2s:
		return read_signed(s, 2, ret);
	case DW_OP_const4s:
		return read_signed(s, 4, ret);
	case DW_OP_const8s:
		return read_signed(s, 8, ret);
	case DW_OP_constu:
	case DW_OP_plus_uconst:
		if (!leb128_unsigned(s, &u))
			return false;
		*ret = numbers_signed(u);
		return true;
	default:
		return leb128_signed(s, ret);
	}
}

int expr_parse(struct span s, bool cfa, struct expr *ret)
{
	struct expr stack[DEPTH] = { { .kind = EXPR_CFA } }, swap;
	unsigned n = cfa;

	if (!cfa && plt_parse(s, ret))
		return 0;
	while (s.len) {
		uint8_t op = *s.data;
		struct expr push = { .kind = EXPR_CONST };
		int64_t value = 0;
		uint64_t reg = UNWIND_REG_MAX;

		s.data++;
		s.len--;
		if (op >= DW_OP_lit0 && op <= DW_OP_lit31) {
			push.off = op - DW_OP_lit0;
		} else if (op >= DW_OP_breg0 && op <= DW_OP_breg31) {
			reg = op - DW_OP_breg0;
			if (!read_operand(&s, op, &value))
				return EXPR_MALFORMED;
			if (reg >= UNWIND_REG_MAX)
				return EXPR_UNSUPPORTED;
			push = (struct expr){ .kind = EXPR_REG, .reg = (uint8_t)reg };
		} else {
			switch (op) {
			case DW_OP_bregx:
				if (!leb128_unsigned(&s, &reg) || !read_operand(&s, op, &value))
					return EXPR_MALFORMED;
				if (reg >= UNWIND_REG_MAX)
					return EXPR_UNSUPPORTED;
				push = (struct expr){ .kind = EXPR_REG, .reg = (uint8_t)reg };
				break;
			case DW_OP_const1u:
			case DW_OP_const1s:
			case DW_OP_const2u:
			case DW_OP_const2s:
			case DW_OP_const4u:
			case DW_OP_const4s:
			case DW_OP_const8u:
			case DW_OP_const8s:
			case DW_OP_constu:
			case DW_OP_consts:
				if (!read_operand(&s, op, &value))
					return EXPR_MALFORMED;
				break;
			case DW_OP_plus_uconst:
				if (!read_operand(&s, op, &value) || !n)
					return EXPR_MALFORMED;
				if (!add_const(&stack[n - 1], value))
					return EXPR_UNSUPPORTED;
				continue;
			case DW_OP_plus:
			case DW_OP_minus:
			case DW_OP_mul:
			case DW_OP_shl:
			case DW_OP_and:
			case DW_OP_or:
				if (n < 2)
					return EXPR_MALFORMED;
				n--;
				if (!combine(&stack[n - 1], &stack[n], op))
					return EXPR_UNSUPPORTED;
				continue;
			case DW_OP_dup:
			case DW_OP_over:
				if (n < 1u + (op == DW_OP_over))
					return EXPR_MALFORMED;
				if (n == DEPTH)
					return EXPR_UNSUPPORTED;
				stack[n] = stack[n - 1 - (op == DW_OP_over)];
				n++;
				continue;
			case DW_OP_drop:
				if (!n)
					return EXPR_MALFORMED;
				n--;
				continue;
			case DW_OP_swap:
				if (n < 2)
					return EXPR_MALFORMED;
				swap = stack[n - 1];
				stack[n - 1] = stack[n - 2];
				stack[n - 2] = swap;
				continue;
			case DW_OP_deref_size:
				if (!read_unsigned(&s, 1, &value))
					return EXPR_MALFORMED;
				if (value != 8)
					return EXPR_UNSUPPORTED;
				/* fall through */
			case DW_OP_deref:
				if (!n)
					return EXPR_MALFORMED;
				if (!load(&stack[n - 1]))
					return EXPR_UNSUPPORTED;
				continue;
			case DW_OP_nop:
				continue;
			default:
				return EXPR_UNSUPPORTED;
			}
		}
		if (n == DEPTH || !add_const(&push, value))
			return EXPR_UNSUPPORTED;
		stack[n++] = push;
	}
	if (!n)
		return EXPR_MALFORMED;
	if (stack[n - 1].kind == EXPR_CONST || stack[n - 1].kind == EXPR_INDEX)
		return EXPR_UNSUPPORTED;
	*ret = stack[n - 1];
	return 0;
}
