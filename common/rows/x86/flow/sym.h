/* SPDX-License-Identifier: Apache-2.0 */
/* The symbolic value of a register or a stack word, as a frame knows it (frame.h). */
#ifndef COMMON_ROWS_X86_FLOW_SYM_H
#define COMMON_ROWS_X86_FLOW_SYM_H

#include <stdint.h>

#define SYM_SOME_LABEL (-1)

enum sym_kind {
	SYM_UNKNOWN,
	SYM_CFA,     /* CFA + off */
	SYM_ALIGNED, /* base + off; the base is the RSP when it was last set to an unknown value */
	SYM_CALLER,  /* the value of register `off` on entry */
	SYM_RETURN,  /* the return address */
	SYM_CONST,   /* off */
	SYM_SIZE,    /* the number that, added to the base of ALIGNED places, gives CFA + off */
	SYM_LABEL,   /* an address of code: offset `off`, or SYM_SOME_LABEL */
};
/* kind << 32 | off, so that one comparison compares both. */
#define SYM(kind, off) ((uint64_t)(SYM_##kind) << 32 | (uint32_t)(off))

static inline enum sym_kind sym_kind(uint64_t v)
{
	return (enum sym_kind)(v >> 32);
}

static inline int32_t sym_off(uint64_t v)
{
	return (int32_t)(uint32_t)v;
}

#endif
