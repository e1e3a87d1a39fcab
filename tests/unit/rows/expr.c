/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/cfi/expr.h"
#include "common/rows/elf/ehpointer.h"

#include <criterion/criterion.h>
#include <dwarf.h>

#define PARSE(ret, ...) \
	parse((const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }), ret)

static int parse(const uint8_t *bytes, size_t len, struct expr *ret)
{
	return expr_parse((struct span){ .data = bytes, .len = len }, false, ret);
}

Test(expr, register_plus_offset)
{
	struct expr e;

	cr_assert_eq(PARSE(&e, DW_OP_breg7, 0x08), 0);
	cr_assert_eq(e.kind, EXPR_REG);
	cr_assert_eq(e.reg, 7);
	cr_assert_eq(e.off, 8);
	cr_assert_eq(PARSE(&e, DW_OP_bregx, 13, 0x78), 0);
	cr_assert_eq(e.reg, 13);
	cr_assert_eq(e.off, -8);
}

Test(expr, dereference_with_and_without_addition)
{
	struct expr e;

	cr_assert_eq(PARSE(&e, DW_OP_breg6, 0x78, DW_OP_deref), 0);
	cr_assert_eq(e.kind, EXPR_DEREF);
	cr_assert_eq(e.off, -8);
	cr_assert_eq(e.add, 0);
	cr_assert_eq(PARSE(&e, DW_OP_breg7, 0x98, 0x01, DW_OP_deref, DW_OP_plus_uconst, 8), 0);
	cr_assert_eq(e.kind, EXPR_DEREF);
	cr_assert_eq(e.off, 152);
	cr_assert_eq(e.add, 8);
}

Test(expr, other_ways_to_write_the_same_are_understood)
{
	struct expr e;

	cr_assert_eq(PARSE(&e, DW_OP_lit8, DW_OP_breg7, 0, DW_OP_plus), 0);
	cr_assert_eq(e.kind, EXPR_REG);
	cr_assert_eq(e.off, 8);
	cr_assert_eq(PARSE(&e, DW_OP_breg7, 32, DW_OP_const2u, 0x10, 0, DW_OP_minus, DW_OP_deref,
			   DW_OP_const1s, 0xf8, DW_OP_plus),
		     0);
	cr_assert_eq(e.kind, EXPR_DEREF);
	cr_assert_eq(e.off, 16);
	cr_assert_eq(e.add, -8);
}

Test(expr, plt_template_gives_its_threshold)
{
	struct expr e;

	for (uint8_t threshold = 0; threshold < 16; threshold++) {
		cr_assert_eq(PARSE(&e, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and,
				   DW_OP_lit0 + threshold, DW_OP_ge, DW_OP_lit3, DW_OP_shl,
				   DW_OP_plus),
			     0);
		cr_assert_eq(e.kind, EXPR_PLT);
		cr_assert_eq(e.off, threshold);
	}
	cr_assert_eq(PARSE(&e, DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11,
			   DW_OP_gt, DW_OP_lit3, DW_OP_shl, DW_OP_plus),
		     EXPR_UNSUPPORTED);
}

/* OpenSSL's Montgomery multiplication, and other encodings of the same. */
Test(expr, an_index_is_a_register_by_a_factor)
{
	static const uint8_t ways[][11] = {
		{ DW_OP_breg7, 8, DW_OP_breg9, 0, DW_OP_lit8, DW_OP_mul, DW_OP_plus, DW_OP_deref,
		  DW_OP_plus_uconst, 8 },
		{ DW_OP_breg9, 1, DW_OP_lit3, DW_OP_shl, DW_OP_breg7, 0, DW_OP_plus, DW_OP_deref,
		  DW_OP_plus_uconst, 8 },
		{ DW_OP_lit8, DW_OP_breg9, 0, DW_OP_mul, DW_OP_breg7, 8, DW_OP_plus, DW_OP_deref,
		  DW_OP_lit8, DW_OP_plus },
	};
	struct expr e;

	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		cr_assert_eq(parse(ways[i], 10, &e), 0, "%zu", i);
		cr_assert_eq(e.kind, EXPR_DEREF);
		cr_assert_eq(e.reg, 7);
		cr_assert_eq(e.index_reg, 9);
		cr_assert_eq(e.index, 4);
		cr_assert_eq(e.off, 8);
		cr_assert_eq(e.add, 8);
	}
	cr_assert_eq(PARSE(&e, DW_OP_breg7, 8, DW_OP_breg9, 0, DW_OP_plus, DW_OP_deref), 0);
	cr_assert_eq(e.index, 1);
}

/* OCaml 5: a fiber's parent, and its saved stack pointer. */
Test(expr, a_load_may_follow_a_load)
{
	struct expr e;

	cr_assert_eq(PARSE(&e, DW_OP_breg7, 56, DW_OP_deref, DW_OP_plus_uconst, 0, DW_OP_deref,
			   DW_OP_plus_uconst, 8),
		     0);
	cr_assert_eq(e.kind, EXPR_DEREF_TWICE);
	cr_assert_eq(e.off, 56);
	cr_assert_eq(e.mid, 0);
	cr_assert_eq(e.add, 8);
	cr_assert_eq(PARSE(&e, DW_OP_breg7, 0, DW_OP_deref, DW_OP_lit16, DW_OP_minus, DW_OP_deref),
		     0);
	cr_assert_eq(e.mid, -16);
	cr_assert_eq(e.add, 0);
}

Test(expr, expressions_that_no_rule_can_hold_are_unsupported)
{
	struct expr e;

	cr_assert_eq(PARSE(&e, DW_OP_breg7, 8, DW_OP_breg9, 0, DW_OP_minus), EXPR_UNSUPPORTED);
	cr_assert_eq(PARSE(&e, DW_OP_breg7, 8, DW_OP_deref, DW_OP_deref, DW_OP_deref),
		     EXPR_UNSUPPORTED);
	/* An index alone, a factor that no instruction has, an index from memory, and two of
	 * them. */
	cr_assert_eq(PARSE(&e, DW_OP_breg9, 0, DW_OP_lit8, DW_OP_mul), EXPR_UNSUPPORTED);
	cr_assert_eq(PARSE(&e, DW_OP_breg7, 0, DW_OP_breg9, 0, DW_OP_lit3, DW_OP_mul, DW_OP_plus),
		     EXPR_UNSUPPORTED);
	cr_assert_eq(PARSE(&e, DW_OP_breg7, 0, DW_OP_deref, DW_OP_lit8, DW_OP_mul),
		     EXPR_UNSUPPORTED);
	cr_assert_eq(
		PARSE(&e, DW_OP_breg7, 0, DW_OP_breg9, 0, DW_OP_plus, DW_OP_breg8, 0, DW_OP_plus),
		EXPR_UNSUPPORTED);
	/* The number added between two loads has 16 bits. */
	cr_assert_eq(PARSE(&e, DW_OP_breg7, 0, DW_OP_deref, DW_OP_const2u, 0, 0x80, DW_OP_plus,
			   DW_OP_deref),
		     EXPR_UNSUPPORTED);
	cr_assert_eq(PARSE(&e, DW_OP_lit8), EXPR_UNSUPPORTED);
	cr_assert_eq(PARSE(&e, DW_OP_breg16, 0), EXPR_UNSUPPORTED);
	cr_assert_eq(PARSE(&e, DW_OP_addr, 0, 0, 0, 0, 0, 0, 0, 0), EXPR_UNSUPPORTED);
	/* An offset of more than 32 bits, and a sum that overflows 32 bits. */
	cr_assert_eq(PARSE(&e, DW_OP_breg7, 0xff, 0xff, 0xff, 0xff, 0xff, 0x00), EXPR_UNSUPPORTED);
	cr_assert_eq(PARSE(&e, DW_OP_breg7, 1, DW_OP_plus_uconst, 0xff, 0xff, 0xff, 0xff, 0x07),
		     EXPR_UNSUPPORTED);
}

Test(expr, cut_short_or_unbalanced_is_malformed)
{
	struct expr e;

	cr_assert_eq(expr_parse((struct span){ 0 }, false, &e), EXPR_MALFORMED);
	cr_assert_eq(PARSE(&e, DW_OP_breg7), EXPR_MALFORMED);
	cr_assert_eq(PARSE(&e, DW_OP_breg7, 0x80), EXPR_MALFORMED);
	cr_assert_eq(PARSE(&e, DW_OP_deref), EXPR_MALFORMED);
	cr_assert_eq(PARSE(&e, DW_OP_lit1, DW_OP_plus), EXPR_MALFORMED);
	cr_assert_eq(PARSE(&e, DW_OP_const8u, 1, 2, 3), EXPR_MALFORMED);
}

Test(expr, leb128_of_every_length)
{
	const uint8_t bytes[] = { 0xe5, 0x8e, 0x26, 0x9b, 0xf1, 0x59, 0x7f };
	struct span s = { .data = bytes, .len = sizeof(bytes) };
	uint64_t u;
	int64_t i;

	cr_assert(leb128_unsigned(&s, &u));
	cr_assert_eq(u, 624485);
	cr_assert(leb128_signed(&s, &i));
	cr_assert_eq(i, -624485);
	cr_assert(leb128_signed(&s, &i));
	cr_assert_eq(i, -1);
	cr_assert_not(leb128_unsigned(&s, &u));
}

Test(expr, constants_are_folded_and_the_stack_is_moved_about)
{
	struct expr e;

	cr_assert_eq(PARSE(&e, DW_OP_breg7, 0, DW_OP_lit3, DW_OP_lit8, DW_OP_mul, DW_OP_plus), 0);
	cr_assert_eq(e.kind, EXPR_REG);
	cr_assert_eq(e.off, 24);
	cr_assert_eq(PARSE(&e, DW_OP_lit1, DW_OP_lit4, DW_OP_shl, DW_OP_dup, DW_OP_drop,
			   DW_OP_breg6, 8, DW_OP_swap, DW_OP_minus),
		     0);
	cr_assert_eq(e.kind, EXPR_REG);
	cr_assert_eq(e.reg, 6);
	cr_assert_eq(e.off, -8);
	cr_assert_eq(PARSE(&e, DW_OP_breg7, 8, DW_OP_deref_size, 8), 0);
	cr_assert_eq(e.kind, EXPR_DEREF);
	cr_assert_eq(PARSE(&e, DW_OP_breg7, 8, DW_OP_deref_size, 4), EXPR_UNSUPPORTED);
	cr_assert_eq(PARSE(&e, DW_OP_breg7, 8, DW_OP_lit8, DW_OP_mul), EXPR_UNSUPPORTED);
	cr_assert_eq(
		PARSE(&e, DW_OP_lit1, DW_OP_const1u, 40, DW_OP_shl, DW_OP_breg7, 0, DW_OP_plus),
		EXPR_UNSUPPORTED);
	cr_assert_eq(PARSE(&e, DW_OP_drop), EXPR_MALFORMED);
	cr_assert_eq(PARSE(&e, DW_OP_lit1, DW_OP_swap), EXPR_MALFORMED);
	cr_assert_eq(PARSE(&e, DW_OP_lit1, DW_OP_over), EXPR_MALFORMED);
}

Test(expr, of_a_register_begins_with_the_cfa)
{
	static const uint8_t bytes[] = { DW_OP_lit16, DW_OP_minus };
	struct expr e;

	cr_assert_eq(expr_parse((struct span){ .data = bytes, .len = 2 }, true, &e), 0);
	cr_assert_eq(e.kind, EXPR_CFA);
	cr_assert_eq(e.off, -16);
	cr_assert_eq(expr_parse((struct span){ .data = bytes, .len = 2 }, false, &e),
		     EXPR_MALFORMED);
}
