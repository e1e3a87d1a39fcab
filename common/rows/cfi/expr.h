/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF expressions of call frame information, as far as a rule can hold what they say: evaluated
 * not over values but over the forms that rules have, so that any way to write them is understood.
 *
 * Source: DWARF 5, sections 2.5 and 6.4.2. Pure; reads no further than the span, and takes each
 * byte once.
 */
#ifndef PROFPIPE_EXPR_H
#define PROFPIPE_EXPR_H

#include <stdint.h>
#include "common/base/span.h"

enum expr_kind {
	EXPR_CONST,	  /* off */
	EXPR_REG,	  /* reg + off, with an index A = reg + (index_reg << (index - 1)) + off */
	EXPR_CFA,	  /* CFA + off */
	EXPR_DEREF,	  /* *(A) + add */
	EXPR_DEREF_TWICE, /* *(*(A) + mid) + add */
	EXPR_INDEX,	  /* an index alone, + off: never what an expression comes to */
	EXPR_PLT, /* rsp + 8 + ((rip & 15) >= off ? 8 : 0): what linkers write for lazy PLT slots */
};
struct expr {
	uint8_t kind, reg;
	uint8_t index, index_reg; /* enum unwind_index */
	int16_t mid;		  /* bytes, like these */
	int32_t off, add;
};

enum expr_verdict {
	EXPR_UNSUPPORTED = 1, /* well-formed as far as read, but of no form above */
	EXPR_MALFORMED = 2,   /* cut short, or it takes from an empty stack */
};
/* With `cfa` the CFA lies on the stack at the beginning, as in the rules of registers. 0 with *ret
 * set, or enum expr_verdict. Registers are at most
 * UNWIND_REG_MAX - 1. */
int expr_parse(struct span bytes, bool cfa, struct expr *ret);

#endif
