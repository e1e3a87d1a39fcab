/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Unwind rules and rows: prof-deltas makes them from .eh_frame, prof-bpf stores them in BPF maps,
 * and the walker applies them.
 *
 * A row says that one rule holds from its offset until the next row. Offsets are file offsets (pc -
 * mapping start + mapping offset). A rule leads from a frame's registers to its caller's. It gives
 * the canonical frame address (CFA), the return address (RA) and the caller's frame pointer (DWARF
 * 5, section 6.4). Fixed width, no padding; the bytes are the same on the bus and in the map.
 */
#ifndef BPF_UNWIND_H
#define BPF_UNWIND_H

#ifndef __bpf__
#include <assert.h>
#include <stdint.h>
#define UW_U8 uint8_t
#define UW_U16 uint16_t
#define UW_U32 uint32_t
#define UW_U64 uint64_t
#define UW_S32 int32_t
#define UW_S16 int16_t
#else
#define UW_U8 __u8
#define UW_U16 __u16
#define UW_U32 __u32
#define UW_U64 __u64
#define UW_S32 __s32
#define UW_S16 __s16
#endif

/* Registers by their DWARF numbers on x86-64 (System V psABI, figure 3.36): 6 is RBP, 7 is RSP, 16
 * the return address column. */
enum unwind_reg {
	UNWIND_REG_RBX = 3,
	UNWIND_REG_R12 = 12,
	UNWIND_REG_RBP = 6,
	UNWIND_REG_RSP = 7,
	UNWIND_REG_MAX = 16, /* a rule may name registers below this, up to r15 */
};

enum unwind_cfa {
	UNWIND_CFA_END = 0, /* no rule from here on: a gap, or a rule that cannot be expressed */
	/* reg + cfa_off, or with an index reg + (index_reg << shift) + cfa_off */
	UNWIND_CFA_REG = 1,
	/* A load: *(A) + cfa_add, where A = reg + cfa_off, or with an index (enum unwind_index) A =
	 * reg + (index_reg << shift) + cfa_off. The loaded CFA may lie on another stack. */
	UNWIND_CFA_DEREF = 2,
	UNWIND_CFA_PLT = 3, /* rsp + 8 + ((pc & 15) >= cfa_off ? 8 : 0): a lazy PLT slot */
	/*
	 * Go code that switches stacks (systemstack, morestack; cgocallback). The g of the stack
	 * that it left tells where that stack ended.
	 *
	 * With T the thread's TLS base, g = *(T + cfa_add), m = *(g + 8 * rbp_reg), other = *(m + 8
	 * * cfa_reg): the CFA is *(other + 8 * ra_reg) + cfa_off. With UNWIND_RA_CFA_OFF, the
	 * return address is at other + rbp_off, since a stack that is being moved lacks it. With
	 * UNWIND_TLS_WORD, g = *(T + the word at file offset cfa_add).
	 */
	UNWIND_CFA_GO_SWITCH = 4,
	/*
	 * asmcgocall, on its way into C. With g = *(rsp + 8 * cfa_reg), the CFA is *(g + 8) - *(rsp
	 * + cfa_add) + cfa_off: the goroutine's stack.hi minus the depth that the stack had at the
	 * switch.
	 */
	UNWIND_CFA_GO_DEPTH = 5,
	UNWIND_CFA_DEREF_TWICE = 6, /* *(*(A) + cfa_mid) + cfa_add, with A as in UNWIND_CFA_DEREF */
	/*
	 * Code that calls into its own middle (FFmpeg's FFTs), so that an instruction runs in the
	 * outermost frame or in an inner one. The outermost frame saved RSP in reg and aligned it;
	 * no inner frame changes reg. In the outermost frame RSP is (reg & -1 << index_reg) -
	 * cfa_add, and the CFA is reg + cfa_off. Inner frames lie lower; there the CFA is rsp +
	 * cfa_mid.
	 */
	UNWIND_CFA_NEST = 7,
	/* reg + *(A) + cfa_add, with A as in UNWIND_CFA_DEREF. Code that aligns RSP by subtracting
	 * a number saves that number (qhasm's code, as in libsodium). */
	UNWIND_CFA_SUM = 8,
};

enum unwind_rbp {
	UNWIND_RBP_SAME = 0,
	UNWIND_RBP_CFA = 1, /* saved at cfa + rbp_off */
	UNWIND_RBP_UNDEFINED = 2,
	/* Saved at reg 'rbp_reg' + rbp_off (expressions of stack realignment). */
	UNWIND_RBP_DEREF_REG = 3,
};

enum unwind_ra {
	UNWIND_RA_CFA = 0,	 /* saved at cfa - 8 */
	UNWIND_RA_UNDEFINED = 1, /* the stack ends here */
	UNWIND_RA_REG = 2,	 /* in register ra_reg (vfork keeps it in RDI) */
	/* Saved at cfa + cfa_add (with UNWIND_CFA_REG; see UNWIND_CFA_GO_SWITCH). */
	UNWIND_RA_CFA_OFF = 3,
};

enum unwind_flags {
	/* All registers are in the ucontext at rsp; the pc is not a return address. */
	UNWIND_SIGNAL_FRAME = 1,
	UNWIND_DERIVED = 2, /* not from CFI, but from the code or from Go's tables */
	/* In a shared library: its GOT holds the offset from the TLS base. cfa_add is a file offset
	 * relative to the mapping of pc, although the word is in another segment. */
	UNWIND_TLS_WORD = 4,
	/* Derived by following code that no table covers. The rule can be used, but it does not
	 * prove that the frame is right. */
	UNWIND_GUESSED = 8,
	/* `rbx` describes R12 instead. This holds for all CFI rows of a file whose own assembly
	 * keeps a CFA in R12 (racecall of Go's race detector). */
	UNWIND_R12 = 16,
	/* The function was not called: its return address is the interrupted pc (Go's asyncPreempt,
	 * whose call a signal handler puts on the stack). */
	UNWIND_INTERRUPTS = 32,
};

/* unwind_rule.index: 0, or 1 + the shift of the index register. */
enum unwind_index {
	UNWIND_INDEX_MAX = 4,
};

/* Why a range has UNWIND_CFA_END. cfa_add of the rule holds this reason, so that a truncated stack
 * can report it. */
enum unwind_end {
	UNWIND_END_GAP = 0,	    /* no FDE covers it */
	UNWIND_END_UNSUPPORTED = 1, /* an FDE covers it, but no rule can express it */
};

struct unwind_rule {
	UW_U8 cfa;     /* enum unwind_cfa */
	UW_U8 cfa_reg; /* enum unwind_reg, 0..15 */
	UW_U8 rbp;     /* enum unwind_rbp */
	UW_U8 ra;      /* enum unwind_ra */
	UW_U8 flags;   /* enum unwind_flags */
	UW_U8 ra_reg;
	UW_U8 rbp_reg;
	UW_U8 rbx;	/* the caller's RBX is saved at cfa - 8 * rbx; 0: not saved */
	UW_S32 cfa_off; /* bytes */
	UW_S32 cfa_add; /* bytes */
	UW_S32 rbp_off; /* bytes */
	UW_S16 cfa_mid; /* bytes */
	UW_U8 index_reg;
	UW_U8 index; /* enum unwind_index */
};

/* One row on the bus: its offset from rows_begin.base, and the rule's number in this answer. In a
 * rule, fields that its kinds do not use are zero, so that equal rules have equal bytes. */
struct unwind_row_wire {
	UW_U32 offset;
	UW_U32 rule;
};

#ifndef __bpf__
static_assert(sizeof(struct unwind_rule) == 24, "packed by hand");
static_assert(sizeof(struct unwind_row_wire) == 8, "packed by hand");
#endif

/* Returns how many loads from memory lead to the CFA. */
static inline int unwind_loads(const struct unwind_rule *r)
{
	return r->cfa == UNWIND_CFA_DEREF || r->cfa == UNWIND_CFA_SUM ? 1
	       : r->cfa == UNWIND_CFA_DEREF_TWICE		      ? 2
								      : 0;
}

#ifndef __bpf__
/* Whether the walker can apply the rule. The tables accept no other rules. */
static inline int unwind_rule_valid(const struct unwind_rule *r)
{
	if (r->cfa > UNWIND_CFA_SUM || r->rbp > UNWIND_RBP_DEREF_REG || r->ra > UNWIND_RA_CFA_OFF ||
	    r->flags & ~(UNWIND_SIGNAL_FRAME | UNWIND_DERIVED | UNWIND_TLS_WORD | UNWIND_GUESSED |
			 UNWIND_R12 | UNWIND_INTERRUPTS) ||
	    r->index > UNWIND_INDEX_MAX || r->index_reg >= UNWIND_REG_MAX)
		return 0;
	if (r->flags & UNWIND_TLS_WORD && r->cfa != UNWIND_CFA_GO_SWITCH)
		return 0;
	if (r->index && !unwind_loads(r) && r->cfa != UNWIND_CFA_REG)
		return 0;
	if (r->index_reg && !r->index && r->cfa != UNWIND_CFA_NEST)
		return 0;
	if (r->cfa_mid && r->cfa != UNWIND_CFA_DEREF_TWICE && r->cfa != UNWIND_CFA_NEST)
		return 0;
	if (r->ra == UNWIND_RA_CFA_OFF && r->cfa == UNWIND_CFA_GO_SWITCH)
		return r->rbp == UNWIND_RBP_SAME || r->rbp == UNWIND_RBP_UNDEFINED;
	if (r->ra == UNWIND_RA_CFA_OFF && r->cfa != UNWIND_CFA_REG)
		return 0;
	/* These kinds use the register fields for offsets. */
	if (r->cfa == UNWIND_CFA_GO_SWITCH || r->cfa == UNWIND_CFA_GO_DEPTH)
		return r->ra == UNWIND_RA_CFA && r->rbp != UNWIND_RBP_DEREF_REG;
	return r->cfa_reg < UNWIND_REG_MAX && r->ra_reg < UNWIND_REG_MAX &&
	       r->rbp_reg < UNWIND_REG_MAX;
}
#endif

/* Limits that both sides of the bus obey. */
#define UNWIND_MAX_SPAN (1u << 30)  /* bytes of text of one file */
#define UNWIND_MAX_ROWS (48u << 20) /* rows of one file */
#define UNWIND_MAX_RULES (1u << 16) /* distinct rules of one file, and of all files */

#endif
