/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame as the code of its function makes it: what is known at one instruction of the registers
 * and of words on the stack, with symbols for values (addresses in the frame, what the caller had
 * in a register, the return address), and the unwind rule that follows from it.
 *
 * Pure: no memory but the caller's.
 */
#ifndef PROFPIPE_FRAME_H
#define PROFPIPE_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include "bpf/unwind.h"
#include "common/rows/x86/insn.h"

#define FRAME_SLOTS 12
#define FRAME_SOME_LABEL (-1)
#define FRAME_CALL_CLOBBERS 0x0fc7 /* rax rcx rdx rsi rdi r8-r11 */

enum symbol {
	SYM_UNKNOWN,
	SYM_CFA,     /* the CFA + off */
	SYM_ALIGNED, /* where RSP was when it was last set to what is not known, + off */
	SYM_CALLER,  /* what register `off` held on entry */
	SYM_RETURN,  /* the return address */
	SYM_CONST,   /* off */
	SYM_SIZE,    /* what added to ALIGNED's zero gives the CFA + off */
	SYM_LABEL,   /* the address of code: off in what the flow looks at; FRAME_SOME_LABEL */
};
/* kind << 32 | off: compared as a whole. */
#define SYM(kind, off) ((uint64_t)(SYM_##kind) << 32 | (uint32_t)(off))

static inline enum symbol sym_kind(uint64_t v)
{
	return (enum symbol)(v >> 32);
}

static inline int32_t sym_off(uint64_t v)
{
	return (int32_t)(uint32_t)v;
}

/* Who runs this, where the function makes a thread or a process of its own. */
enum life {
	LIFE_PLAIN,
	LIFE_CLONE, /* behind the system call, before it is told who is who */
	LIFE_CHILD, /* nothing called this */
	LIFE_MIXED,
};

/* Code that calls into its own middle, behind where RSP was aligned: what runs there is the
 * function's frame, or an inner one, whose return address lies below. */
enum nest {
	NEST_NONE,
	NEST_ONE,
	NEST_LOST, /* it is in one, and nothing more is known */
};

struct frame_slot {
	uint64_t place; /* CFA or ALIGNED and offset */
	uint64_t value;
};

struct frame {
	uint64_t reg[16]; /* by enum gpr */
	struct frame_slot slot[FRAME_SLOTS];
	uint16_t keeps;	     /* registers that calls leave alone while they hold places */
	uint8_t slots, life; /* enum life */
	uint8_t align;	     /* ALIGNED's zero is `aligned` with so many bits cleared; 0: unknown */
	uint8_t nest;	     /* enum nest */
	uint64_t aligned;    /* CFA and offset */
	uint64_t nest_at;    /* RSP where calls lead into the nest */
	uint8_t kept;	     /* enum gpr: the register that rules speak of besides RSP and RBP */
};

/* As at the first instruction of a function. kept: RBX or 12, for R12 (enum gpr). */
void frame_enter(struct frame *f, unsigned kept);
/* The word at a place; UNKNOWN. */
uint64_t frame_load(const struct frame *f, uint64_t place);
/* Applies one instruction, but for where it goes on. False: it takes RSP above the return address.
 */
bool frame_change(struct frame *f, const struct decoded *d);
static inline bool frame_apply(struct frame *f, const struct decoded *d)
{
	return (d->op == OP_NONE && !d->clobbers) || frame_change(f, d);
}
/* RSP is known to be equal to a register. */
void frame_equal(struct frame *f, unsigned reg);
/* Whether frame_apply may change what rules are made of. */
bool frame_matters(const struct frame *f, const struct decoded *d);
/* Keeps what holds in both. True where that is less than held in `to`. */
bool frame_merge(struct frame *to, const struct frame *from);
/* At a place that calls of the function's own lead to. False: it makes no nest. */
bool frame_enter_nest(struct frame *f);
/* Whether RSP is where a call into the nest cannot make an inner frame look like the outermost. */
bool frame_nests_deeper(const struct frame *f);
/* Whether a return is that of an inner frame of the nest. */
bool frame_leaves_nest(const struct frame *f);
/* Whether the CFA can be told. */
bool frame_has_cfa(const struct frame *f);
/* False: there is no rule. */
bool frame_rule(const struct frame *f, struct unwind_rule *ret);

#endif
