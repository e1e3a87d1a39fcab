/* SPDX-License-Identifier: Apache-2.0 */
/* A symbolic value of Go's assembly (goasm.h), as a register or a stack word holds it. Pure. */
#ifndef COMMON_ROWS_X86_GO_GOVALUE_H
#define COMMON_ROWS_X86_GO_GOVALUE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define GOVALUE_CFA 0 /* the base of addresses in the function's own frame */

/* Addresses have a base: 0 is the CFA; another number is a stack that RSP was set to. */
enum govalue_kind {
	GOVALUE_UNKNOWN,
	GOVALUE_ADDRESS,  /* base + off[0] */
	GOVALUE_CALLERS,  /* the value of register off[0] on entry; or the return address */
	GOVALUE_CONSTANT, /* off[0] */
	GOVALUE_WORD,	  /* the word at file offset off[0], in the GOT: it does not change */
	GOVALUE_CHAIN,	  /* n loads, the first from *(TLS base + off[0]); by_word: off[0] is that
			   * of a GOVALUE_WORD */
	GOVALUE_LOADED,	  /* the word at base + off[0], on another stack */
	GOVALUE_HIGH,	  /* the second word (stack.hi) of what GOVALUE_LOADED points to */
	GOVALUE_LEFT,	  /* GOVALUE_HIGH minus the word at base + off[1] */
};
struct govalue {
	uint8_t kind, n; /* enum govalue_kind */
	uint16_t by_word;
	int32_t base, off[4];
};

static inline struct govalue govalue_address(int32_t base, int32_t off)
{
	return (struct govalue){ .kind = GOVALUE_ADDRESS, .base = base, .off = { off } };
}

static inline bool govalue_same(const struct govalue *x, const struct govalue *y)
{
	return memcmp(x, y, sizeof(*x)) == 0;
}

static inline bool govalue_in_frame(const struct govalue *v)
{
	return v->kind == GOVALUE_ADDRESS && v->base == GOVALUE_CFA;
}

/* Adds. Returns false near an overflow: hostile code can contain any number. */
bool govalue_plus(int32_t x, int64_t y, int32_t *ret);

#endif
