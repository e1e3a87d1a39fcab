/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/cfi/cfi_state.h"

#include <assert.h>
#include <string.h>
#include "common/rows/cfi/expr.h"
#include "common/rows/rows.h"

/* Offsets from RSP of the interrupted RSP and RIP, after a handler has returned to the restorer and
 * thereby popped its return address. Source: struct rt_sigframe of
 * arch/x86/include/asm/sigframe.h. */
enum { SIGNAL_RSP = 160, SIGNAL_RIP = 168 };

void cfi_state_init(struct cfi_state *s)
{
	*s = (struct cfi_state){ .head = CFI_HEAD_BYTE(cfa, UNWIND_CFA_REG) |
					 CFI_ODD(CFI_ODD_CFA_REGISTER | CFI_ODD_CFA_OFFSET |
						 CFI_ODD_RA) };
}

/* --- the CFA --- */

/* Makes the CFA a register and an offset again, after an expression. Both keep their old values
 * until they are set. */
static void cfa_plain(struct cfi_state *s)
{
	if ((s->head & 0xff) == UNWIND_CFA_REG)
		return;
	s->head = cfi_head_set(s->head, CFI_CFA_MASK, CFI_HEAD_BYTE(cfa, UNWIND_CFA_REG));
	s->where = cfi_where_cfa(s->where, (uint32_t)s->kept_off);
	s->head &= ~CFI_ODD(CFI_ODD_CFA_EXPRESSION | CFI_ODD_LOADS);
}

void cfi_state_cfa_register(struct cfi_state *s, uint64_t reg)
{
	cfa_plain(s);
	s->head &= ~CFI_ODD(CFI_ODD_CFA_REGISTER);
	if (reg >= UNWIND_REG_MAX) {
		s->head |= CFI_ODD(CFI_ODD_CFA_REGISTER);
		reg = 0;
	}
	s->head = cfi_head_set(s->head, CFI_HEAD_BYTE(cfa_reg, 0xff), CFI_HEAD_BYTE(cfa_reg, reg));
}

/* A CFA expression stays in force. The offset is kept in case a register follows. */
void cfi_state_cfa_offset(struct cfi_state *s, int64_t off)
{
	int32_t small;

	s->head &= ~CFI_ODD(CFI_ODD_CFA_OFFSET);
	if (!cfi_s32(off, &small)) {
		s->head |= CFI_ODD(CFI_ODD_CFA_OFFSET);
		small = 0;
	}
	if ((s->head & 0xff) == UNWIND_CFA_REG)
		s->where = cfi_where_cfa(s->where, (uint32_t)small);
	else
		s->kept_off = small;
}

bool cfi_state_cfa_expression(struct cfi_state *s, struct span block)
{
	struct expr e;
	int r = expr_parse(block, false, &e);
	uint64_t head = CFI_HEAD_BYTE(cfa, UNWIND_CFA_END);

	if (r == EXPR_MALFORMED)
		return false;
	if ((s->head & 0xff) == UNWIND_CFA_REG)
		s->kept_off = (int32_t)(uint32_t)s->where;
	s->head &= ~CFI_ODD(CFI_ODD_CFA_EXPRESSION | CFI_ODD_CFA_REGISTER | CFI_ODD_LOADS);
	s->where = cfi_where_cfa(s->where, 0);
	if (r || (e.kind == EXPR_REG && e.index)) {
		s->head |= CFI_ODD(CFI_ODD_CFA_EXPRESSION);
	} else {
		head = CFI_HEAD_BYTE(cfa, e.kind == EXPR_REG	       ? UNWIND_CFA_REG
					  : e.kind == EXPR_DEREF       ? UNWIND_CFA_DEREF
					  : e.kind == EXPR_DEREF_TWICE ? UNWIND_CFA_DEREF_TWICE
								       : UNWIND_CFA_PLT) |
		       CFI_HEAD_BYTE(cfa_reg, e.kind == EXPR_PLT ? 0 : e.reg);
		s->where = cfi_where_cfa(s->where, (uint32_t)e.off);
		s->cfa_add = e.add;
		s->cfa_mid = e.mid;
		s->index = e.index;
		s->index_reg = e.index_reg;
		if (e.add || e.mid || e.index)
			s->head |= CFI_ODD(CFI_ODD_LOADS);
		s->head &= ~CFI_ODD(CFI_ODD_CFA_OFFSET);
	}
	s->head = cfi_head_set(s->head, CFI_CFA_MASK, head);
	return true;
}

/* --- registers --- */

/* Returns how many words below the CFA an RBX at cfa + off is saved; 0: a rule cannot hold it. */
static uint8_t rbx_word(int64_t off)
{
	return off <= -8 && off >= -8 * UINT8_MAX && !(off & 7) ? (uint8_t)(-off / 8) : 0;
}

static void set_rbp(struct cfi_state *s, enum cfi_value kind, uint64_t in, int32_t off)
{
	enum unwind_rbp rbp = UNWIND_RBP_UNDEFINED;

	s->head &= ~CFI_ODD(CFI_ODD_RBP);
	switch (kind) {
	case CFI_VALUE_UNSET:
	case CFI_VALUE_SAME:
		rbp = UNWIND_RBP_SAME;
		break;
	case CFI_VALUE_AT_CFA:
		rbp = UNWIND_RBP_CFA;
		break;
	case CFI_VALUE_AT_REG:
		rbp = UNWIND_RBP_DEREF_REG;
		break;
	case CFI_VALUE_UNDEFINED:
		break;
	case CFI_VALUE_REG:
		if (in == UNWIND_REG_RBP && off == 0) {
			rbp = UNWIND_RBP_SAME;
			break;
		}
		/* fall through */
	default:
		s->head |= CFI_ODD(CFI_ODD_RBP);
		break;
	}
	s->head =
		cfi_head_set(s->head, CFI_RBP_MASK,
			     CFI_HEAD_BYTE(rbp, rbp) |
				     CFI_HEAD_BYTE(rbp_reg, rbp == UNWIND_RBP_DEREF_REG ? in : 0));
	s->where = cfi_where_rbp(
		s->where, rbp == UNWIND_RBP_CFA || rbp == UNWIND_RBP_DEREF_REG ? (uint32_t)off : 0);
}

static void set_ra(struct cfi_state *s, enum cfi_value kind, uint64_t in, int32_t off)
{
	uint64_t ra = 0;

	s->head &= ~CFI_ODD(CFI_ODD_RA);
	if (kind == CFI_VALUE_UNDEFINED)
		ra = CFI_HEAD_BYTE(ra, UNWIND_RA_UNDEFINED);
	else if (kind == CFI_VALUE_REG && off == 0)
		ra = CFI_HEAD_BYTE(ra, UNWIND_RA_REG) | CFI_HEAD_BYTE(ra_reg, in);
	else if (kind != CFI_VALUE_AT_CFA || off != -8)
		s->head |= CFI_ODD(CFI_ODD_RA);
	s->head = cfi_head_set(s->head, CFI_RA_MASK, ra);
	s->ra = (uint8_t)kind;
	s->ra_reg = (uint8_t)in;
	s->ra_off = off;
}

static void set_sp(struct cfi_state *s, enum cfi_value kind, uint64_t in, int32_t off)
{
	if (kind == CFI_VALUE_SAME) {
		kind = CFI_VALUE_REG;
		in = UNWIND_REG_RSP;
	}
	s->head &= ~CFI_ODD(CFI_ODD_SP);
	/* CFI_VALUE_UNSET means the CFA. If RSP is undefined, other rules end the stack. */
	if (kind != CFI_VALUE_UNSET && kind != CFI_VALUE_UNDEFINED &&
	    !(kind == CFI_VALUE_CFA && off == 0))
		s->head |= CFI_ODD(CFI_ODD_SP);
	s->sp = (uint8_t)kind;
	s->sp_reg = (uint8_t)in;
	s->sp_off = off;
}

void cfi_state_set(struct cfi_state *s, uint64_t ra_column, uint64_t reg, enum cfi_value kind,
		   uint64_t in, int64_t off)
{
	int32_t small;

	if (!cfi_s32(off, &small) || in >= UNWIND_REG_MAX) {
		kind = CFI_VALUE_BAD;
		in = 0;
	}
	if (reg == UNWIND_REG_RBP)
		set_rbp(s, kind, in, small);
	else if (reg == UNWIND_REG_RBX)
		s->head = cfi_head_set(
			s->head, CFI_RBX_MASK,
			CFI_HEAD_BYTE(rbx, kind == CFI_VALUE_AT_CFA ? rbx_word(off) : 0));
	else if (reg == UNWIND_REG_RSP)
		set_sp(s, kind, in, small);
	if (reg == ra_column)
		set_ra(s, kind, in, small);
}

void cfi_state_restore(struct cfi_state *s, uint64_t ra_column, uint64_t reg,
		       const struct cfi_state *initial)
{
	uint64_t mask = 0;

	if (reg == UNWIND_REG_RBP) {
		s->where = cfi_where_rbp(s->where, (uint32_t)(initial->where >> 32));
		mask |= CFI_RBP_MASK | CFI_ODD(CFI_ODD_RBP);
	}
	if (reg == UNWIND_REG_RBX)
		mask |= CFI_RBX_MASK;
	if (reg == UNWIND_REG_RSP) {
		s->sp = initial->sp;
		s->sp_reg = initial->sp_reg;
		s->sp_off = initial->sp_off;
		mask |= CFI_ODD(CFI_ODD_SP);
	}
	if (reg == ra_column) {
		s->ra = initial->ra;
		s->ra_reg = initial->ra_reg;
		s->ra_off = initial->ra_off;
		mask |= CFI_RA_MASK | CFI_ODD(CFI_ODD_RA);
	}
	s->head = cfi_head_set(s->head, mask, initial->head & mask);
}

/* --- the rule --- */

/* Handles an RSP that is not the CFA: the rule's CFA becomes the caller's RSP, and offsets from the
 * CFA change by *ret_shift. If that shift is not constant, no register may be saved relative to the
 * CFA. */
static bool compose_sp(const struct cfi_state *s, struct unwind_rule *rule, int64_t *ret_shift)
{
	bool relative = (s->head & CFI_ODD(CFI_ODD_RA) ? s->ra == CFI_VALUE_AT_CFA
						       : rule->ra == UNWIND_RA_CFA) ||
			rule->rbp == UNWIND_RBP_CFA;
	int64_t sum;

	switch (s->sp) {
	case CFI_VALUE_CFA:
		*ret_shift = s->sp_off;
		if (rule->cfa == UNWIND_CFA_REG)
			return cfi_s32((int64_t)rule->cfa_off + s->sp_off, &rule->cfa_off);
		return unwind_loads(rule) &&
		       cfi_s32((int64_t)rule->cfa_add + s->sp_off, &rule->cfa_add);
	case CFI_VALUE_AT_REG:
		if (rule->cfa == UNWIND_CFA_DEREF && rule->cfa_reg == s->sp_reg &&
		    rule->cfa_off == s->sp_off && rule->cfa_add == 0 && !rule->index)
			return true;
		rule->cfa = UNWIND_CFA_DEREF;
		break;
	case CFI_VALUE_AT_CFA:
		sum = (int64_t)rule->cfa_off + s->sp_off;
		if (rule->cfa != UNWIND_CFA_REG || relative || !cfi_s32(sum, &rule->cfa_off))
			return false;
		rule->cfa = UNWIND_CFA_DEREF;
		rule->rbx = 0;
		return true;
	case CFI_VALUE_REG:
		rule->cfa = UNWIND_CFA_REG;
		break;
	default:
		return false;
	}
	rule->cfa_reg = s->sp_reg;
	rule->cfa_off = s->sp_off;
	rule->cfa_add = rule->cfa_mid = 0;
	rule->index = rule->index_reg = 0;
	rule->rbx = 0;
	return !relative;
}

/* Sets the return address if it is not at cfa - 8. */
static bool compose_ra(const struct cfi_state *s, uint64_t ra_column, bool signal, int64_t off,
		       struct unwind_rule *rule)
{
	switch (s->ra) {
	case CFI_VALUE_AT_CFA:
		if (off == -8) {
			rule->ra = UNWIND_RA_CFA;
			return true;
		}
		rule->ra = UNWIND_RA_CFA_OFF;
		return rule->cfa == UNWIND_CFA_REG && cfi_s32(off, &rule->cfa_add);
	case CFI_VALUE_AT_REG:
		/* The kernel's signal frame: the return address is popped, and the context lies at
		 * RSP. */
		if (!signal || s->ra_reg != UNWIND_REG_RSP || s->ra_off != SIGNAL_RIP ||
		    rule->cfa != UNWIND_CFA_DEREF || rule->cfa_reg != UNWIND_REG_RSP ||
		    rule->cfa_off != SIGNAL_RSP || rule->cfa_add != 0)
			return false;
		rule->flags = UNWIND_SIGNAL_FRAME;
		rule->rbx = 0;
		return true;
	case CFI_VALUE_UNSET:
		/* The column is a real register without a rule: the register holds the address. */
		if (ra_column >= UNWIND_REG_MAX || ra_column == UNWIND_REG_RSP)
			return false;
		rule->ra = UNWIND_RA_REG;
		rule->ra_reg = (uint8_t)ra_column;
		return true;
	default:
		return false;
	}
}

/* Makes the rule of a state with ODD bits. Returns as cfi_state_rule does. */
static bool compose(const struct cfi_state *s, uint64_t ra_column, bool signal, uint64_t *skipped,
		    struct unwind_rule *rule)
{
	uint32_t odd = s->head >> offsetof(struct unwind_rule, flags) * 8 & 0xff;
	int64_t shift = 0;

	if (odd & CFI_ODD_CFA_EXPRESSION) {
		skipped[ROWS_SKIP_CFA_EXPRESSION]++;
		return false;
	}
	if (odd & (CFI_ODD_CFA_REGISTER | CFI_ODD_CFA_OFFSET)) {
		skipped[ROWS_SKIP_CFA_REGISTER]++;
		return false;
	}
	if (odd & CFI_ODD_LOADS) {
		rule->cfa_add = s->cfa_add;
		rule->cfa_mid = s->cfa_mid;
		rule->index = s->index;
		rule->index_reg = s->index_reg;
	}
	if (odd & CFI_ODD_RBP)
		skipped[ROWS_SKIP_RBP_RULE]++;
	if (odd & CFI_ODD_SP && !compose_sp(s, rule, &shift)) {
		skipped[ROWS_SKIP_RSP_RULE]++;
		return false;
	}
	if (shift) {
		if (rule->rbp == UNWIND_RBP_CFA &&
		    !cfi_s32(rule->rbp_off - shift, &rule->rbp_off)) {
			skipped[ROWS_SKIP_RSP_RULE]++;
			return false;
		}
		if (rule->rbx)
			rule->rbx = rbx_word(-8 * (int64_t)rule->rbx - shift);
	}
	if (odd & CFI_ODD_RA || (shift && rule->ra == UNWIND_RA_CFA)) {
		struct cfi_state plain = { .ra = CFI_VALUE_AT_CFA };
		bool ra = odd & CFI_ODD_RA;

		if (!compose_ra(ra ? s : &plain, ra_column, signal, (ra ? s->ra_off : -8) - shift,
				rule)) {
			skipped[ROWS_SKIP_RA_RULE]++;
			return false;
		}
	}
	return true;
}

bool cfi_state_rule(const struct cfi_state *s, uint64_t ra_column, bool signal, uint64_t *skipped,
		    struct unwind_rule *ret)
{
	uint64_t head = s->head & ~CFI_ODD(0xff), offsets = (uint32_t)s->where;
	struct unwind_rule rule;

	static_assert(offsetof(struct unwind_rule, rbx) == 7 &&
			      offsetof(struct unwind_rule, cfa_off) == 8 &&
			      offsetof(struct unwind_rule, cfa_add) == 12 &&
			      offsetof(struct unwind_rule, rbp_off) == 16,
		      "as the state keeps it");
	memcpy(&rule, &head, 8);
	memcpy(&rule.cfa_off, &offsets, 8);
	rule.rbp_off = (int32_t)(s->where >> 32);
	rule.cfa_mid = 0;
	rule.index_reg = rule.index = 0;
	if (head != s->head && !compose(s, ra_column, signal, skipped, &rule))
		return false;
	*ret = rule;
	return true;
}
