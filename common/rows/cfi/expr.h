/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF expressions of call frame information, as far as a rule can hold them. The evaluation is
 * symbolic: its results are the forms that rules have, not values. So it recognizes a form no
 * matter how the expression is written.
 *
 * Source: DWARF 5, sections 2.5 and 6.4.2. Pure. Reads only the span, and each byte once.
 */
#ifndef COMMON_ROWS_CFI_EXPR_H
#define COMMON_ROWS_CFI_EXPR_H

#include <stdint.h>
#include "common/base/bytes/span.h"

enum expr_kind {
	EXPR_CONST,	  /* off */
	EXPR_REG,	  /* reg + off, with an index A = reg + (index_reg << (index - 1)) + off */
	EXPR_CFA,	  /* CFA + off */
	EXPR_DEREF,	  /* *(A) + add */
	EXPR_DEREF_TWICE, /* *(*(A) + mid) + add */
	EXPR_INDEX,	  /* index + off, without a base: only an intermediate result */
	EXPR_PLT, /* rsp + 8 + ((rip & 15) >= off ? 8 : 0): linkers write this for lazy PLT slots */
};
struct expr {
	uint8_t kind, reg;
	uint8_t index, index_reg; /* enum unwind_index */
	int16_t mid;		  /* bytes; also off and add */
	int32_t off, add;
};

enum expr_verdict {
	EXPR_UNSUPPORTED = 1, /* well-formed so far, but not one of the forms above */
	EXPR_MALFORMED = 2,   /* cut short, or pops from an empty stack */
};
/* Parses an expression. With `cfa`, the stack begins with the CFA, as for the rules of registers.
 * Returns 0 and sets *ret, or returns enum expr_verdict. Registers are below UNWIND_REG_MAX. */
int expr_parse(struct span bytes, bool cfa, struct expr *ret);

#endif
