// SPDX-License-Identifier: Apache-2.0
/*
 * The interpreter keeps a struct cfi_state, which DW_CFA_ instructions change, and makes a rule of
 * it only where the location advances and
 * something that matters has changed: of the registers, only RBP and the return address do.
 */
#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include "tools/prof-deltas/cfi.h"
#include "tools/prof-deltas/expr.h"

enum cfa_state { CFA_UNSET, CFA_REG, CFA_DEREF, CFA_PLT, CFA_BAD_EXPRESSION, CFA_BAD_REGISTER };
enum reg_state {
	REG_UNSET, /* no rule: the same value; for the return address column, none at all */
	REG_SAME,
	REG_UNDEFINED,
	REG_CFA,    /* saved at cfa + off */
	REG_REG,    /* in register reg */
	REG_AT_REG, /* saved at reg + off */
	REG_BAD,
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

/* A struct unwind_rule in registers. */
struct parts {
	uint32_t cfa, cfa_reg, rbp, ra, flags, ra_reg, rbp_reg;
	int32_t cfa_off, cfa_add, rbp_off;
};

/* False when the row can only be `end`; counted. */
static inline bool compose(struct cfi *c, const struct cfi_cie *cie, const struct cfi_state *s,
			   struct unwind_rule *ret)
{
	struct parts rule = { 0 };
	uint64_t *skipped = c->rows->skipped;

	switch (s->cfa) {
	case CFA_REG:
		rule.cfa = UNWIND_CFA_REG;
		rule.cfa_reg = s->cfa_reg;
		rule.cfa_off = s->cfa_off;
		break;
	case CFA_DEREF:
		rule.cfa = UNWIND_CFA_DEREF;
		rule.cfa_reg = s->cfa_reg;
		rule.cfa_off = s->cfa_off;
		rule.cfa_add = s->cfa_add;
		break;
	case CFA_PLT:
		rule.cfa = UNWIND_CFA_PLT;
		rule.cfa_off = s->cfa_off;
		break;
	case CFA_BAD_EXPRESSION:
		skipped[ROWS_SKIP_CFA_EXPRESSION]++;
		return false;
	default:
		skipped[ROWS_SKIP_CFA_REGISTER]++;
		return false;
	}

	switch (s->rbp) {
	case REG_UNSET:
	case REG_SAME:
		break;
	case REG_CFA:
		rule.rbp = UNWIND_RBP_CFA;
		rule.rbp_off = s->rbp_off;
		break;
	case REG_AT_REG:
		rule.rbp = UNWIND_RBP_DEREF_REG;
		rule.rbp_reg = s->rbp_reg;
		rule.rbp_off = s->rbp_off;
		break;
	case REG_UNDEFINED:
		rule.rbp = UNWIND_RBP_UNDEFINED;
		break;
	default:
		skipped[ROWS_SKIP_RBP_RULE]++;
		rule.rbp = UNWIND_RBP_UNDEFINED;
		break;
	}

	switch (s->ra) {
	case REG_CFA:
		if (s->ra_off == -8) {
			rule.ra = UNWIND_RA_CFA;
		} else if (rule.cfa == UNWIND_CFA_REG) {
			rule.ra = UNWIND_RA_CFA_OFF;
			rule.cfa_add = s->ra_off;
		} else {
			skipped[ROWS_SKIP_RA_RULE]++;
			return false;
		}
		break;
	case REG_UNDEFINED:
		rule.ra = UNWIND_RA_UNDEFINED;
		break;
	case REG_REG:
		rule.ra = UNWIND_RA_REG;
		rule.ra_reg = s->ra_reg;
		break;
	case REG_AT_REG:
		if (cie->signal && s->ra_reg == UNWIND_REG_RSP && s->ra_off == SIGNAL_RIP &&
		    rule.cfa == UNWIND_CFA_DEREF && rule.cfa_reg == UNWIND_REG_RSP &&
		    rule.cfa_off == SIGNAL_RSP && rule.cfa_add == 0) {
			rule.flags = UNWIND_SIGNAL_FRAME;
			break;
		}
		skipped[ROWS_SKIP_RA_RULE]++;
		return false;
	case REG_UNSET:
		/* A column that is a real register, and has no rule, is that register. */
		if (cie->ra_column < UNWIND_REG_MAX && cie->ra_column != UNWIND_REG_RSP) {
			rule.ra = UNWIND_RA_REG;
			rule.ra_reg = (uint32_t)cie->ra_column;
			break;
		}
		skipped[ROWS_SKIP_RA_RULE]++;
		return false;
	default:
		skipped[ROWS_SKIP_RA_RULE]++;
		return false;
	}

	/* In whole words: hashing reads it in whole words at once, which stalls on bytes stored one
	 * by one. */
	uint64_t head = rule.cfa | rule.cfa_reg << 8 | rule.rbp << 16 | rule.ra << 24 |
			(uint64_t)(rule.flags | rule.ra_reg << 8 | rule.rbp_reg << 16) << 32;
	uint64_t offsets = (uint32_t)rule.cfa_off | (uint64_t)(uint32_t)rule.cfa_add << 32;

	static_assert(offsetof(struct unwind_rule, rbp_reg) == 6 &&
			      offsetof(struct unwind_rule, cfa_off) == 8 &&
			      offsetof(struct unwind_rule, rbp_off) == 16,
		      "as put together above");
	memcpy(ret, &head, 8);
	memcpy((char *)ret + 8, &offsets, 8);
	memcpy((char *)ret + 16, &rule.rbp_off, 4);
	return true;
}

static int emit(struct cfi *c, const struct cfi_cie *cie, const struct cfi_state *s, uint32_t at)
{
	struct unwind_rule rule;
	uint16_t number;
	int r;

	if (compose(c, cie, s, &rule)) {
		r = rows_rules_put(&c->rows->rules, &rule, &number);
		if (r < 0)
			return r;
		if (!r)
			return rows_add(c->rows, at, number);
		c->rows->skipped[ROWS_SKIP_RULE_LIMIT]++;
	}
	r = unsupported_rule(c, &number);
	return r < 0 ? r : rows_add(c->rows, at, number);
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
	bool dirty;
};

/* Apart from enum rows_status, which also comes through. */
enum run_verdict {
	RUN_END = 100, /* the location went past the function: what follows has no effect */
	RUN_OPCODE,
	RUN_SENSELESS,
};

static int advance(struct run *run, uint64_t delta)
{
	uint64_t bytes;

	if (!run->size)
		return RUN_SENSELESS;
	if (!delta)
		return 0;
	if (run->dirty) {
		int r = emit(run->c, run->cie, &run->state, run->at + (uint32_t)run->loc);

		if (r)
			return r;
		run->dirty = false;
	}
	if (__builtin_mul_overflow(delta, run->cie->code_align, &bytes) ||
	    bytes >= run->size - run->loc)
		return RUN_END;
	run->loc += bytes;
	return 0;
}

static bool to_s32(int64_t value, int32_t *ret)
{
	*ret = (int32_t)value;
	return value == *ret;
}

static void cfa_register(struct cfi_state *s, uint64_t reg)
{
	if (s->cfa != CFA_REG || reg >= UNWIND_REG_MAX)
		s->cfa = CFA_BAD_REGISTER;
	else
		s->cfa_reg = (uint8_t)reg;
}

static void cfa_offset(struct cfi_state *s, int64_t off)
{
	if (s->cfa != CFA_REG || !to_s32(off, &s->cfa_off))
		s->cfa = CFA_BAD_REGISTER;
}

static void cfa_define(struct cfi_state *s, uint64_t reg, int64_t off)
{
	s->cfa = CFA_REG;
	s->cfa_add = 0;
	cfa_register(s, reg);
	cfa_offset(s, off);
}

/* A register's new rule, where the register matters. */
static inline void reg_set(struct run *run, uint64_t reg, enum reg_state kind, uint64_t in,
			   int64_t off)
{
	struct cfi_state *s = &run->state;
	int32_t small;

	if (reg != UNWIND_REG_RBP && reg != run->cie->ra_column)
		return;
	if (!to_s32(off, &small) || in >= UNWIND_REG_MAX)
		kind = REG_BAD;
	if (reg == UNWIND_REG_RBP) {
		s->rbp = kind == REG_REG && in == UNWIND_REG_RBP ? REG_SAME
			 : kind == REG_REG			 ? REG_BAD
								 : kind;
		s->rbp_reg = (uint8_t)in;
		s->rbp_off = small;
	}
	if (reg == run->cie->ra_column) {
		s->ra = kind;
		s->ra_reg = (uint8_t)in;
		s->ra_off = small;
	}
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

	if (reg == UNWIND_REG_RBP) {
		s->rbp = initial->rbp;
		s->rbp_reg = initial->rbp_reg;
		s->rbp_off = initial->rbp_off;
		run->dirty = true;
	}
	if (reg == run->cie->ra_column) {
		s->ra = initial->ra;
		s->ra_reg = initial->ra_reg;
		s->ra_off = initial->ra_off;
		run->dirty = true;
	}
}

static bool cfa_expression(struct run *run, struct span block)
{
	struct cfi_state *s = &run->state;
	struct expr e;
	int r = expr_parse(block, &e);

	run->dirty = true;
	s->cfa = CFA_BAD_EXPRESSION;
	if (r)
		return r != EXPR_MALFORMED;
	s->cfa = e.kind == EXPR_REG ? CFA_REG : e.kind == EXPR_DEREF ? CFA_DEREF : CFA_PLT;
	s->cfa_reg = e.kind == EXPR_PLT ? 0 : e.reg;
	s->cfa_off = e.off;
	s->cfa_add = e.kind == EXPR_DEREF ? e.add : 0;
	return true;
}

static bool reg_expression(struct run *run, uint64_t reg, struct span block)
{
	struct expr e;

	if (reg != UNWIND_REG_RBP && reg != run->cie->ra_column)
		return true;

	int r = expr_parse(block, &e);

	if (r == EXPR_MALFORMED)
		return false;
	if (r || e.kind != EXPR_REG)
		reg_set(run, reg, REG_BAD, 0, 0);
	else
		reg_set(run, reg, REG_AT_REG, e.reg, e.off);
	return true;
}

/* Runs s to its end. 0, enum run_verdict, or what emit returns: ROWS_TOO_LARGE, -ENOMEM. */
static int run_instructions(struct run *run, struct span s)
{
	struct cfi *c = run->c;
	uint64_t reg, u, value = 0;
	int64_t off;
	uint8_t op;
	uint32_t depth = 0;
	struct span block;
	int r;

	while (s.len) {
		op = *s.data;
		s.data++;
		s.len--;
		switch (op >> 6) {
		case DW_CFA_advance_loc >> 6:
			r = advance(run, op & 0x3f);
			if (r)
				return r;
			continue;
		case DW_CFA_offset >> 6:
			if (!read_uleb(&s, &u))
				return RUN_SENSELESS;
			reg_set(run, op & 0x3f, REG_CFA, 0, scaled(run, (int64_t)u));
			continue;
		case DW_CFA_restore >> 6:
			reg_restore(run, op & 0x3f);
			continue;
		default:
			break;
		}
		switch (op) {
		case DW_CFA_nop:
			break;
		case DW_CFA_set_loc:
			u = run->vaddr + (uint64_t)(s.data - run->first);
			if (cfi_pointer(&s, run->cie->encoding, u, &c->bases, &run->function,
					&value) != 0)
				return RUN_SENSELESS;
			/* A CIE has no location, and no function is open for its rows. */
			if (!run->size || value < run->function + run->loc)
				return RUN_SENSELESS;
			value -= run->function + run->loc;
			if (run->dirty && value) {
				r = emit(c, run->cie, &run->state, run->at + (uint32_t)run->loc);
				if (r)
					return r;
				run->dirty = false;
			}
			if (value >= run->size - run->loc)
				return RUN_END;
			run->loc += value;
			break;
		case DW_CFA_advance_loc1:
		case DW_CFA_advance_loc2:
		case DW_CFA_advance_loc4:
		case DW_CFA_MIPS_advance_loc8:
			value = 0;
			if (!span_read(&s, &value,
				       op == DW_CFA_MIPS_advance_loc8
					       ? 8
					       : (size_t)1 << (op - DW_CFA_advance_loc1)))
				return RUN_SENSELESS;
			r = advance(run, value);
			if (r)
				return r;
			break;
		case DW_CFA_def_cfa_offset:
			if (!read_uleb(&s, &u))
				return RUN_SENSELESS;
			cfa_offset(&run->state, (int64_t)u);
			run->dirty = true;
			break;
		case DW_CFA_def_cfa_offset_sf:
			if (!expr_sleb(&s, &off))
				return RUN_SENSELESS;
			cfa_offset(&run->state, scaled(run, off));
			run->dirty = true;
			break;
		case DW_CFA_def_cfa_register:
			if (!read_uleb(&s, &reg))
				return RUN_SENSELESS;
			cfa_register(&run->state, reg);
			run->dirty = true;
			break;
		case DW_CFA_def_cfa:
			if (!read_uleb(&s, &reg) || !read_uleb(&s, &u))
				return RUN_SENSELESS;
			cfa_define(&run->state, reg, (int64_t)u);
			run->dirty = true;
			break;
		case DW_CFA_def_cfa_sf:
			if (!read_uleb(&s, &reg) || !expr_sleb(&s, &off))
				return RUN_SENSELESS;
			cfa_define(&run->state, reg, scaled(run, off));
			run->dirty = true;
			break;
		case DW_CFA_def_cfa_expression:
			if (!read_uleb(&s, &u) || !span_take(&s, u, &block) ||
			    !cfa_expression(run, block))
				return RUN_SENSELESS;
			break;
		case DW_CFA_expression:
			if (!read_uleb(&s, &reg) || !read_uleb(&s, &u) ||
			    !span_take(&s, u, &block) || !reg_expression(run, reg, block))
				return RUN_SENSELESS;
			break;
		case DW_CFA_val_expression:
			if (!read_uleb(&s, &reg) || !read_uleb(&s, &u) || !span_take(&s, u, &block))
				return RUN_SENSELESS;
			reg_set(run, reg, REG_BAD, 0, 0);
			break;
		case DW_CFA_offset_extended:
			if (!read_uleb(&s, &reg) || !read_uleb(&s, &u))
				return RUN_SENSELESS;
			reg_set(run, reg, REG_CFA, 0, scaled(run, (int64_t)u));
			break;
		case DW_CFA_offset_extended_sf:
			if (!read_uleb(&s, &reg) || !expr_sleb(&s, &off))
				return RUN_SENSELESS;
			reg_set(run, reg, REG_CFA, 0, scaled(run, off));
			break;
		case DW_CFA_GNU_negative_offset_extended:
			if (!read_uleb(&s, &reg) || !read_uleb(&s, &u))
				return RUN_SENSELESS;
			off = scaled(run, (int64_t)u);
			reg_set(run, reg, REG_CFA, 0, off == INT64_MIN ? INT64_MAX : -off);
			break;
		case DW_CFA_val_offset:
			if (!read_uleb(&s, &reg) || !read_uleb(&s, &u))
				return RUN_SENSELESS;
			reg_set(run, reg, REG_BAD, 0, 0);
			break;
		case DW_CFA_val_offset_sf:
			if (!read_uleb(&s, &reg) || !expr_sleb(&s, &off))
				return RUN_SENSELESS;
			reg_set(run, reg, REG_BAD, 0, 0);
			break;
		case DW_CFA_restore_extended:
			if (!read_uleb(&s, &reg))
				return RUN_SENSELESS;
			reg_restore(run, reg);
			break;
		case DW_CFA_undefined:
			if (!read_uleb(&s, &reg))
				return RUN_SENSELESS;
			reg_set(run, reg, REG_UNDEFINED, 0, 0);
			break;
		case DW_CFA_same_value:
			if (!read_uleb(&s, &reg))
				return RUN_SENSELESS;
			reg_set(run, reg, REG_SAME, 0, 0);
			break;
		case DW_CFA_register:
			if (!read_uleb(&s, &reg) || !read_uleb(&s, &u))
				return RUN_SENSELESS;
			reg_set(run, reg, REG_REG, u, 0);
			break;
		case DW_CFA_remember_state:
			if (depth == CFI_MAX_STATES)
				return RUN_SENSELESS;
			c->states[depth++] = run->state;
			break;
		case DW_CFA_restore_state:
			if (!depth)
				return RUN_SENSELESS;
			run->state = c->states[--depth];
			run->dirty = true;
			break;
		case DW_CFA_GNU_args_size:
			if (!read_uleb(&s, &u))
				return RUN_SENSELESS;
			break;
		default:
			return RUN_OPCODE;
		}
	}
	return 0;
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
			return ROWS_SKIP_CIE_AUGMENTATION;
		}
	}
	return 0;
}

/* Takes the CIE apart; vaddr: of the first byte of s, which begins after the id. 0, or the enum
 * rows_skip (never 0: that is ENTRY) why it is of no use. */
static int cie_parse(struct cfi *c, struct span s, uint64_t vaddr, struct cfi_cie *cie)
{
	const uint8_t *first = s.data, *nul;
	uint8_t version, small, sizes[2];
	uint64_t len;
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
	if (!read_uleb(&s, &cie->code_align) || !expr_sleb(&s, &cie->data_align))
		return ROWS_SKIP_CIE;
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
	} else if (letters[0]) {
		/* Without a size, letters that add bytes of unknown length cannot be passed over.
		 * */
		return ROWS_SKIP_CIE_AUGMENTATION;
	}

	struct run run = {
		.c = c, .cie = cie, .vaddr = vaddr + (uint64_t)(s.data - first), .first = s.data
	};
	int r = run_instructions(&run, s);

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

	r = cfi_pointer(&s, cie->encoding, vaddr, &c->bases, NULL, &start);
	if (!r)
		r = read_value(&s, cie->encoding & 0x0f, &size);
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

	struct run run = {
		.c = c,
		.cie = cie,
		.state = cie->initial,
		.vaddr = vaddr + (uint64_t)(s.data - first),
		.first = s.data,
		.function = start,
		.size = size,
		.at = at,
		.dirty = true,
	};

	r = run_instructions(&run, s);
	if (r < 0 || r == ROWS_TOO_LARGE)
		return r;
	if (r == RUN_OPCODE || r == RUN_SENSELESS) {
		skipped[r == RUN_OPCODE ? ROWS_SKIP_OPCODE : ROWS_SKIP_INSTRUCTIONS]++;
		r = unsupported_rule(c, &number);
		if (!r)
			r = rows_add(c->rows, at + (uint32_t)run.loc, number);
	} else {
		if (cie->signal && run.state.ra != REG_AT_REG)
			skipped[ROWS_SKIP_SIGNAL_LAYOUT]++;
		r = run.dirty ? emit(c, cie, &run.state, at + (uint32_t)run.loc) : 0;
	}
	rows_close(c->rows);
	return r;
}

/* --- sections --- */

int cfi_init(struct cfi *c, struct rows *rows, bool eh, uint64_t vaddr,
	     const struct cfi_bases *bases)
{
	*c = (struct cfi){
		.rows = rows, .eh = eh, .vaddr = vaddr, .bases = *bases, .unsupported = -1
	};
	c->states = malloc(CFI_MAX_STATES * sizeof(*c->states));
	return c->states ? 0 : -ENOMEM;
}

void cfi_done(struct cfi *c)
{
	free(c->cie);
	free(c->slot);
	free(c->states);
	*c = (struct cfi){ 0 };
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
