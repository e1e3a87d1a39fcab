// SPDX-License-Identifier: Apache-2.0
/*
 * The interpreter keeps a struct cfi_state, which DW_CFA_ instructions change, and makes a rule of
 * it only where the location advances and something that matters has changed: of the registers,
 * RSP, RBP, RBX and the return address do.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include "tools/prof-deltas/cfi.h"
#include "tools/prof-deltas/expr.h"

/* Where the caller's value of a register is. */
enum value {
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
enum odd {
	ODD_CFA_EXPRESSION = 1, /* one that no rule can hold */
	ODD_CFA_REGISTER = 2,	/* the CFA's register has no number in a rule, or is not known */
	ODD_CFA_OFFSET = 4,	/* likewise the CFA's offset */
	ODD_RBP = 8,		/* a rule that cannot be held */
	ODD_RA = 16,		/* not at cfa - 8, nor undefined, nor in a register: see ra */
	ODD_SP = 32,		/* the caller's RSP is not the CFA: see sp */
	ODD_ADD = 64,		/* cfa_add is not zero */
};

/* Where the kernel keeps the interrupted RSP, RIP and RBP, from RSP on, when a handler has returned
 * to the restorer (struct rt_sigframe of
 * arch/x86/include/asm/sigframe.h; the return address has been popped). */
enum { SIGNAL_RSP = 160, SIGNAL_RIP = 168 };

#define EH_FRAME_INDIRECT 0x80
#define EH_FRAME_ALIGNED 0x50

/* --- small reads --- */

static inline bool read_uleb(struct span *s, uint64_t *ret)
{
	if (s->len && !(s->data[0] & 0x80)) {
		*ret = s->data[0];
		s->data++;
		s->len--;
		return true;
	}
	return expr_uleb(s, ret);
}

static inline bool read_u8(struct span *s, uint8_t *ret)
{
	if (!s->len)
		return false;
	*ret = s->data[0];
	s->data++;
	s->len--;
	return true;
}

/* The value part, by the low four bits. */
static int read_value(struct span *s, uint8_t format, uint64_t *ret)
{
	uint64_t raw = 0;
	int64_t wide;

	switch (format) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
	case DW_EH_PE_signed:
		if (!span_read(s, &raw, 8))
			return 2;
		break;
	case DW_EH_PE_uleb128:
		if (!read_uleb(s, &raw))
			return 2;
		break;
	case DW_EH_PE_sleb128:
		if (!expr_sleb(s, &wide))
			return 2;
		raw = (uint64_t)wide;
		break;
	case DW_EH_PE_udata2:
		if (!span_read(s, &raw, 2))
			return 2;
		break;
	case DW_EH_PE_sdata2:
		if (!span_read(s, &raw, 2))
			return 2;
		raw = (uint64_t)(int64_t)(int16_t)raw;
		break;
	case DW_EH_PE_udata4:
		if (!span_read(s, &raw, 4))
			return 2;
		break;
	case DW_EH_PE_sdata4:
		if (!span_read(s, &raw, 4))
			return 2;
		raw = (uint64_t)(int64_t)(int32_t)raw;
		break;
	default:
		return 1;
	}
	*ret = raw;
	return 0;
}

int cfi_pointer(struct span *s, uint8_t encoding, uint64_t vaddr, const struct cfi_bases *bases,
		const uint64_t *function, uint64_t *ret)
{
	uint64_t base = 0, value;
	struct span padding;

	if (encoding == DW_EH_PE_omit || (encoding & EH_FRAME_INDIRECT))
		return 1;
	switch (encoding & 0x70) {
	case DW_EH_PE_absptr:
		break;
	case DW_EH_PE_pcrel:
		base = vaddr;
		break;
	case DW_EH_PE_textrel:
		if (!bases->has_text)
			return 1;
		base = bases->text;
		break;
	case DW_EH_PE_datarel:
		if (!bases->has_data)
			return 1;
		base = bases->data;
		break;
	case DW_EH_PE_funcrel:
		if (!function)
			return 1;
		base = *function;
		break;
	case EH_FRAME_ALIGNED:
		if (!span_take(s, -vaddr & 7, &padding))
			return 2;
		break;
	default:
		return 1;
	}

	int r = read_value(s, encoding & 0x0f, &value);

	if (!r)
		*ret = base + value;
	return r;
}

/* --- from state to rule --- */

#define HEAD_BYTE(field, value) ((uint64_t)(value) << offsetof(struct unwind_rule, field) * 8)
#define ODD(bits) HEAD_BYTE(flags, bits)

/* The rule for what cannot be expressed. */
static int unsupported_rule(struct cfi *c, uint16_t *ret)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_END, .cfa_add = UNWIND_END_UNSUPPORTED };

	if (c->unsupported < 0) {
		uint16_t number;
		int r = rows_rules_put(&c->rows->rules, &rule, &number);

		if (r < 0)
			return r;
		c->unsupported = r ? ROWS_RULE_GAP : number;
	}
	*ret = (uint16_t)c->unsupported;
	return 0;
}

static bool to_s32(int64_t value, int32_t *ret)
{
	*ret = (int32_t)value;
	return value == *ret;
}

/* The word of the caller's RBX for one that is saved at cfa + off. */
static uint8_t rbx_word(int64_t off)
{
	return off <= -8 && off >= -8 * UINT8_MAX && !(off & 7) ? (uint8_t)(-off / 8) : 0;
}

/* Where the caller's RSP is not the CFA, the rule's CFA becomes what it is, and offsets from the
 * CFA are counted from there. *shift: by how much; where that is not a number, nothing may be saved
 * relative to the CFA. */
static bool compose_sp(const struct cfi_state *s, struct unwind_rule *rule, int64_t *ret_shift)
{
	bool relative = (s->head & ODD(ODD_RA) ? s->ra == VALUE_AT_CFA
					       : rule->ra == UNWIND_RA_CFA) ||
			rule->rbp == UNWIND_RBP_CFA;
	int64_t sum;

	switch (s->sp) {
	case VALUE_CFA:
		*ret_shift = s->sp_off;
		if (rule->cfa == UNWIND_CFA_REG)
			return to_s32((int64_t)rule->cfa_off + s->sp_off, &rule->cfa_off);
		return rule->cfa == UNWIND_CFA_DEREF &&
		       to_s32((int64_t)rule->cfa_add + s->sp_off, &rule->cfa_add);
	case VALUE_AT_REG:
		if (rule->cfa == UNWIND_CFA_DEREF && rule->cfa_reg == s->sp_reg &&
		    rule->cfa_off == s->sp_off && rule->cfa_add == 0)
			return true;
		rule->cfa = UNWIND_CFA_DEREF;
		break;
	case VALUE_AT_CFA:
		sum = (int64_t)rule->cfa_off + s->sp_off;
		if (rule->cfa != UNWIND_CFA_REG || relative || !to_s32(sum, &rule->cfa_off))
			return false;
		rule->cfa = UNWIND_CFA_DEREF;
		rule->rbx = 0;
		return true;
	case VALUE_REG:
		rule->cfa = UNWIND_CFA_REG;
		break;
	default:
		return false;
	}
	rule->cfa_reg = s->sp_reg;
	rule->cfa_off = s->sp_off;
	rule->cfa_add = 0;
	rule->rbx = 0;
	return !relative;
}

/* The return address, where it is not at cfa - 8. */
static bool compose_ra(const struct cfi_cie *cie, const struct cfi_state *s, int64_t off,
		       struct unwind_rule *rule)
{
	switch (s->ra) {
	case VALUE_AT_CFA:
		if (off == -8) {
			rule->ra = UNWIND_RA_CFA;
			return true;
		}
		rule->ra = UNWIND_RA_CFA_OFF;
		return rule->cfa == UNWIND_CFA_REG && to_s32(off, &rule->cfa_add);
	case VALUE_AT_REG:
		/* The kernel's frame of a signal: the return address has been popped, and the
		 * context lies at RSP. */
		if (!cie->signal || s->ra_reg != UNWIND_REG_RSP || s->ra_off != SIGNAL_RIP ||
		    rule->cfa != UNWIND_CFA_DEREF || rule->cfa_reg != UNWIND_REG_RSP ||
		    rule->cfa_off != SIGNAL_RSP || rule->cfa_add != 0)
			return false;
		rule->flags = UNWIND_SIGNAL_FRAME;
		rule->rbx = 0;
		return true;
	case VALUE_UNSET:
		/* A column that is a real register, and has no rule, is that register. */
		if (cie->ra_column >= UNWIND_REG_MAX || cie->ra_column == UNWIND_REG_RSP)
			return false;
		rule->ra = UNWIND_RA_REG;
		rule->ra_reg = (uint8_t)cie->ra_column;
		return true;
	default:
		return false;
	}
}

/* What is odd, made into a rule. False when the row can only be `end`; counted. */
static bool compose(struct cfi *c, const struct cfi_cie *cie, const struct cfi_state *s,
		    struct unwind_rule *rule)
{
	uint64_t *skipped = c->rows->skipped;
	uint32_t odd = s->head >> offsetof(struct unwind_rule, flags) * 8 & 0xff;
	int64_t shift = 0;

	if (odd & ODD_CFA_EXPRESSION) {
		skipped[ROWS_SKIP_CFA_EXPRESSION]++;
		return false;
	}
	if (odd & (ODD_CFA_REGISTER | ODD_CFA_OFFSET)) {
		skipped[ROWS_SKIP_CFA_REGISTER]++;
		return false;
	}
	if (odd & ODD_ADD)
		rule->cfa_add = s->cfa_add;
	if (odd & ODD_RBP)
		skipped[ROWS_SKIP_RBP_RULE]++;
	if (odd & ODD_SP && !compose_sp(s, rule, &shift)) {
		skipped[ROWS_SKIP_RSP_RULE]++;
		return false;
	}
	if (shift) {
		if (rule->rbp == UNWIND_RBP_CFA && !to_s32(rule->rbp_off - shift, &rule->rbp_off)) {
			skipped[ROWS_SKIP_RSP_RULE]++;
			return false;
		}
		if (rule->rbx)
			rule->rbx = rbx_word(-8 * (int64_t)rule->rbx - shift);
	}
	if (odd & ODD_RA || (shift && rule->ra == UNWIND_RA_CFA)) {
		struct cfi_state plain = { .ra = VALUE_AT_CFA };
		bool ra = odd & ODD_RA;

		if (!compose_ra(cie, ra ? s : &plain, (ra ? s->ra_off : -8) - shift, rule)) {
			skipped[ROWS_SKIP_RA_RULE]++;
			return false;
		}
	}
	return true;
}

/* The number of the rule that the state makes, if it is not at hand. */
static int rule_number(struct cfi *c, const struct cfi_cie *cie, const struct cfi_state *s,
		       struct cfi_known *known, uint16_t *ret)
{
	uint64_t head = s->head & ~ODD(0xff), offsets = (uint32_t)s->where;
	struct unwind_rule rule;
	int r;

	static_assert(offsetof(struct unwind_rule, rbx) == 7 &&
			      offsetof(struct unwind_rule, cfa_off) == 8 &&
			      offsetof(struct unwind_rule, cfa_add) == 12 &&
			      offsetof(struct unwind_rule, rbp_off) == 16,
		      "as the state keeps it");
	memcpy(&rule, &head, 8);
	memcpy(&rule.cfa_off, &offsets, 8);
	rule.rbp_off = (int32_t)(s->where >> 32);
	if (head != s->head && !compose(c, cie, s, &rule))
		return unsupported_rule(c, ret);
	r = rows_rules_put(&c->rows->rules, &rule, ret);
	if (r > 0) {
		c->rows->skipped[ROWS_SKIP_RULE_LIMIT]++;
		return unsupported_rule(c, ret);
	}
	if (!r && head == s->head)
		*known = (struct cfi_known){ .head = head, .where = s->where, .number = *ret };
	return r;
}

static inline struct cfi_known *known_at(struct cfi *c, uint64_t head, uint64_t where)
{
	return &c->known[((where ^ (head << 20 | head >> 44)) * 0x9e3779b97f4a7c15u) >> 32 &
			 (CFI_CACHE - 1)];
}

/* --- the interpreter --- */

struct run {
	struct cfi *c;
	const struct cfi_cie *cie;
	struct cfi_state state;
	uint64_t vaddr; /* ELF address of the instruction bytes' first */
	const uint8_t *first;
	/* The location, as distance from the function's start. A CIE's instructions have none: size
	 * is 0. */
	uint64_t function; /* ELF address */
	uint64_t loc, size;
	uint32_t at; /* offset of the function's start */
	uint32_t depth;
	bool dirty;
};

/* Apart from enum rows_status, which also comes through. */
enum run_verdict {
	RUN_END = 100, /* the end, or the location went past the function: the last row is there */
	RUN_OPCODE,
	RUN_SENSELESS,
};

static inline uint64_t head_set(uint64_t head, uint64_t mask, uint64_t value)
{
	return (head & ~mask) | value;
}

#define CFA_MASK (HEAD_BYTE(cfa, 0xff) | HEAD_BYTE(cfa_reg, 0xff))
#define RBP_MASK (HEAD_BYTE(rbp, 0xff) | HEAD_BYTE(rbp_reg, 0xff))
#define RA_MASK (HEAD_BYTE(ra, 0xff) | HEAD_BYTE(ra_reg, 0xff))
#define RBX_MASK HEAD_BYTE(rbx, 0xff)
#define ODD_CFA ODD(ODD_CFA_EXPRESSION | ODD_CFA_REGISTER | ODD_CFA_OFFSET | ODD_ADD)

/* where, with another offset of the CFA, or of RBP. */
static inline uint64_t where_cfa(uint64_t where, uint32_t off)
{
	return (where & ~(uint64_t)UINT32_MAX) | off;
}

static inline uint64_t where_rbp(uint64_t where, uint32_t off)
{
	return (uint32_t)where | (uint64_t)off << 32;
}

/* The CFA is a register and an offset from here on; each keeps what was, until it is set. */
static void cfa_plain(struct cfi_state *s)
{
	if ((s->head & 0xff) == UNWIND_CFA_REG)
		return;
	s->head = head_set(s->head, CFA_MASK, HEAD_BYTE(cfa, UNWIND_CFA_REG));
	s->where = where_cfa(s->where, (uint32_t)s->kept_off);
	s->head &= ~ODD(ODD_CFA_EXPRESSION | ODD_ADD);
}

static void cfa_register(struct cfi_state *s, uint64_t reg)
{
	cfa_plain(s);
	s->head &= ~ODD(ODD_CFA_REGISTER);
	if (reg >= UNWIND_REG_MAX) {
		s->head |= ODD(ODD_CFA_REGISTER);
		reg = 0;
	}
	s->head = head_set(s->head, HEAD_BYTE(cfa_reg, 0xff), HEAD_BYTE(cfa_reg, reg));
}

/* An expression stays in force, and the offset is kept for the register that may follow it. */
static void cfa_offset(struct cfi_state *s, int64_t off)
{
	int32_t small;

	s->head &= ~ODD(ODD_CFA_OFFSET);
	if (!to_s32(off, &small)) {
		s->head |= ODD(ODD_CFA_OFFSET);
		small = 0;
	}
	if ((s->head & 0xff) == UNWIND_CFA_REG)
		s->where = where_cfa(s->where, (uint32_t)small);
	else
		s->kept_off = small;
}

static void cfa_define(struct cfi_state *s, uint64_t reg, int64_t off)
{
	cfa_register(s, reg);
	cfa_offset(s, off);
}

static void set_rbp(struct cfi_state *s, enum value kind, uint64_t in, int32_t off)
{
	enum unwind_rbp rbp = UNWIND_RBP_UNDEFINED;

	s->head &= ~ODD(ODD_RBP);
	switch (kind) {
	case VALUE_UNSET:
	case VALUE_SAME:
		rbp = UNWIND_RBP_SAME;
		break;
	case VALUE_AT_CFA:
		rbp = UNWIND_RBP_CFA;
		break;
	case VALUE_AT_REG:
		rbp = UNWIND_RBP_DEREF_REG;
		break;
	case VALUE_UNDEFINED:
		break;
	case VALUE_REG:
		if (in == UNWIND_REG_RBP && off == 0) {
			rbp = UNWIND_RBP_SAME;
			break;
		}
		/* fall through */
	default:
		s->head |= ODD(ODD_RBP);
		break;
	}
	s->head = head_set(s->head, RBP_MASK,
			   HEAD_BYTE(rbp, rbp) |
				   HEAD_BYTE(rbp_reg, rbp == UNWIND_RBP_DEREF_REG ? in : 0));
	s->where = where_rbp(
		s->where, rbp == UNWIND_RBP_CFA || rbp == UNWIND_RBP_DEREF_REG ? (uint32_t)off : 0);
}

static void set_ra(struct cfi_state *s, enum value kind, uint64_t in, int32_t off)
{
	uint64_t ra = 0;

	s->head &= ~ODD(ODD_RA);
	if (kind == VALUE_UNDEFINED)
		ra = HEAD_BYTE(ra, UNWIND_RA_UNDEFINED);
	else if (kind == VALUE_REG && off == 0)
		ra = HEAD_BYTE(ra, UNWIND_RA_REG) | HEAD_BYTE(ra_reg, in);
	else if (kind != VALUE_AT_CFA || off != -8)
		s->head |= ODD(ODD_RA);
	s->head = head_set(s->head, RA_MASK, ra);
	s->ra = (uint8_t)kind;
	s->ra_reg = (uint8_t)in;
	s->ra_off = off;
}

static void set_sp(struct cfi_state *s, enum value kind, uint64_t in, int32_t off)
{
	if (kind == VALUE_SAME) {
		kind = VALUE_REG;
		in = UNWIND_REG_RSP;
	}
	s->head &= ~ODD(ODD_SP);
	/* Without a rule it is the CFA; what is undefined ends the stack by other means. */
	if (kind != VALUE_UNSET && kind != VALUE_UNDEFINED && !(kind == VALUE_CFA && off == 0))
		s->head |= ODD(ODD_SP);
	s->sp = (uint8_t)kind;
	s->sp_reg = (uint8_t)in;
	s->sp_off = off;
}

/* A register's new rule, where the register matters. */
static void reg_set(struct run *run, uint64_t reg, enum value kind, uint64_t in, int64_t off)
{
	struct cfi_state *s = &run->state;
	int32_t small;

	if (reg > 63 || !(run->cie->matters >> reg & 1))
		return;
	if (!to_s32(off, &small) || in >= UNWIND_REG_MAX) {
		kind = VALUE_BAD;
		in = 0;
	}
	if (reg == UNWIND_REG_RBP)
		set_rbp(s, kind, in, small);
	else if (reg == UNWIND_REG_RBX)
		s->head = head_set(s->head, RBX_MASK,
				   HEAD_BYTE(rbx, kind == VALUE_AT_CFA ? rbx_word(off) : 0));
	else if (reg == UNWIND_REG_RSP)
		set_sp(s, kind, in, small);
	if (reg == run->cie->ra_column)
		set_ra(s, kind, in, small);
	run->dirty = true;
}

static inline int64_t scaled(const struct run *run, int64_t factored)
{
	int64_t product;

	/* Out of reach for a rule, and so marked there. */
	return __builtin_mul_overflow(factored, run->cie->data_align, &product) ? INT64_MAX
										: product;
}

static void reg_restore(struct run *run, uint64_t reg)
{
	const struct cfi_state *initial = &run->cie->initial;
	struct cfi_state *s = &run->state;
	uint64_t mask = 0;

	if (reg == UNWIND_REG_RBP) {
		s->where = where_rbp(s->where, (uint32_t)(initial->where >> 32));
		mask |= RBP_MASK | ODD(ODD_RBP);
	}
	if (reg == UNWIND_REG_RBX)
		mask |= RBX_MASK;
	if (reg == UNWIND_REG_RSP) {
		s->sp = initial->sp;
		s->sp_reg = initial->sp_reg;
		s->sp_off = initial->sp_off;
		mask |= ODD(ODD_SP);
	}
	if (reg == run->cie->ra_column) {
		s->ra = initial->ra;
		s->ra_reg = initial->ra_reg;
		s->ra_off = initial->ra_off;
		mask |= RA_MASK | ODD(ODD_RA);
	}
	s->head = head_set(s->head, mask, initial->head & mask);
	run->dirty = true;
}

static bool cfa_expression(struct run *run, struct span block)
{
	struct cfi_state *s = &run->state;
	struct expr e;
	int r = expr_parse(block, false, &e);
	uint64_t head = HEAD_BYTE(cfa, UNWIND_CFA_END);

	if (r == EXPR_MALFORMED)
		return false;
	if ((s->head & 0xff) == UNWIND_CFA_REG)
		s->kept_off = (int32_t)(uint32_t)s->where;
	s->head &= ~ODD(ODD_CFA_EXPRESSION | ODD_CFA_REGISTER | ODD_ADD);
	s->where = where_cfa(s->where, 0);
	s->cfa_add = 0;
	if (r) {
		s->head |= ODD(ODD_CFA_EXPRESSION);
	} else {
		head = HEAD_BYTE(cfa, e.kind == EXPR_REG     ? UNWIND_CFA_REG
				      : e.kind == EXPR_DEREF ? UNWIND_CFA_DEREF
							     : UNWIND_CFA_PLT) |
		       HEAD_BYTE(cfa_reg, e.kind == EXPR_PLT ? 0 : e.reg);
		s->where = where_cfa(s->where, (uint32_t)e.off);
		if (e.kind == EXPR_DEREF && e.add) {
			s->cfa_add = e.add;
			s->head |= ODD(ODD_ADD);
		}
		s->head &= ~ODD(ODD_CFA_OFFSET);
	}
	s->head = head_set(s->head, CFA_MASK, head);
	run->dirty = true;
	return true;
}

/* value: the expression is the register's value, not where it is saved. */
static bool reg_expression(struct run *run, uint64_t reg, struct span block, bool value)
{
	struct expr e;

	if (reg > 63 || !(run->cie->matters >> reg & 1))
		return true;

	int r = expr_parse(block, true, &e);

	if (r == EXPR_MALFORMED)
		return false;
	if (!r && e.kind == EXPR_REG)
		reg_set(run, reg, value ? VALUE_REG : VALUE_AT_REG, e.reg, e.off);
	else if (!r && e.kind == EXPR_CFA)
		reg_set(run, reg, value ? VALUE_CFA : VALUE_AT_CFA, 0, e.off);
	else if (!r && e.kind == EXPR_DEREF && value && e.add == 0)
		reg_set(run, reg, VALUE_AT_REG, e.reg, e.off);
	else
		reg_set(run, reg, VALUE_BAD, 0, 0);
	return true;
}

static bool remember(struct run *run)
{
	struct cfi *c = run->c;

	if (run->depth == c->state_cap) {
		size_t cap = c->state_cap ? c->state_cap * 2 : 16;
		struct cfi_state *grown = realloc(c->states, cap * sizeof(*grown));

		if (!grown)
			return false;
		c->states = grown;
		c->state_cap = cap;
	}
	c->states[run->depth++] = run->state;
	return true;
}

/* An instruction off the beaten track; s begins with its operands. *ret_bytes: how far it advances.
 * 0, -ENOMEM, or enum run_verdict. */
static int run_seldom(struct run *run, uint8_t op, struct span *s, uint64_t *ret_bytes)
{
	struct cfi *c = run->c;
	uint64_t reg, u, value = 0;
	int64_t off;
	struct span block;

	*ret_bytes = 0;
	switch (op) {
	case DW_CFA_nop:
		break;
	case DW_CFA_set_loc:
		u = run->vaddr + (uint64_t)(s->data - run->first);
		if (cfi_pointer(s, run->cie->encoding, u, &c->bases, &run->function, &value) != 0)
			return RUN_SENSELESS;
		/* A CIE has no location, and no function is open for its rows. */
		if (!run->size || value < run->function + run->loc)
			return RUN_SENSELESS;
		*ret_bytes = value - (run->function + run->loc);
		break;
	case DW_CFA_advance_loc1:
	case DW_CFA_advance_loc2:
	case DW_CFA_advance_loc4:
	case DW_CFA_MIPS_advance_loc8:
		if (!span_read(s, &value,
			       op == DW_CFA_MIPS_advance_loc8
				       ? 8
				       : (size_t)1 << (op - DW_CFA_advance_loc1)))
			return RUN_SENSELESS;
		if (__builtin_mul_overflow(value, run->cie->code_align, ret_bytes))
			*ret_bytes = UINT64_MAX;
		break;
	case DW_CFA_def_cfa_offset:
		if (!read_uleb(s, &u))
			return RUN_SENSELESS;
		cfa_offset(&run->state, u > INT64_MAX ? INT64_MAX : (int64_t)u);
		run->dirty = true;
		break;
	case DW_CFA_def_cfa_offset_sf:
		if (!expr_sleb(s, &off))
			return RUN_SENSELESS;
		cfa_offset(&run->state, scaled(run, off));
		run->dirty = true;
		break;
	case DW_CFA_def_cfa_register:
		if (!read_uleb(s, &reg))
			return RUN_SENSELESS;
		cfa_register(&run->state, reg);
		run->dirty = true;
		break;
	case DW_CFA_def_cfa:
		if (!read_uleb(s, &reg) || !read_uleb(s, &u))
			return RUN_SENSELESS;
		cfa_define(&run->state, reg, u > INT64_MAX ? INT64_MAX : (int64_t)u);
		run->dirty = true;
		break;
	case DW_CFA_def_cfa_sf:
		if (!read_uleb(s, &reg) || !expr_sleb(s, &off))
			return RUN_SENSELESS;
		cfa_define(&run->state, reg, scaled(run, off));
		run->dirty = true;
		break;
	case DW_CFA_def_cfa_expression:
		if (!read_uleb(s, &u) || !span_take(s, u, &block) || !cfa_expression(run, block))
			return RUN_SENSELESS;
		break;
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		if (!read_uleb(s, &reg) || !read_uleb(s, &u) || !span_take(s, u, &block) ||
		    !reg_expression(run, reg, block, op == DW_CFA_val_expression))
			return RUN_SENSELESS;
		break;
	case DW_CFA_offset_extended:
		if (!read_uleb(s, &reg) || !read_uleb(s, &u))
			return RUN_SENSELESS;
		reg_set(run, reg, VALUE_AT_CFA, 0, scaled(run, (int64_t)u));
		break;
	case DW_CFA_offset_extended_sf:
		if (!read_uleb(s, &reg) || !expr_sleb(s, &off))
			return RUN_SENSELESS;
		reg_set(run, reg, VALUE_AT_CFA, 0, scaled(run, off));
		break;
	case DW_CFA_GNU_negative_offset_extended:
		if (!read_uleb(s, &reg) || !read_uleb(s, &u))
			return RUN_SENSELESS;
		off = scaled(run, (int64_t)u);
		reg_set(run, reg, VALUE_AT_CFA, 0, off == INT64_MIN ? INT64_MAX : -off);
		break;
	case DW_CFA_val_offset:
		if (!read_uleb(s, &reg) || !read_uleb(s, &u))
			return RUN_SENSELESS;
		reg_set(run, reg, VALUE_CFA, 0, scaled(run, (int64_t)u));
		break;
	case DW_CFA_val_offset_sf:
		if (!read_uleb(s, &reg) || !expr_sleb(s, &off))
			return RUN_SENSELESS;
		reg_set(run, reg, VALUE_CFA, 0, scaled(run, off));
		break;
	case DW_CFA_restore_extended:
		if (!read_uleb(s, &reg))
			return RUN_SENSELESS;
		reg_restore(run, reg);
		break;
	case DW_CFA_undefined:
		if (!read_uleb(s, &reg))
			return RUN_SENSELESS;
		reg_set(run, reg, VALUE_UNDEFINED, 0, 0);
		break;
	case DW_CFA_same_value:
		if (!read_uleb(s, &reg))
			return RUN_SENSELESS;
		reg_set(run, reg, VALUE_SAME, 0, 0);
		break;
	case DW_CFA_register:
		if (!read_uleb(s, &reg) || !read_uleb(s, &u))
			return RUN_SENSELESS;
		reg_set(run, reg, VALUE_REG, u, 0);
		break;
	case DW_CFA_remember_state:
		return remember(run) ? 0 : -ENOMEM;
	case DW_CFA_restore_state:
		if (!run->depth)
			return RUN_SENSELESS;
		run->state = c->states[--run->depth];
		run->dirty = true;
		break;
	case DW_CFA_GNU_args_size:
		if (!read_uleb(s, &u))
			return RUN_SENSELESS;
		break;
	default:
		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			*ret_bytes = (uint64_t)(op & 0x3f) * run->cie->code_align;
			break;
		case DW_CFA_offset:
			if (!read_uleb(s, &u))
				return RUN_SENSELESS;
			reg_set(run, op & 0x3f, VALUE_AT_CFA, 0, scaled(run, (int64_t)u));
			break;
		case DW_CFA_restore:
			reg_restore(run, op & 0x3f);
			break;
		default:
			return RUN_OPCODE;
		}
	}
	return 0;
}

/* The row at `at` of a state that is not plain, or whose rule is not at hand. */
static int row_seldom(struct run *run, struct rows_pen *pen, struct cfi_known *known, uint32_t at)
{
	uint16_t number;
	int r = rule_number(run->c, run->cie, &run->state, known, &number);

	if (!r)
		rows_pen_put(pen, at, number);
	return r;
}

/* The end of a location: gives its row if anything has changed, and goes on. 0, RUN_END, -ENOMEM.
 */
static int run_advance(struct run *run, uint64_t bytes)
{
	struct rows_pen *pen = &run->c->rows->pen;

	if (run->dirty) {
		struct cfi_known *known = known_at(run->c, run->state.head, run->state.where);
		int r = row_seldom(run, pen, known, run->at + (uint32_t)run->loc);

		if (r)
			return r;
		run->dirty = false;
	}
	if (bytes >= run->size - run->loc)
		return RUN_END;
	run->loc += bytes;
	return 0;
}

/* Runs s to its end, one instruction at a time: for CIEs, and where a CIE's figures are not what
 * they always are. As run_instructions. */
static int run_slowly(struct run *run, struct span s)
{
	uint64_t bytes;
	uint8_t op;
	int r = 0;

	while (!r && read_u8(&s, &op)) {
		r = run_seldom(run, op, &s, &bytes);
		if (r || !bytes)
			continue;
		/* A CIE has no location. */
		r = run->size ? run_advance(run, bytes) : RUN_SENSELESS;
	}
	return r || !run->size ? r : run_advance(run, UINT64_MAX);
}

/* Whether nothing but DW_CFA_nop follows, up to `end`; `first` is the first byte that may be read.
 */
static inline bool only_nops(const uint8_t *first, const uint8_t *p, const uint8_t *end)
{
	uint64_t tail;

	if (end - p < 8 && end - first >= 8) {
		memcpy(&tail, end - 8, 8);
		return p == end || tail >> (64 - 8 * (end - p)) == 0;
	}
	while (p < end && *p == DW_CFA_nop)
		p++;
	return p == end;
}

/*
 * Runs the instructions of s to their end, into rows->pen of the open function, which has room for
 * a row from each byte and one more. enum run_verdict; -ENOMEM; 0 at the end of a CIE.
 *
 * What nearly all instructions are is done here, over a state in local variables, which the
 * compiler keeps in registers: a row takes some ten nanoseconds, and going through memory for each
 * field would be most of it. Everything else is run_seldom's, for which the state is put back.
 */
static int run_instructions(struct run *run, struct span s)
{
	struct cfi *c = run->c;
	const struct cfi_cie *cie = run->cie;
	const uint8_t *p = s.data, *end = p + s.len;
	uint64_t head = run->state.head, where = run->state.where, bytes;
	/* Relative to the rows' base. */
	uint64_t at = run->at, limit = run->at + run->size;
	struct rows_pen pen = c->rows->pen;
	bool dirty = run->dirty;
	int r;

	if (!cie->plain || !run->size)
		return run_slowly(run, s);

#define PUT_BACK() \
	do { \
		run->state.head = head; \
		run->state.where = where; \
		run->loc = at - run->at; \
		run->dirty = dirty; \
	} while (0)
#define TAKE() \
	do { \
		head = run->state.head; \
		where = run->state.where; \
		dirty = run->dirty; \
	} while (0)

	for (;;) {
		uint16_t delta2;
		uint32_t delta4;
		uint8_t op;

		if (p == end) {
			bytes = UINT64_MAX;
			goto advance;
		}
		op = *p++;
		switch (op) {
		case DW_CFA_advance_loc ... DW_CFA_advance_loc | 0x3f:
			bytes = op & 0x3f;
			break;
		case DW_CFA_advance_loc1:
			if (end - p < 1)
				goto senseless;
			bytes = *p++;
			break;
		case DW_CFA_advance_loc2:
			if (end - p < 2)
				goto senseless;
			memcpy(&delta2, p, 2);
			bytes = delta2;
			p += 2;
			break;
		case DW_CFA_advance_loc4:
			if (end - p < 4)
				goto senseless;
			memcpy(&delta4, p, 4);
			bytes = delta4;
			p += 4;
			break;
		case DW_CFA_def_cfa_offset:
			/* Of one byte, or two: the frames of large functions. */
			if (end - p < 2 || (p[0] & p[1] & 0x80) || (head & 0xff) != UNWIND_CFA_REG)
				goto seldom;
			where = where_cfa(where, p[0] & 0x80 ? (p[0] & 0x7fu) | p[1] << 7 : p[0]);
			p += 1 + (p[0] >> 7);
			head &= ~ODD(ODD_CFA_OFFSET);
			dirty = true;
			continue;
		case DW_CFA_def_cfa_register:
			if (p == end || *p >= UNWIND_REG_MAX || (head & 0xff) != UNWIND_CFA_REG)
				goto seldom;
			head = head_set(head, HEAD_BYTE(cfa_reg, 0xff) | ODD(ODD_CFA_REGISTER),
					HEAD_BYTE(cfa_reg, *p));
			p++;
			dirty = true;
			continue;
		case DW_CFA_def_cfa:
			if (end - p < 2 || p[0] >= UNWIND_REG_MAX || p[1] & 0x80)
				goto seldom;
			head = head_set(head, CFA_MASK | ODD_CFA,
					HEAD_BYTE(cfa, UNWIND_CFA_REG) | HEAD_BYTE(cfa_reg, p[0]));
			where = where_cfa(where, p[1]);
			p += 2;
			dirty = true;
			continue;
		case DW_CFA_offset | UNWIND_REG_RBP:
			if (p == end || *p & 0x80)
				goto seldom;
			head = head_set(head, RBP_MASK | ODD(ODD_RBP),
					HEAD_BYTE(rbp, UNWIND_RBP_CFA));
			where = where_rbp(where, *p++ * -8u);
			dirty = true;
			continue;
		case DW_CFA_offset | UNWIND_REG_RBX:
			if (p == end || *p & 0x80)
				goto seldom;
			head = head_set(head, RBX_MASK, HEAD_BYTE(rbx, *p));
			p++;
			dirty = true;
			continue;
		case DW_CFA_offset | 8 ... DW_CFA_offset | 15: /* r8 to r15 */
			if (p == end || *p & 0x80)
				goto seldom;
			p++;
			continue;
		case DW_CFA_restore | UNWIND_REG_RBP:
			head = head_set(head, RBP_MASK | ODD(ODD_RBP),
					cie->initial.head & (RBP_MASK | ODD(ODD_RBP)));
			where = where_rbp(where, (uint32_t)(cie->initial.where >> 32));
			dirty = true;
			continue;
		case DW_CFA_restore | UNWIND_REG_RBX:
			head = head_set(head, RBX_MASK, cie->initial.head & RBX_MASK);
			dirty = true;
			continue;
		case DW_CFA_restore | 8 ... DW_CFA_restore | 15:
			continue;
		case DW_CFA_nop:
			if (only_nops(s.data, p, end))
				p = end;
			continue;
		case DW_CFA_remember_state:
			if (run->depth == c->state_cap)
				goto seldom;
			PUT_BACK();
			c->states[run->depth++] = run->state;
			continue;
		case DW_CFA_restore_state:
			if (!run->depth)
				goto senseless;
			run->state = c->states[--run->depth];
			TAKE();
			dirty = true;
			continue;
		default:
		seldom : {
			struct span rest = { .data = p, .len = (size_t)(end - p) };

			PUT_BACK();
			r = run_seldom(run, op, &rest, &bytes);
			if (r)
				goto out;
			TAKE();
			p = rest.data;
			break;
		}
		}

		if (!bytes)
			continue;
	advance:
		if (dirty) {
			struct cfi_known *known = known_at(c, head, where);

			if (known->head == head && known->where == where) {
				rows_pen_put(&pen, (uint32_t)at, known->number);
			} else {
				struct rows_pen copy = pen;

				PUT_BACK();
				r = row_seldom(run, &copy, known, (uint32_t)at);
				if (r)
					goto out;
				pen = copy;
			}
			dirty = false;
		}
		if (bytes >= limit - at) {
			r = RUN_END;
			goto out;
		}
		at += bytes;
	}
senseless:
	r = RUN_SENSELESS;
out:
	PUT_BACK();
#undef PUT_BACK
#undef TAKE
	c->rows->pen = pen;
	return r;
}

/* --- CIEs --- */

static uint32_t cie_hash(uint64_t offset)
{
	return (uint32_t)((offset * 0x9e3779b97f4a7c15u) >> 32);
}

static const struct cfi_cie *cie_find(struct cfi *c, uint64_t offset)
{
	if (c->cies && c->cie[c->last].offset == offset)
		return &c->cie[c->last];
	if (!c->slots)
		return NULL;
	for (uint32_t at = cie_hash(offset) & (c->slots - 1); c->slot[at];
	     at = (at + 1) & (c->slots - 1)) {
		if (c->cie[c->slot[at] - 1].offset == offset) {
			c->last = c->slot[at] - 1;
			return &c->cie[c->last];
		}
	}
	return NULL;
}

/* c->slot holds numbers from 1 on, 0 where free, and is never more than half full. */
static int cie_keep(struct cfi *c, const struct cfi_cie *cie)
{
	if (c->cies == c->cie_cap) {
		uint32_t cap = c->cie_cap ? c->cie_cap * 2 : 16, slots = cap * 2;

		if (cap > CFI_MAX_CIES) {
			c->rows->skipped[ROWS_SKIP_CIE_LIMIT]++;
			return 0;
		}

		struct cfi_cie *kept = realloc(c->cie, cap * sizeof(*kept));

		if (!kept)
			return -ENOMEM;
		c->cie = kept;
		c->cie_cap = cap;

		uint32_t *slot = calloc(slots, sizeof(*slot));

		if (!slot)
			return -ENOMEM;
		free(c->slot);
		c->slot = slot;
		c->slots = slots;
		for (uint32_t i = 0; i < c->cies; i++) {
			uint32_t at = cie_hash(kept[i].offset) & (slots - 1);

			while (slot[at])
				at = (at + 1) & (slots - 1);
			slot[at] = i + 1;
		}
	}

	uint32_t at = cie_hash(cie->offset) & (c->slots - 1);

	while (c->slot[at])
		at = (at + 1) & (c->slots - 1);
	c->cie[c->cies] = *cie;
	c->slot[at] = ++c->cies;
	return 0;
}

/* Augmentation letters. 0, or the reason why the CIE is of no use. */
static int cie_augmentation(const char *letters, struct span s, uint64_t vaddr, struct cfi_cie *cie)
{
	const uint8_t *first = s.data;
	uint64_t ignored;
	uint8_t encoding;

	for (const char *l = letters; *l; l++) {
		switch (*l) {
		case 'R':
			if (!read_u8(&s, &cie->encoding))
				return ROWS_SKIP_CIE;
			break;
		case 'L':
			if (!read_u8(&s, &encoding))
				return ROWS_SKIP_CIE;
			break;
		case 'P':
			if (!read_u8(&s, &encoding))
				return ROWS_SKIP_CIE;
			if (encoding == DW_EH_PE_omit)
				break;
			/* Only its length matters. */
			if ((encoding & 0x70) == EH_FRAME_ALIGNED) {
				struct span padding;

				if (!span_take(&s, -(vaddr + (uint64_t)(s.data - first)) & 7,
					       &padding))
					return ROWS_SKIP_CIE;
			}
			if (read_value(&s, encoding & 0x0f, &ignored) != 0)
				return ROWS_SKIP_CIE;
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B': /* arm64: pointer authentication with the B key */
		case 'G': /* arm64: memory tagging */
			break;
		default:
			/* Its data has a length: only a pointer encoding behind it would be missed.
			 */
			return strchr(l, 'R') ? ROWS_SKIP_CIE_AUGMENTATION : 0;
		}
	}
	return 0;
}

/* Takes the CIE apart; vaddr: of the first byte of s, which begins after the id. 0; the enum
 * rows_skip (never 0: that is ENTRY) why it is of no use; -ENOMEM. */
static int cie_parse(struct cfi *c, struct span s, uint64_t vaddr, struct cfi_cie *cie)
{
	const uint8_t *first = s.data, *nul;
	uint8_t version, small, sizes[2];
	uint64_t len, code_align;
	int64_t data_align;
	struct span part;
	const char *letters;

	if (!read_u8(&s, &version))
		return ROWS_SKIP_CIE;
	if (version != 1 && version != 3 && version != 4)
		return ROWS_SKIP_CIE_VERSION;
	nul = s.len ? memchr(s.data, 0, s.len) : NULL;
	if (!nul)
		return ROWS_SKIP_CIE;
	letters = (const char *)s.data;
	span_take(&s, (size_t)(nul - s.data) + 1, &part);
	if (letters[0] == 'e' && letters[1] == 'h') {
		/* GCC 2: a pointer to its own exception table. */
		if (!span_take(&s, 8, &part))
			return ROWS_SKIP_CIE;
		letters += 2;
	}
	if (version == 4 && (!span_read(&s, sizes, 2) || sizes[0] != 8 || sizes[1] != 0))
		return ROWS_SKIP_CIE_VERSION;
	if (!read_uleb(&s, &code_align) || !expr_sleb(&s, &data_align) || code_align > UINT32_MAX ||
	    !to_s32(data_align, &cie->data_align) || data_align == INT32_MIN)
		return ROWS_SKIP_CIE;
	cie->code_align = (uint32_t)code_align;
	if (version == 1) {
		if (!read_u8(&s, &small))
			return ROWS_SKIP_CIE;
		cie->ra_column = small;
	} else if (!read_uleb(&s, &cie->ra_column)) {
		return ROWS_SKIP_CIE;
	}
	if (letters[0] == 'z') {
		if (!read_uleb(&s, &len) || !span_take(&s, len, &part))
			return ROWS_SKIP_CIE;
		cie->sized = true;

		int r = cie_augmentation(letters + 1, part, vaddr + (uint64_t)(part.data - first),
					 cie);

		if (r)
			return r;
	} else if (letters[0] && strncmp(letters, "armcc", 5) != 0) {
		/* Without a size, letters that add bytes of unknown length cannot be passed over.
		 * */
		return ROWS_SKIP_CIE_AUGMENTATION;
	}

	cie->matters = 1ull << UNWIND_REG_RBX | 1ull << UNWIND_REG_RBP | 1ull << UNWIND_REG_RSP |
		       (cie->ra_column < 64 ? 1ull << cie->ra_column : 0);
	cie->plain = cie->code_align == 1 && cie->data_align == -8 && cie->ra_column == 16;

	struct run run = { .c = c,
			   .cie = cie,
			   .state = { .head = HEAD_BYTE(cfa, UNWIND_CFA_REG) |
					      ODD(ODD_CFA_REGISTER | ODD_CFA_OFFSET | ODD_RA) },
			   .vaddr = vaddr + (uint64_t)(s.data - first),
			   .first = s.data };
	int r = run_instructions(&run, s);

	if (r < 0)
		return r;
	cie->initial = run.state;
	return r == 0 ? 0 : r == RUN_OPCODE ? ROWS_SKIP_OPCODE : ROWS_SKIP_CIE;
}

/* --- FDEs --- */

static int fde_run(struct cfi *c, const struct cfi_cie *cie, struct span s, uint64_t vaddr)
{
	uint64_t *skipped = c->rows->skipped;
	const uint8_t *first = s.data;
	uint64_t start, size, left, len;
	struct span part;
	uint32_t at;
	uint16_t number;
	int r;

	if (cie->encoding == (DW_EH_PE_pcrel | DW_EH_PE_sdata4) && s.len >= 8) {
		int32_t start_size[2]; /* what nearly all have */

		memcpy(start_size, s.data, 8);
		start = vaddr + (uint64_t)(int64_t)start_size[0];
		size = (uint64_t)(int64_t)start_size[1];
		s.data += 8;
		s.len -= 8;
		r = 0;
	} else {
		r = cfi_pointer(&s, cie->encoding, vaddr, &c->bases, NULL, &start);
		if (!r)
			r = read_value(&s, cie->encoding & 0x0f, &size);
	}
	if (!r && cie->sized && (!read_uleb(&s, &len) || !span_take(&s, len, &part)))
		r = 2;
	if (r) {
		skipped[r == 1 ? ROWS_SKIP_ENCODING : ROWS_SKIP_ENTRY]++;
		return 0;
	}
	if (!start || !size) {
		skipped[ROWS_SKIP_DISCARDED]++;
		return 0;
	}
	if (!rows_locate(c->rows, start, &at, &left)) {
		skipped[ROWS_SKIP_OUTSIDE]++;
		return 0;
	}
	if (size > left)
		size = left;
	r = rows_open(c->rows, at, at + (uint32_t)size);
	if (r)
		return r == ROWS_NONE ? 0 : r;
	r = rows_reserve(c->rows, s.len + 2);
	if (r)
		return r;

	struct run run = {
		.c = c,
		.cie = cie,
		.state = cie->initial,
		.vaddr = vaddr + (uint64_t)(s.data - first),
		.first = s.data,
		.function = start,
		.size = c->rows->pen.end - at,
		.at = at,
		.dirty = true,
	};

	r = run_instructions(&run, s);
	if (r < 0)
		return r;
	if (r != RUN_END) {
		skipped[r == RUN_OPCODE ? ROWS_SKIP_OPCODE : ROWS_SKIP_INSTRUCTIONS]++;
		r = unsupported_rule(c, &number);
		if (!r)
			r = rows_add(c->rows, at + (uint32_t)run.loc, number);
		if (r)
			return r;
	} else if (cie->signal && run.state.ra != VALUE_AT_REG) {
		skipped[ROWS_SKIP_SIGNAL_LAYOUT]++;
	}
	rows_close(c->rows);
	return 0;
}

/* --- sections --- */

void cfi_init(struct cfi *c, struct rows *rows, bool eh, uint64_t vaddr,
	      const struct cfi_bases *bases)
{
	*c = (struct cfi){
		.rows = rows, .eh = eh, .vaddr = vaddr, .bases = *bases, .unsupported = -1
	};
}

void cfi_done(struct cfi *c)
{
	free(c->cie);
	free(c->slot);
	free(c->states);
	c->cie = NULL;
	c->slot = NULL;
	c->states = NULL;
}

void cfi_skip(struct cfi *c, uint64_t n)
{
	c->pos += n;
	c->rows->skipped[ROWS_SKIP_ENTRY_LONG]++;
}

/* One whole entry. at: its offset in the section; body: what its length counts, which begins at
 * body_at. */
static int entry(struct cfi *c, uint64_t at, struct span body, uint64_t body_at, bool wide)
{
	uint64_t id = 0;
	size_t id_size = wide && !c->eh ? 8 : 4; /* in .eh_frame it has four bytes always */
	bool is_cie;

	if (!span_read(&body, &id, id_size)) {
		c->rows->skipped[ROWS_SKIP_ENTRY]++;
		return 0;
	}
	is_cie = c->eh ? id == 0 : id == (wide ? UINT64_MAX : UINT32_MAX);

	uint64_t vaddr = c->vaddr + body_at + id_size;

	if (is_cie) {
		struct cfi_cie cie = { .offset = at, .encoding = DW_EH_PE_absptr };
		int r = cie_parse(c, body, vaddr, &cie);

		if (r < 0)
			return r;
		c->rows->cies++;
		cie.usable = r == 0;
		if (r)
			c->rows->skipped[r]++;
		return cie_keep(c, &cie);
	}

	const struct cfi_cie *cie = cie_find(c, c->eh ? body_at - id : id);

	c->rows->fdes++;
	if (!cie || !cie->usable) {
		c->rows->skipped[ROWS_SKIP_NO_CIE]++;
		return 0;
	}
	return fde_run(c, cie, body, vaddr);
}

int cfi_feed(struct cfi *c, struct span bytes, bool last, size_t *ret_used, uint64_t *ret_want)
{
	struct span s = bytes;
	int r = 0;

	*ret_want = 0;
	while (!c->ended && s.len) {
		struct span at = s, body;
		uint32_t short_len = 0;
		uint64_t len, head = 4;

		if (!span_read(&s, &short_len, 4)) {
			*ret_want = 4;
			s = at;
			break;
		}
		len = short_len;
		if (short_len == UINT32_MAX) {
			head = 12;
			if (!span_read(&s, &len, 8)) {
				*ret_want = 12;
				s = at;
				break;
			}
		}
		if (!len) {
			/* Linkers leave these inside, too, where crtend.o does not come last. */
			c->pos += head;
			c->ended = c->stop_at_zero;
			continue;
		}
		if (!span_take(&s, len, &body)) {
			*ret_want = len > UINT64_MAX - head ? UINT64_MAX : len + head;
			s = at;
			break;
		}
		r = entry(c, c->pos, body, c->pos + head, head == 12);
		if (r)
			break;
		c->pos += len + head;
	}
	if (*ret_want && last) {
		/* Cut short, or lies about its length. */
		c->rows->skipped[ROWS_SKIP_ENTRY]++;
		c->ended = true;
	}
	*ret_used = bytes.len - s.len;
	return r;
}
