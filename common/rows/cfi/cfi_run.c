/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/cfi/cfi_run.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "bpf/mix.h"
#include "common/base/bytes/numbers.h"
#include "common/rows/cfi/expr.h"

void cfi_machine_init(struct cfi_machine *m, struct rows *rows, const struct ehpointer_bases *bases)
{
	*m = (struct cfi_machine){ .rows = rows, .bases = *bases, .unsupported = -1 };
}

void cfi_machine_done(struct cfi_machine *m)
{
	free(m->states);
	m->states = NULL;
}

/* --- rules --- */

int cfi_unsupported(struct cfi_machine *m, uint16_t *ret)
{
	struct unwind_rule rule = { .cfa = UNWIND_CFA_END, .cfa_add = UNWIND_END_UNSUPPORTED };

	if (m->unsupported < 0) {
		uint16_t number;
		int r = rows_rules_put(&m->rows->rules, &rule, &number);

		if (r < 0)
			return r;
		m->unsupported = r ? ROWS_RULE_GAP : number;
	}
	*ret = (uint16_t)m->unsupported;
	return 0;
}

/* Makes the rule of a state that is not in the cache, and gets its number. */
static int rule_number(struct cfi_machine *m, const struct cfi_cie *cie, const struct cfi_state *s,
		       struct cfi_known *known, uint16_t *ret)
{
	uint64_t *skipped = m->rows->skipped;
	struct unwind_rule rule;

	if (!cfi_state_rule(s, cie->ra_column, cie->signal, skipped, &rule))
		return cfi_unsupported(m, ret);
	if (m->rows->tracked == UNWIND_REG_R12)
		rule.flags |= UNWIND_R12;

	int r = rows_rules_put(&m->rows->rules, &rule, ret);

	if (r > 0) {
		skipped[ROWS_SKIP_RULE_LIMIT]++;
		return cfi_unsupported(m, ret);
	}
	if (!r && !(s->head & CFI_ODD(0xff)))
		*known = (struct cfi_known){ .head = s->head, .where = s->where, .number = *ret };
	return r;
}

static inline struct cfi_known *known_at(struct cfi_machine *m, uint64_t head, uint64_t where)
{
	return &m->known[((where ^ (head << 20 | head >> 44)) * MIX_GOLDEN) >> 32 &
			 (CFI_CACHE - 1)];
}

/* --- instructions --- */

static inline int64_t scaled(const struct cfi_run *run, int64_t factored)
{
	int64_t product;

	/* No rule can hold INT64_MAX, so it marks an overflow. */
	return __builtin_mul_overflow(factored, run->cie->data_align, &product) ? INT64_MAX
										: product;
}

/* Maps a register to the one that the state stores it as. The third register that rows restore,
 * besides RSP and RBP, is stored as RBX. */
static inline uint64_t kept_as(const struct cfi_run *run, uint64_t reg)
{
	return reg == run->m->rows->tracked ? UNWIND_REG_RBX : reg;
}

/* Sets a register's rule, if the register affects rows. */
static void reg_set(struct cfi_run *run, uint64_t reg, enum cfi_value kind, uint64_t in,
		    int64_t off)
{
	if (reg < 2 && kind == CFI_VALUE_AT_CFA)
		run->results |= (uint8_t)(1 << reg);
	if (reg > 63 || !(run->cie->matters >> reg & 1))
		return;
	cfi_state_set(&run->state, run->cie->ra_column, kept_as(run, reg), kind, in, off);
	run->dirty = true;
}

static void reg_restore(struct cfi_run *run, uint64_t reg)
{
	if (reg > 63 || !(run->cie->matters >> reg & 1))
		return;
	cfi_state_restore(&run->state, run->cie->ra_column, kept_as(run, reg), &run->cie->initial);
	run->dirty = true;
}

static void cfa_define(struct cfi_run *run, uint64_t reg, int64_t off)
{
	cfi_state_cfa_register(&run->state, reg);
	cfi_state_cfa_offset(&run->state, off);
	run->dirty = true;
}

static void cfa_offset(struct cfi_run *run, int64_t off)
{
	cfi_state_cfa_offset(&run->state, off);
	run->dirty = true;
}

/* value: the expression gives the register's value, not the place where it is saved. */
static bool reg_expression(struct cfi_run *run, uint64_t reg, struct span block, bool value)
{
	struct expr e;

	if (reg > 63 || !(run->cie->matters >> reg & 1))
		return true;

	int r = expr_parse(block, true, &e);

	if (r == EXPR_MALFORMED)
		return false;
	if (!r && e.index) /* no rule can express an index here */
		reg_set(run, reg, CFI_VALUE_BAD, 0, 0);
	else if (!r && e.kind == EXPR_REG)
		reg_set(run, reg, value ? CFI_VALUE_REG : CFI_VALUE_AT_REG, e.reg, e.off);
	else if (!r && e.kind == EXPR_CFA)
		reg_set(run, reg, value ? CFI_VALUE_CFA : CFI_VALUE_AT_CFA, 0, e.off);
	else if (!r && e.kind == EXPR_DEREF && value && e.add == 0)
		reg_set(run, reg, CFI_VALUE_AT_REG, e.reg, e.off);
	else
		reg_set(run, reg, CFI_VALUE_BAD, 0, 0);
	return true;
}

static bool remember(struct cfi_run *run)
{
	struct cfi_machine *m = run->m;

	if (run->depth == m->state_cap) {
		size_t cap = m->state_cap ? m->state_cap * 2 : 16;
		struct cfi_state *grown = realloc(m->states, cap * sizeof(*grown));

		if (!grown)
			return false;
		m->states = grown;
		m->state_cap = cap;
	}
	m->states[run->depth++] = run->state;
	return true;
}

/* Runs a rare instruction, whose operands are at the front of s. *ret_bytes is how far the location
 * advances. Returns 0, -ENOMEM or enum cfi_run_verdict. */
static int run_seldom(struct cfi_run *run, uint8_t op, struct span *s, uint64_t *ret_bytes)
{
	struct cfi_machine *m = run->m;
	uint64_t reg, u, value = 0;
	int64_t off;
	struct span block;

	*ret_bytes = 0;
	switch (op) {
	case DW_CFA_nop:
		break;
	case DW_CFA_set_loc:
		u = run->vaddr + (uint64_t)(s->data - run->first);
		if (ehpointer_read(s, run->cie->encoding, u, &m->bases, &run->function, &value) !=
		    0)
			return CFI_RUN_SENSELESS;
		/* A CIE has no location, and there is no open function for its rows. */
		if (!run->size || value < run->function + run->loc)
			return CFI_RUN_SENSELESS;
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
			return CFI_RUN_SENSELESS;
		if (__builtin_mul_overflow(value, run->cie->code_align, ret_bytes))
			*ret_bytes = UINT64_MAX;
		break;
	case DW_CFA_def_cfa_offset:
		if (!leb128_unsigned(s, &u))
			return CFI_RUN_SENSELESS;
		cfa_offset(run, numbers_signed(u));
		break;
	case DW_CFA_def_cfa_offset_sf:
		if (!leb128_signed(s, &off))
			return CFI_RUN_SENSELESS;
		cfa_offset(run, scaled(run, off));
		break;
	case DW_CFA_def_cfa_register:
		if (!leb128_unsigned(s, &reg))
			return CFI_RUN_SENSELESS;
		cfi_state_cfa_register(&run->state, reg);
		run->dirty = true;
		break;
	case DW_CFA_def_cfa:
		if (!leb128_unsigned(s, &reg) || !leb128_unsigned(s, &u))
			return CFI_RUN_SENSELESS;
		cfa_define(run, reg, numbers_signed(u));
		break;
	case DW_CFA_def_cfa_sf:
		if (!leb128_unsigned(s, &reg) || !leb128_signed(s, &off))
			return CFI_RUN_SENSELESS;
		cfa_define(run, reg, scaled(run, off));
		break;
	case DW_CFA_def_cfa_expression:
		if (!leb128_unsigned(s, &u) || !span_take(s, u, &block) ||
		    !cfi_state_cfa_expression(&run->state, block))
			return CFI_RUN_SENSELESS;
		run->dirty = true;
		break;
	case DW_CFA_expression:
	case DW_CFA_val_expression:
		if (!leb128_unsigned(s, &reg) || !leb128_unsigned(s, &u) ||
		    !span_take(s, u, &block) ||
		    !reg_expression(run, reg, block, op == DW_CFA_val_expression))
			return CFI_RUN_SENSELESS;
		break;
	case DW_CFA_offset_extended:
		if (!leb128_unsigned(s, &reg) || !leb128_unsigned(s, &u))
			return CFI_RUN_SENSELESS;
		reg_set(run, reg, CFI_VALUE_AT_CFA, 0, scaled(run, (int64_t)u));
		break;
	case DW_CFA_offset_extended_sf:
		if (!leb128_unsigned(s, &reg) || !leb128_signed(s, &off))
			return CFI_RUN_SENSELESS;
		reg_set(run, reg, CFI_VALUE_AT_CFA, 0, scaled(run, off));
		break;
	case DW_CFA_GNU_negative_offset_extended:
		if (!leb128_unsigned(s, &reg) || !leb128_unsigned(s, &u))
			return CFI_RUN_SENSELESS;
		off = scaled(run, (int64_t)u);
		reg_set(run, reg, CFI_VALUE_AT_CFA, 0, off == INT64_MIN ? INT64_MAX : -off);
		break;
	case DW_CFA_val_offset:
		if (!leb128_unsigned(s, &reg) || !leb128_unsigned(s, &u))
			return CFI_RUN_SENSELESS;
		reg_set(run, reg, CFI_VALUE_CFA, 0, scaled(run, (int64_t)u));
		break;
	case DW_CFA_val_offset_sf:
		if (!leb128_unsigned(s, &reg) || !leb128_signed(s, &off))
			return CFI_RUN_SENSELESS;
		reg_set(run, reg, CFI_VALUE_CFA, 0, scaled(run, off));
		break;
	case DW_CFA_restore_extended:
		if (!leb128_unsigned(s, &reg))
			return CFI_RUN_SENSELESS;
		reg_restore(run, reg);
		break;
	case DW_CFA_undefined:
		if (!leb128_unsigned(s, &reg))
			return CFI_RUN_SENSELESS;
		reg_set(run, reg, CFI_VALUE_UNDEFINED, 0, 0);
		break;
	case DW_CFA_same_value:
		if (!leb128_unsigned(s, &reg))
			return CFI_RUN_SENSELESS;
		reg_set(run, reg, CFI_VALUE_SAME, 0, 0);
		break;
	case DW_CFA_register:
		if (!leb128_unsigned(s, &reg) || !leb128_unsigned(s, &u))
			return CFI_RUN_SENSELESS;
		reg_set(run, reg, CFI_VALUE_REG, u, 0);
		break;
	case DW_CFA_remember_state:
		return remember(run) ? 0 : -ENOMEM;
	case DW_CFA_restore_state:
		if (!run->depth)
			return CFI_RUN_SENSELESS;
		run->state = m->states[--run->depth];
		run->dirty = true;
		break;
	case DW_CFA_GNU_args_size:
		if (!leb128_unsigned(s, &u))
			return CFI_RUN_SENSELESS;
		break;
	default:
		switch (op & 0xc0) {
		case DW_CFA_advance_loc:
			*ret_bytes = (uint64_t)(op & 0x3f) * run->cie->code_align;
			break;
		case DW_CFA_offset:
			if (!leb128_unsigned(s, &u))
				return CFI_RUN_SENSELESS;
			reg_set(run, op & 0x3f, CFI_VALUE_AT_CFA, 0, scaled(run, (int64_t)u));
			break;
		case DW_CFA_restore:
			reg_restore(run, op & 0x3f);
			break;
		default:
			return CFI_RUN_OPCODE;
		}
	}
	return 0;
}

/* Adds the row of a state at `at` if its rule is not in the cache. */
static int row_seldom(struct cfi_run *run, struct rows_pen *pen, struct cfi_known *known,
		      uint32_t at)
{
	uint16_t number;
	int r = rule_number(run->m, run->cie, &run->state, known, &number);

	if (!r)
		rows_pen_put(pen, at, number);
	return r;
}

static int put_row(struct cfi_run *run, uint64_t loc)
{
	struct cfi_known *known = known_at(run->m, run->state.head, run->state.where);

	run->dirty = false;
	return row_seldom(run, &run->m->rows->pen, known, run->at + (uint32_t)loc);
}

/* Adds a row that comes from the code and not from a table, so it counts as derived. */
static int put_derived(struct cfi_run *run, uint32_t loc, struct unwind_rule rule)
{
	uint16_t number;

	rule.flags = UNWIND_DERIVED;

	int r = rows_rules_put(&run->m->rows->rules, &rule, &number);

	if (r >= 0)
		rows_pen_put(&run->m->rows->pen, run->at + loc, r ? ROWS_RULE_GAP : number);
	return r < 0 ? r : 0;
}

/* Adds rows for the part where the function's own rules do not hold. The CFA is valid as long as
 * the return address is known. The caller's registers are lost. */
static int put_spoiled(struct cfi_run *run)
{
	const struct unwind_rule end = { .cfa = UNWIND_CFA_END, .cfa_add = UNWIND_END_UNSUPPORTED };
	const struct ehreturn *e = &run->spoiled;
	struct unwind_rule of;
	int r;

	if (!e->ra ||
	    !cfi_state_rule(&run->state, run->cie->ra_column, false, run->m->rows->skipped, &of) ||
	    of.cfa != UNWIND_CFA_REG || of.cfa_reg != UNWIND_REG_RBP || of.cfa_off < 0 ||
	    of.cfa_off > 4096)
		return put_derived(run, e->from, end);
	r = put_derived(run, e->from,
			(struct unwind_rule){ .cfa = UNWIND_CFA_REG,
					      .cfa_reg = UNWIND_REG_RBP,
					      .cfa_off = of.cfa_off,
					      .rbp = UNWIND_RBP_UNDEFINED,
					      .ra = UNWIND_RA_CFA_OFF,
					      .cfa_add = e->ra - of.cfa_off });
	return r || e->ra_to >= e->to ? r : put_derived(run, e->ra_to, end);
}

/* Ends a location: adds its row if anything has changed, and advances. Returns 0, CFI_RUN_END or
 * -ENOMEM. */
static int run_advance(struct cfi_run *run, uint64_t bytes)
{
	uint64_t from = run->loc, left = run->size - from,
		 to = from + (bytes < left ? bytes : left);
	int r = 0;

	if (run->dirty && (from < run->spoiled.from || from >= run->spoiled.to))
		r = put_row(run, from);
	if (!r && run->spoiled.to && from <= run->spoiled.from && run->spoiled.from < to) {
		r = put_spoiled(run);
		run->dirty = true;
	}
	if (!r && from < run->spoiled.to && run->spoiled.to < to)
		r = put_row(run, run->spoiled.to);
	if (r)
		return r;
	if (bytes >= left) {
		run->beyond = bytes == left;
		return CFI_RUN_END;
	}
	run->loc = to;
	return 0;
}

/* Runs all of s, one instruction at a time: for CIEs, and where a CIE's factors are unusual.
 * Returns as cfi_run does. */
static int run_slowly(struct cfi_run *run, struct span s)
{
	uint64_t bytes;
	uint8_t op;
	int r = 0;

	while (!r && ehpointer_u8(&s, &op)) {
		r = run_seldom(run, op, &s, &bytes);
		if (r || !bytes)
			continue;
		r = run->size ? run_advance(run, bytes) : CFI_RUN_SENSELESS;
	}
	return r || !run->size ? r : run_advance(run, UINT64_MAX);
}

/*
 * Runs common instructions with the state in local variables, which the compiler keeps in
 * registers. A row takes about ten nanoseconds, and memory accesses for each field would take most
 * of that. run_seldom runs the other instructions, after the state is written back.
 */
int cfi_run(struct cfi_run *run, struct span s)
{
	struct cfi_machine *m = run->m;
	const struct cfi_cie *cie = run->cie;
	const uint8_t *p = s.data, *end = p + s.len;
	uint64_t head = run->state.head, where = run->state.where, bytes;
	/* Relative to the base of the rows. */
	uint64_t at = run->at, limit = run->at + run->size;
	struct rows_pen pen = m->rows->pen;
	bool dirty = run->dirty;
	int r;

	if (!cie->plain || !run->size || run->spoiled.to)
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
			/* The operand has one byte, or two in the frames of large functions. */
			if (end - p < 2 || (p[0] & p[1] & 0x80) || (head & 0xff) != UNWIND_CFA_REG)
				goto seldom;
			where = cfi_where_cfa(where,
					      p[0] & 0x80 ? (p[0] & 0x7fu) | p[1] << 7 : p[0]);
			p += 1 + (p[0] >> 7);
			head &= ~CFI_ODD(CFI_ODD_CFA_OFFSET);
			dirty = true;
			continue;
		case DW_CFA_def_cfa_register:
			if (p == end || *p >= UNWIND_REG_MAX || (head & 0xff) != UNWIND_CFA_REG)
				goto seldom;
			head = cfi_head_set(
				head, CFI_HEAD_BYTE(cfa_reg, 0xff) | CFI_ODD(CFI_ODD_CFA_REGISTER),
				CFI_HEAD_BYTE(cfa_reg, *p));
			p++;
			dirty = true;
			continue;
		case DW_CFA_def_cfa:
			if (end - p < 2 || p[0] >= UNWIND_REG_MAX || p[1] & 0x80)
				goto seldom;
			head = cfi_head_set(head, CFI_CFA_MASK | CFI_ODD_CFA,
					    CFI_HEAD_BYTE(cfa, UNWIND_CFA_REG) |
						    CFI_HEAD_BYTE(cfa_reg, p[0]));
			where = cfi_where_cfa(where, p[1]);
			p += 2;
			dirty = true;
			continue;
		case DW_CFA_offset | UNWIND_REG_RBP:
			if (p == end || *p & 0x80)
				goto seldom;
			head = cfi_head_set(head, CFI_RBP_MASK | CFI_ODD(CFI_ODD_RBP),
					    CFI_HEAD_BYTE(rbp, UNWIND_RBP_CFA));
			where = cfi_where_rbp(where, *p++ * -8u);
			dirty = true;
			continue;
		case DW_CFA_offset | UNWIND_REG_RBX:
			if (p == end || *p & 0x80)
				goto seldom;
			head = cfi_head_set(head, CFI_RBX_MASK, CFI_HEAD_BYTE(rbx, *p));
			p++;
			dirty = true;
			continue;
		case DW_CFA_offset | 8 ... DW_CFA_offset | 15: /* r8 to r15 */
			if (p == end || *p & 0x80)
				goto seldom;
			p++;
			continue;
		case DW_CFA_restore | UNWIND_REG_RBP:
			head = cfi_head_set(head, CFI_RBP_MASK | CFI_ODD(CFI_ODD_RBP),
					    cie->initial.head &
						    (CFI_RBP_MASK | CFI_ODD(CFI_ODD_RBP)));
			where = cfi_where_rbp(where, (uint32_t)(cie->initial.where >> 32));
			dirty = true;
			continue;
		case DW_CFA_restore | UNWIND_REG_RBX:
			head = cfi_head_set(head, CFI_RBX_MASK, cie->initial.head & CFI_RBX_MASK);
			dirty = true;
			continue;
		case DW_CFA_restore | 8 ... DW_CFA_restore | 15:
			continue;
		case DW_CFA_nop:
			if (cfi_run_only_nops(s.data, p, end))
				p = end;
			continue;
		case DW_CFA_remember_state:
			if (run->depth == m->state_cap)
				goto seldom;
			PUT_BACK();
			m->states[run->depth++] = run->state;
			continue;
		case DW_CFA_restore_state:
			if (!run->depth)
				goto senseless;
			run->state = m->states[--run->depth];
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
			struct cfi_known *known = known_at(m, head, where);

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
			run->beyond = bytes == limit - at;
			r = CFI_RUN_END;
			goto out;
		}
		at += bytes;
	}
senseless:
	r = CFI_RUN_SENSELESS;
out:
	PUT_BACK();
#undef PUT_BACK
#undef TAKE
	m->rows->pen = pen;
	return r;
}

/* Runs s up to `loc` and makes the rule that holds there. *ret_is tells whether there is one.
 * Returns as cfi_run_checked does. */
static int rule_at(const struct cfi_run *run, struct span s, uint32_t loc, bool *ret_is,
		   struct unwind_rule *ret)
{
	struct rows *rows = run->m->rows;
	const struct rows_pen pen = rows->pen;
	struct cfi_run part = *run;
	int r;

	part.size = (uint64_t)loc + 1;
	r = cfi_run(&part, s);
	rows->pen = pen;
	*ret_is = cfi_state_rule(&part.state, run->cie->ra_column, false, rows->skipped, ret);
	return r;
}

int cfi_run_checked(struct cfi_run *run, struct span s, const struct stackcheck *check)
{
	struct unwind_rule rule, said;
	bool is_rule, is_said;
	int r = rule_at(run, s, check->back, &is_rule, &rule);

	if (r == CFI_RUN_END)
		r = rule_at(run, s, check->slow, &is_said, &said);
	if (r != CFI_RUN_END)
		return r;
	if (!is_rule || rule.cfa != UNWIND_CFA_REG || rule.cfa_reg != UNWIND_REG_RSP ||
	    rule.cfa_off != 8 || rule.ra != UNWIND_RA_CFA ||
	    (is_said && rows_words_eq(rows_words_of(&rule), rows_words_of(&said))))
		return cfi_run(run, s);
	run->size = check->slow;
	r = cfi_run(run, s);
	if (r == CFI_RUN_END)
		r = put_derived(run, check->slow, rule);
	rule.cfa_off = 16;
	if (!r)
		r = put_derived(run, check->call, rule);
	rule.cfa_off = 8;
	if (!r)
		r = put_derived(run, check->jump, rule);
	return r ? r : CFI_RUN_END;
}

bool cfi_run_in_callees_frame(const struct cfi_run *run)
{
	struct unwind_rule rule;

	if ((run->state.head & CFI_CFA_MASK) !=
	    (CFI_HEAD_BYTE(cfa, UNWIND_CFA_DEREF) | CFI_HEAD_BYTE(cfa_reg, UNWIND_REG_RBP)))
		return false;
	return cfi_state_rule(&run->state, run->cie->ra_column, false, run->m->rows->skipped,
			      &rule) &&
	       rule.cfa == UNWIND_CFA_DEREF && rule.cfa_reg == UNWIND_REG_RBP && !rule.cfa_off &&
	       !rule.index && rule.cfa_add == 16 && rule.ra == UNWIND_RA_CFA;
}

int cfi_run_called(struct cfi_run *run, const struct lispcall *call)
{
	const uint32_t code = (uint32_t)run->loc - LISPCALL_FRAME;
	struct unwind_rule rule = { .cfa = UNWIND_CFA_REG,
				    .cfa_reg = UNWIND_REG_RBP,
				    .cfa_off = 16,
				    .rbp = UNWIND_RBP_CFA,
				    .rbp_off = -16,
				    .ra = UNWIND_RA_CFA };
	/* The walker looks up a return address minus one, which is inside the call. No leaf has
	 * this pc, so the row may begin inside the call instruction. */
	int r = put_derived(run, code + call->call + 1, rule);

	rule = (struct unwind_rule){
		.cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_REG_RSP, .cfa_off = 8, .ra = UNWIND_RA_CFA
	};
	if (!r)
		r = put_derived(run, code + call->ret, rule);
	return r ? r : CFI_RUN_END;
}
