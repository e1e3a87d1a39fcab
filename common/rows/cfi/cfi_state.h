/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What call frame instructions build up: where the CFA is at one location, and where the caller's
 * RSP, RBP, RBX and return address are; and the unwind rule that it makes.
 *
 * Source: DWARF 5, section 6.4.1; System V psABI for x86-64, figure 3.36 (register numbers). Pure.
 */
#ifndef PROFPIPE_CFI_STATE_H
#define PROFPIPE_CFI_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpf/unwind.h"
#include "common/base/span.h"

/* Where the caller's value of a register is. */
enum cfi_value {
	VALUE_UNSET, /* no rule: the same; of RSP, the CFA; of the return address column, nowhere */
	VALUE_SAME,
	VALUE_UNDEFINED,
	VALUE_AT_CFA, /* saved at cfa + off */
	VALUE_CFA,    /* cfa + off */
	VALUE_REG,    /* reg + off */
	VALUE_AT_REG, /* saved at reg + off */
	VALUE_BAD,
};

/* What of a state is not as its rule's bytes say. In the place of the rule's flags, so that what is
 * odd is never taken for a rule that is known. */
enum cfi_odd {
	ODD_CFA_EXPRESSION = 1, /* one that no rule can hold */
	ODD_CFA_REGISTER = 2,	/* the CFA's register has no number in a rule, or is not known */
	ODD_CFA_OFFSET = 4,	/* likewise the CFA's offset */
	ODD_RBP = 8,		/* a rule that cannot be held */
	ODD_RA = 16,		/* not at cfa - 8, nor undefined, nor in a register: see ra */
	ODD_SP = 32,		/* the caller's RSP is not the CFA: see sp */
	ODD_LOADS = 64,		/* what a load adds is not zero: see cfa_add, mid and index */
};

/*
 * The rules in force while instructions build them up. What most are is kept as the bytes of the
 * rule that it makes (struct unwind_rule), so that it can be looked up as it is; what a rule cannot
 * say, or only after a conversion, is marked in the place of its flags and kept beside.
 */
struct cfi_state {
	uint64_t head;	/* cfa, cfa_reg, rbp, ra, enum cfi_odd, ra_reg, rbp_reg, rbx */
	uint64_t where; /* cfa_off | rbp_off << 32 */
	int32_t cfa_add, ra_off, sp_off; /* bytes */
	int16_t cfa_mid;
	uint8_t index, index_reg;
	int32_t kept_off;   /* of the register and offset that an expression has replaced */
	uint8_t ra, ra_reg; /* enum cfi_value */
	uint8_t sp, sp_reg;
};

/* Fields of head, as the interpreter sets them. */
#define HEAD_BYTE(field, value) ((uint64_t)(value) << offsetof(struct unwind_rule, field) * 8)
#define ODD(bits) HEAD_BYTE(flags, bits)

static inline uint64_t head_set(uint64_t head, uint64_t mask, uint64_t value)
{
	return (head & ~mask) | value;
}

#define CFA_MASK (HEAD_BYTE(cfa, 0xff) | HEAD_BYTE(cfa_reg, 0xff))
#define RBP_MASK (HEAD_BYTE(rbp, 0xff) | HEAD_BYTE(rbp_reg, 0xff))
#define RA_MASK (HEAD_BYTE(ra, 0xff) | HEAD_BYTE(ra_reg, 0xff))
#define RBX_MASK HEAD_BYTE(rbx, 0xff)
#define ODD_CFA ODD(ODD_CFA_EXPRESSION | ODD_CFA_REGISTER | ODD_CFA_OFFSET | ODD_LOADS)

/* where, with another offset of the CFA, or of RBP. */
static inline uint64_t where_cfa(uint64_t where, uint32_t off)
{
	return (where & ~(uint64_t)UINT32_MAX) | off;
}

static inline uint64_t where_rbp(uint64_t where, uint32_t off)
{
	return (uint32_t)where | (uint64_t)off << 32;
}

/* value, if it fits. */
static inline bool cfi_s32(int64_t value, int32_t *ret)
{
	*ret = (int32_t)value;
	return value == *ret;
}

/* Before a CIE's instructions: nothing is known. */
void cfi_state_init(struct cfi_state *s);
/* DW_CFA_def_cfa and its kin. */
void cfi_state_cfa_register(struct cfi_state *s, uint64_t reg);
void cfi_state_cfa_offset(struct cfi_state *s, int64_t off);
/* False: no expression that is well-formed. */
bool cfi_state_cfa_expression(struct cfi_state *s, struct span block);
/* A register's new rule. ra_column: which register is the return address. Of a register other than
 * those that matter nothing is kept. */
void cfi_state_set(struct cfi_state *s, uint64_t ra_column, uint64_t reg, enum cfi_value kind,
		   uint64_t in, int64_t off);
/* DW_CFA_restore: as it was in `initial`. */
void cfi_state_restore(struct cfi_state *s, uint64_t ra_column, uint64_t reg,
		       const struct cfi_state *initial);

/* The rule of a state; signal: of the kernel's frame of a signal. False: it can only be `end`. What
 * the rule does not say is counted in skipped[] (enum rows_skip). */
bool cfi_state_rule(const struct cfi_state *s, uint64_t ra_column, bool signal, uint64_t *skipped,
		    struct unwind_rule *ret);

#endif
