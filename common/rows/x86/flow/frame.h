/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A frame holds the known facts about registers and stack words at one instruction of a function.
 * The unwind rule follows from it. Values are symbolic: addresses in the frame, the caller's
 * registers, the return address.
 *
 * Pure: uses only the caller's memory.
 */
#ifndef COMMON_ROWS_X86_FLOW_FRAME_H
#define COMMON_ROWS_X86_FLOW_FRAME_H

#include <stdbool.h>
#include <stdint.h>
#include "bpf/unwind.h"
#include "common/rows/x86/flow/sym.h"
#include "common/rows/x86/insn.h"

#define FRAME_SLOTS 12
#define FRAME_CALL_CLOBBERS 0x0fc7 /* rax rcx rdx rsi rdi r8-r11 */

/* Which side runs an instruction, in a function that creates a thread or a process. */
enum frame_life {
	FRAME_LIFE_PLAIN,
	FRAME_LIFE_CLONE, /* after the system call, before the code tests its result */
	FRAME_LIFE_CHILD, /* in the child, whose code has no caller */
	FRAME_LIFE_MIXED,
};

/* A nest: code that calls into its own middle, after RSP was aligned. Then its frame is either the
 * function's own (the outermost), or an inner one whose return address lies below. */
enum frame_nest {
	FRAME_NEST_NONE,
	FRAME_NEST_ONE,
	FRAME_NEST_LOST, /* the code is in a nest, and no more is known */
};

struct frame_slot {
	uint64_t place; /* a CFA or ALIGNED place, with an offset */
	uint64_t value;
};

struct frame {
	uint64_t reg[16]; /* by enum insn_reg */
	struct frame_slot slot[FRAME_SLOTS];
	uint16_t keeps;	     /* bit mask: registers that calls preserve while they hold places */
	uint8_t slots, life; /* enum frame_life */
	uint8_t align;	  /* ALIGNED places count from `aligned` with this many low bits cleared; 0:
		        * unknown */
	uint8_t nest;	  /* enum frame_nest */
	uint64_t aligned; /* a CFA place, with an offset */
	uint64_t nest_at; /* the RSP at calls that lead into the nest */
	uint8_t tracked;  /* enum insn_reg: the register that rules describe besides RSP and RBP */
};

/* Sets the state of a function's first instruction. tracked: RBX, or 12 for R12 (enum insn_reg). */
void frame_enter(struct frame *f, unsigned tracked);
/* Returns the word stored at a place, or UNKNOWN. */
uint64_t frame_load(const struct frame *f, uint64_t place);
/* Applies one instruction except for its branch. Returns false if it moves RSP above the return
 * address. */
bool frame_change(struct frame *f, const struct insn *d);
static inline bool frame_apply(struct frame *f, const struct insn *d)
{
	return (d->op == INSN_OP_NONE && !d->clobbers) || frame_change(f, d);
}
/* Records that RSP equals a register. */
void frame_equal(struct frame *f, unsigned reg);
/* Whether frame_apply may change something that affects rules. */
bool frame_matters(const struct frame *f, const struct insn *d);
/* Keeps in `to` only what holds in both frames. Returns true if `to` lost something. */
bool frame_merge(struct frame *to, const struct frame *from);
/* Enters a nest: applied at a place that the function itself calls. Returns false if the frame does
 * not allow a nest. */
bool frame_enter_nest(struct frame *f);
/* Whether RSP is so low that a call into the nest cannot make an inner frame look like the
 * outermost. */
bool frame_nests_deeper(const struct frame *f);
/* Whether a return at this point leaves an inner frame of the nest. */
bool frame_leaves_nest(const struct frame *f);
/* Whether the CFA is known. */
bool frame_has_cfa(const struct frame *f);
/* Makes the rule. Returns false if there is none. */
bool frame_rule(const struct frame *f, struct unwind_rule *ret);

#endif
