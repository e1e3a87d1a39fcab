/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state of call frame instructions at one location, and the unwind rule made from it. The state
 * tells where the CFA and the caller's RSP, RBP, RBX and return address are.
 *
 * Source: DWARF 5, section 6.4.1; System V psABI for x86-64, figure 3.36 (register numbers). Pure.
 */
#ifndef COMMON_ROWS_CFI_CFI_STATE_H
#define COMMON_ROWS_CFI_CFI_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpf/unwind.h"
#include "common/base/bytes/span.h"

/* The place of the caller's value of a register. */
enum cfi_value {
	CFI_VALUE_UNSET, /* no rule: unchanged; for RSP: the CFA; for the return address column:
			  * nowhere */
	CFI_VALUE_SAME,
	CFI_VALUE_UNDEFINED,
	CFI_VALUE_AT_CFA, /* saved at cfa + off */
	CFI_VALUE_CFA,	  /* cfa + off */
	CFI_VALUE_REG,	  /* reg + off */
	CFI_VALUE_AT_REG, /* saved at reg + off */
	CFI_VALUE_BAD,
};

/* The parts of a state that the bytes of its rule do not describe. These bits are stored in place
 * of the rule's flags, so such a state never compares equal to a known rule. */
enum cfi_odd {
	CFI_ODD_CFA_EXPRESSION = 1, /* an expression that no rule can hold */
	CFI_ODD_CFA_REGISTER = 2,   /* the CFA's register is unknown, or a rule cannot name it */
	CFI_ODD_CFA_OFFSET = 4,	    /* the CFA's offset is unknown, or a rule cannot hold it */
	CFI_ODD_RBP = 8,	    /* a rule for RBP that cannot be expressed */
	CFI_ODD_RA = 16,	    /* not at cfa - 8, not undefined, not in a register: see `ra` */
	CFI_ODD_SP = 32,	    /* the caller's RSP is not the CFA: see `sp` */
	CFI_ODD_LOADS = 64,	    /* something is added after a load: see cfa_add, mid and
				     * index */
};

/*
 * The rules in force at one location. Most are kept as the bytes of the rule they make (struct
 * unwind_rule), so that the rule can be looked up directly. The other fields hold what a rule
 * cannot express, or only after conversion. enum cfi_odd marks these cases.
 */
struct cfi_state {
	uint64_t head;	/* cfa, cfa_reg, rbp, ra, enum cfi_odd, ra_reg, rbp_reg, rbx */
	uint64_t where; /* cfa_off | rbp_off << 32 */
	int32_t cfa_add, ra_off, sp_off; /* bytes */
	int16_t cfa_mid;
	uint8_t index, index_reg;
	int32_t kept_off;   /* the register and offset that an expression replaced: the offset */
	uint8_t ra, ra_reg; /* enum cfi_value */
	uint8_t sp, sp_reg;
};

/* The fields of head, as the interpreter sets them. */
#define CFI_HEAD_BYTE(field, value) ((uint64_t)(value) << offsetof(struct unwind_rule, field) * 8)
#define CFI_ODD(bits) CFI_HEAD_BYTE(flags, bits)

static inline uint64_t cfi_head_set(uint64_t head, uint64_t mask, uint64_t value)
{
	return (head & ~mask) | value;
}

#define CFI_CFA_MASK (CFI_HEAD_BYTE(cfa, 0xff) | CFI_HEAD_BYTE(cfa_reg, 0xff))
#define CFI_RBP_MASK (CFI_HEAD_BYTE(rbp, 0xff) | CFI_HEAD_BYTE(rbp_reg, 0xff))
#define CFI_RA_MASK (CFI_HEAD_BYTE(ra, 0xff) | CFI_HEAD_BYTE(ra_reg, 0xff))
#define CFI_RBX_MASK CFI_HEAD_BYTE(rbx, 0xff)
#define CFI_ODD_CFA \
	CFI_ODD(CFI_ODD_CFA_EXPRESSION | CFI_ODD_CFA_REGISTER | CFI_ODD_CFA_OFFSET | CFI_ODD_LOADS)

/* Returns `where` with another offset of the CFA, or of RBP. */
static inline uint64_t cfi_where_cfa(uint64_t where, uint32_t off)
{
	return (where & ~(uint64_t)UINT32_MAX) | off;
}

static inline uint64_t cfi_where_rbp(uint64_t where, uint32_t off)
{
	return (uint32_t)where | (uint64_t)off << 32;
}

/* Stores value. Returns false if it does not fit. */
static inline bool cfi_s32(int64_t value, int32_t *ret)
{
	*ret = (int32_t)value;
	return value == *ret;
}

/* The state before a CIE's instructions: nothing is known. */
void cfi_state_init(struct cfi_state *s);
/* DW_CFA_def_cfa and its variants. */
void cfi_state_cfa_register(struct cfi_state *s, uint64_t reg);
void cfi_state_cfa_offset(struct cfi_state *s, int64_t off);
/* Returns false if the expression is malformed. */
bool cfi_state_cfa_expression(struct cfi_state *s, struct span block);
/* Sets a register's rule. ra_column is the register that holds the return address. Ignores
 * registers that do not affect rows. */
void cfi_state_set(struct cfi_state *s, uint64_t ra_column, uint64_t reg, enum cfi_value kind,
		   uint64_t in, int64_t off);
/* DW_CFA_restore: sets the register's rule from `initial`. */
void cfi_state_restore(struct cfi_state *s, uint64_t ra_column, uint64_t reg,
		       const struct cfi_state *initial);

/* Makes the rule of a state. `signal`: the frame is the kernel's signal frame. Returns false if the
 * rule can only be `end`. Counts in skipped[] (enum rows_skip) what the rule cannot express. */
bool cfi_state_rule(const struct cfi_state *s, uint64_t ra_column, bool signal, uint64_t *skipped,
		    struct unwind_rule *ret);

#endif
