/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function is split into pieces at the targets of its jumps. Each piece is run from the state at
 * its start. The state at its end is merged into those of the pieces that follow: values that
 * differ become unknown. States only ever lose knowledge, so the run ends.
 *
 * Addresses have a base. 0 is the CFA. Any other number stands for a stack that RSP was set to or
 * aligned on, and is 1 + the number of the instruction that did so.
 */
#include "common/rows/x86/go/goasm.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/rows/x86/go/gostate.h"
#include "common/rows/x86/insn.h"

#define MAX_LABELS 512u
#define MAX_RESTORES 8u
#define STEPS_PER_INSTRUCTION 16u
#define NO_LABEL UINT16_MAX
#define BASE_MERGED 0x40000000 /* plus the label's number: one of several bases, not known which */

struct label {
	struct gostate in;
	uint32_t instruction;
	bool reached, queued;
};
/* The place from which code on stack `base` reloads RSP. */
struct restore {
	int32_t base;
	uint32_t since;
	struct govalue value;
	int32_t off;   /* RSP's distance from the CFA at that time */
	int32_t pc_at; /* place of the return address in g; 0: it is on the stack */
};
/* The facts that a row is made from at the end. */
struct found {
	int32_t base, off; /* RSP */
	bool sure;	   /* the rule does not need a struct restore */
};

struct goasm {
	ZydisDecoder decoder;
	const uint8_t *code;
	uint32_t size;
	uint64_t offset; /* of code in the file */
	const struct goasm_delta *deltas;
	uint32_t delta_count;
	enum goasm_role role;

	struct goasm_row row[GOASM_MAX_CODE]; /* one for each instruction */
	struct insn decoded[GOASM_MAX_CODE];
	struct found found[GOASM_MAX_CODE];
	uint32_t count;
	uint32_t index[GOASM_MAX_CODE]; /* of the instruction at an offset; UINT32_MAX: none */
	uint16_t label_at[GOASM_MAX_CODE];

	struct label label[MAX_LABELS];
	uint16_t queue[MAX_LABELS];
	uint32_t labels, queue_head, queued;

	struct restore restore[MAX_RESTORES];
	uint32_t restores;
	/* Whether the code has set *(g + g_sp_at) to CFA + g_sp_off, and *(g + g_pc_at) to the
	 * return address. */
	bool g_sp, g_pc;
	int32_t g_sp_at, g_sp_off, g_pc_at;

	struct gostate now;
};

int goasm_new(struct goasm **ret)
{
	struct goasm *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	ZydisDecoderInit(&a->decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	*ret = a;
	return 0;
}

void goasm_free(struct goasm *a)
{
	free(a);
}

/* --- one instruction --- */

static int32_t delta_at(const struct goasm *a, uint32_t at)
{
	uint32_t low = 0, high = a->delta_count;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (a->deltas[mid].at <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? a->deltas[low - 1].delta : 0;
}

static void set(struct goasm *a, uint32_t i, int r, const struct govalue *v)
{
	struct gostate *s = &a->now;
	const struct goasm_row *row = &a->row[i];

	if (r != INSN_RSP) {
		s->reg[r] = *v;
		return;
	}
	if (v->kind == GOVALUE_ADDRESS) {
		s->reg[INSN_RSP] = *v;
		return;
	}

	int32_t base = s->reg[INSN_RSP].base;
	bool back = base != GOVALUE_CFA &&
		    ((v->kind == GOVALUE_CHAIN && v->n == 4) || v->kind == GOVALUE_LEFT);

	s->reg[INSN_RSP] = govalue_address((int32_t)row->at + 1, 0);
	if (!back)
		return;

	struct restore *x = &a->restore[0];

	while (x < a->restore + a->restores && (x->base != base || !govalue_same(&x->value, v)))
		x++;
	s->reg[INSN_RSP] = govalue_address(GOVALUE_CFA, -8 - delta_at(a, row->at + row->len));
	if (x == a->restore + a->restores) {
		if (a->restores == MAX_RESTORES)
			return;
		a->restores++;
	}
	*x = (struct restore){ .base = base, .value = *v, .off = s->reg[INSN_RSP].off[0] };
	if (v->kind != GOVALUE_LEFT)
		return;
	/* The value is valid only after both words are written. */
	x->since = UINT32_MAX;

	const struct gostate_word *g = gostate_slot(s, v->base, v->off[0]),
				  *depth = gostate_slot(s, v->base, v->off[1]);

	if (v->base == base && g && depth)
		x->since = g->since > depth->since ? g->since : depth->since;
}

/* Any other instruction: the registers that it writes become unknown. */
static void clobber(struct goasm *a, uint32_t i, const ZydisDecodedInstruction *in,
		    const ZydisDecodedOperand *op)
{
	const struct govalue unknown = { 0 };

	for (unsigned n = 0; n < in->operand_count; n++) {
		if (!(op[n].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE))
			continue;
		if (op[n].type == ZYDIS_OPERAND_TYPE_MEMORY) {
			struct govalue at = gostate_place(&a->now, &op[n].mem);

			if (at.kind == GOVALUE_ADDRESS)
				gostate_store(&a->now, at.base, at.off[0], &unknown, a->row[i].at);
			continue;
		}

		int r = op[n].type == ZYDIS_OPERAND_TYPE_REGISTER
				? gostate_register(op[n].reg.value)
				: -1;

		if (r >= 0)
			set(a, i, r, &unknown);
	}
}

static void do_push(struct goasm *a, uint32_t i, const struct govalue *v)
{
	struct govalue *sp = &a->now.reg[INSN_RSP];

	if (!govalue_plus(sp->off[0], -8, &sp->off[0]))
		*sp = govalue_address((int32_t)a->row[i].at + 1, 0);
	gostate_store(&a->now, sp->base, sp->off[0], v, a->row[i].at + a->row[i].len);
}

static void do_pop(struct goasm *a, uint32_t i, int r)
{
	struct govalue *sp = &a->now.reg[INSN_RSP], v = { 0 };
	const struct gostate_word *slot = gostate_slot(&a->now, sp->base, sp->off[0]);

	if (slot)
		v = slot->value;
	if (!govalue_plus(sp->off[0], 8, &sp->off[0]))
		*sp = govalue_address((int32_t)a->row[i].at + 1, 0);
	if (r >= 0)
		set(a, i, r, &v);
}

static void do_store(struct goasm *a, uint32_t i, const ZydisDecodedOperandMem *m,
		     const struct govalue *v)
{
	struct govalue at = gostate_place(&a->now, m);
	int r = m->base == ZYDIS_REGISTER_NONE ? -1 : gostate_register(m->base);

	if (at.kind == GOVALUE_ADDRESS) {
		gostate_store(&a->now, at.base, at.off[0], v, a->row[i].at + a->row[i].len);
		return;
	}
	/* A goroutine's stack pointer or pc is stored into its g. */
	if (r < 0 || m->index != ZYDIS_REGISTER_NONE || a->now.reg[r].kind != GOVALUE_CHAIN ||
	    a->now.reg[r].n != 1)
		return;
	if (!a->g_sp && v->kind == GOVALUE_ADDRESS && v->base == GOVALUE_CFA &&
	    govalue_plus(0, m->disp.value, &a->g_sp_at)) {
		a->g_sp = true;
		a->g_sp_off = v->off[0];
	} else if (!a->g_pc && v->kind == GOVALUE_CALLERS && v->off[0] == GOSTATE_RETURN &&
		   govalue_plus(0, m->disp.value, &a->g_pc_at)) {
		a->g_pc = true;
	}
}

static void do_mov(struct goasm *a, uint32_t i, const ZydisDecodedInstruction *in,
		   const ZydisDecodedOperand *op)
{
	struct govalue v = { 0 };

	if (op[0].size != 64) {
		clobber(a, i, in, op);
		return;
	}
	if (op[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
		int r = gostate_register(op[1].reg.value);

		if (r >= 0)
			v = a->now.reg[r];
	} else if (op[1].type == ZYDIS_OPERAND_TYPE_MEMORY) {
		v = gostate_load(&a->now, &op[1].mem, a->offset + a->row[i].at + a->row[i].len);
	} else if (op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		   govalue_plus(0, op[1].imm.value.s, &v.off[0])) {
		v.kind = GOVALUE_CONSTANT;
	} else {
		v.off[0] = 0;
	}
	if (op[0].type == ZYDIS_OPERAND_TYPE_MEMORY) {
		do_store(a, i, &op[0].mem, &v);
		return;
	}

	int r = gostate_register(op[0].reg.value);

	if (r >= 0)
		set(a, i, r, &v);
	else
		clobber(a, i, in, op);
}

/* add, sub, lea. Returns true if the result is known. */
static bool do_sum(struct goasm *a, uint32_t i, const ZydisDecodedInstruction *in,
		   const ZydisDecodedOperand *op)
{
	int r = op[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? gostate_register(op[0].reg.value) : -1;
	struct govalue v;

	if (r < 0 || op[0].size != 64)
		return false;
	if (in->mnemonic == ZYDIS_MNEMONIC_LEA) {
		v = gostate_place(&a->now, &op[1].mem);
	} else if (op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		int64_t by = op[1].imm.value.s;

		v = a->now.reg[r];
		if ((v.kind != GOVALUE_ADDRESS && v.kind != GOVALUE_CONSTANT) || by == INT64_MIN ||
		    !govalue_plus(v.off[0], in->mnemonic == ZYDIS_MNEMONIC_SUB ? -by : by,
				  &v.off[0]))
			return false;
	} else if (op[1].type == ZYDIS_OPERAND_TYPE_MEMORY && in->mnemonic == ZYDIS_MNEMONIC_SUB &&
		   a->now.reg[r].kind == GOVALUE_HIGH) {
		struct govalue at = gostate_place(&a->now, &op[1].mem);

		v = a->now.reg[r];
		if (at.kind != GOVALUE_ADDRESS || at.base != v.base)
			return false;
		v.kind = GOVALUE_LEFT;
		v.off[1] = at.off[0];
	} else {
		return false;
	}
	set(a, i, r, &v);
	return true;
}

static void run_one(struct goasm *a, uint32_t i)
{
	const struct govalue unknown = { 0 };
	const struct insn *d = &a->decoded[i];
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	uint32_t at = a->row[i].at;

	if (d->plain) {
		for (unsigned mask = d->clobbers; mask; mask &= mask - 1)
			set(a, i, __builtin_ctz(mask), &unknown);
		return;
	}
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&a->decoder, a->code + at, a->size - at, &in, op)))
		return;

	bool is_reg = op[0].type == ZYDIS_OPERAND_TYPE_REGISTER;

	switch (in.mnemonic) {
	case ZYDIS_MNEMONIC_CALL:
		/* The callee preserves the registers that the code after the call uses. But by then
		 * another goroutine may run on this thread. */
		for (int r = 0; r < GOSTATE_REGISTERS; r++) {
			if (a->now.reg[r].kind >= GOVALUE_CHAIN)
				a->now.reg[r] = unknown;
		}
		break;
	case ZYDIS_MNEMONIC_CMP:
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_NOP:
	case ZYDIS_MNEMONIC_ENDBR64:
		break;
	case ZYDIS_MNEMONIC_PUSH:
		do_push(a, i,
			is_reg && gostate_register(op[0].reg.value) >= 0
				? &a->now.reg[gostate_register(op[0].reg.value)]
				: &unknown);
		break;
	case ZYDIS_MNEMONIC_PUSHFQ:
		do_push(a, i, &unknown);
		break;
	case ZYDIS_MNEMONIC_POP:
		do_pop(a, i, is_reg ? gostate_register(op[0].reg.value) : -1);
		break;
	case ZYDIS_MNEMONIC_POPFQ:
		do_pop(a, i, -1);
		break;
	case ZYDIS_MNEMONIC_MOV:
		do_mov(a, i, &in, op);
		break;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
	case ZYDIS_MNEMONIC_LEA:
		if (!do_sum(a, i, &in, op))
			clobber(a, i, &in, op);
		break;
	default:
		clobber(a, i, &in, op);
		break;
	}
}

/* --- rules --- */

static void note(struct goasm *a, uint32_t i)
{
	const struct gostate *s = &a->now;
	const struct govalue *sp = &s->reg[INSN_RSP];
	struct unwind_rule rule = { .flags = UNWIND_DERIVED };
	bool sure = true;

	if (sp->base == GOVALUE_CFA && sp->off[0] <= -8) {
		gostate_rule_caller(s, &rule);
		rule.cfa = UNWIND_CFA_REG;
		rule.cfa_reg = UNWIND_REG_RSP;
		rule.cfa_off = -sp->off[0];
	} else if (gostate_rule_popped(s, &rule)) {
		gostate_rule_caller(s, &rule);
	} else if (a->role == GOASM_LEAVES) {
		rule.cfa = UNWIND_CFA_REG;
		rule.cfa_reg = UNWIND_REG_RSP;
		rule.cfa_off = 8;
		rule.ra = UNWIND_RA_UNDEFINED;
	} else {
		gostate_rule_caller(s, &rule);
		sure = gostate_rule_elsewhere(s, &rule);
	}
	a->row[i].known = true;
	a->row[i].rule = rule;
	a->found[i] = (struct found){ .base = sp->base, .off = sp->off[0], .sure = sure };
}

static bool word(int32_t off, uint8_t *ret)
{
	*ret = (uint8_t)(off / 8);
	return off >= 0 && off % 8 == 0 && off / 8 <= UINT8_MAX;
}

/* Makes the rule of a restore, with RSP at `off` from its base. */
static bool rule_restored(const struct restore *x, int32_t off, struct unwind_rule *rule)
{
	struct unwind_rule r = *rule;

	r.cfa_reg = 0;
	r.cfa_off = -x->off;
	if (x->value.kind == GOVALUE_CHAIN) {
		r.cfa = UNWIND_CFA_GO_SWITCH;
		r.cfa_add = x->value.off[0];
		r.flags |= x->value.by_word ? UNWIND_TLS_WORD : 0;
		if (!word(x->value.off[1], &r.rbp_reg) || !word(x->value.off[2], &r.cfa_reg) ||
		    !word(x->value.off[3], &r.ra_reg))
			return false;
		if (x->pc_at) {
			r.ra = UNWIND_RA_CFA_OFF;
			r.rbp_off = x->pc_at;
			if (r.rbp == UNWIND_RBP_CFA)
				r.rbp = UNWIND_RBP_UNDEFINED;
		}
	} else {
		r.cfa = UNWIND_CFA_GO_DEPTH;
		r.cfa_add = x->value.off[1] - off;
		if (!word(x->value.off[0] - off, &r.cfa_reg))
			return false;
	}
	*rule = r;
	return true;
}

/* --- a function --- */

static void disassemble(struct goasm *a)
{
	uint32_t at = 0;

	memset(a->index, 0xff, a->size * sizeof(a->index[0]));
	for (a->count = 0; at < a->size; a->count++) {
		struct insn *d = &a->decoded[a->count];

		if (!insn_decode(a->code + at, a->size - at, d))
			*d = (struct insn){ .next = INSN_NEXT_END };
		a->index[at] = a->count;
		a->row[a->count] = (struct goasm_row){ .at = at, .len = d->len ? d->len : 1 };
		a->label_at[a->count] = NO_LABEL;
		at += a->row[a->count].len;
	}
}

/* The instruction that a jump leads to; UINT32_MAX: outside this function, or unknown. */
static uint32_t target(const struct goasm *a, uint32_t i)
{
	const struct insn *d = &a->decoded[i];
	int64_t at = (int64_t)a->row[i].at + a->row[i].len + d->imm;

	if (d->next != INSN_NEXT_JUMP && d->next != INSN_NEXT_COND)
		return UINT32_MAX;
	return at >= 0 && at < a->size ? a->index[at] : UINT32_MAX;
}

static bool add_label(struct goasm *a, uint32_t instruction)
{
	if (a->label_at[instruction] != NO_LABEL)
		return true;
	if (a->labels == MAX_LABELS)
		return false;
	a->label_at[instruction] = (uint16_t)a->labels;
	a->label[a->labels].instruction = instruction;
	a->label[a->labels].reached = a->label[a->labels].queued = false;
	a->labels++;
	return true;
}

static bool find_labels(struct goasm *a)
{
	a->labels = 0;
	if (!add_label(a, 0))
		return false;
	for (uint32_t i = 0; i < a->count; i++) {
		uint32_t to = target(a, i);

		if (to != UINT32_MAX && !add_label(a, to))
			return false;
	}
	return true;
}

/* Removes from s everything that `now` contradicts. Returns true if s lost something. */
static bool merge(const struct goasm *a, uint32_t label, struct gostate *s,
		  const struct gostate *now)
{
	bool changed = false;

	for (unsigned r = 0; r < GOSTATE_REGISTERS; r++) {
		struct govalue other = { 0 };

		if (govalue_same(&s->reg[r], &now->reg[r]))
			continue;
		if (r == INSN_RSP) {
			/* Both values of RSP are in the frame but differ, since one path comes from
			 * a call that does not return. */
			if (govalue_in_frame(&s->reg[r]) && govalue_in_frame(&now->reg[r]))
				other = govalue_address(
					GOVALUE_CFA,
					-8 - delta_at(a, a->row[a->label[label].instruction].at));
			else
				other = govalue_address(BASE_MERGED | (int32_t)label, 0);
		}
		if (govalue_same(&s->reg[r], &other))
			continue;
		s->reg[r] = other;
		changed = true;
	}
	for (uint32_t i = 0; i < s->slots;) {
		struct gostate_word *x = &s->slot[i];
		const struct gostate_word *y = gostate_slot(now, x->base, x->off);

		if (!y || !govalue_same(&x->value, &y->value)) {
			*x = s->slot[--s->slots];
			changed = true;
			continue;
		}
		if (y->since > x->since)
			x->since = y->since;
		i++;
	}
	return changed;
}

static void hand_on(struct goasm *a, uint32_t label)
{
	struct label *l = &a->label[label];

	if (!l->reached)
		l->in = a->now;
	else if (!merge(a, label, &l->in, &a->now))
		return;
	l->reached = true;
	if (l->queued)
		return;
	l->queued = true;
	a->queue[(a->queue_head + a->queued++) % MAX_LABELS] = (uint16_t)label;
}

/* Adds the rule of a jump that has a goroutine's pc in a register and RSP already on that
 * goroutine's stack. */
static void note_leap(struct goasm *a, uint32_t i)
{
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	uint32_t at = a->row[i].at;
	int r = -1;

	if (a->role != GOASM_LEAVES || a->now.reg[INSN_RSP].base == GOVALUE_CFA ||
	    !ZYAN_SUCCESS(ZydisDecoderDecodeFull(&a->decoder, a->code + at, a->size - at, &in, op)))
		return;
	r = op->type == ZYDIS_OPERAND_TYPE_REGISTER ? gostate_register(op->reg.value) : -1;
	if (r < 0)
		return;
	a->row[i].rule = (struct unwind_rule){ .cfa = UNWIND_CFA_REG,
					       .cfa_reg = UNWIND_REG_RSP,
					       .ra = UNWIND_RA_REG,
					       .ra_reg = insn_dwarf[r],
					       .flags = UNWIND_DERIVED };
}

/* Runs from a label on. Returns false if it takes too long. */
static bool run(struct goasm *a, uint32_t label, uint64_t *steps)
{
	uint32_t first = a->label[label].instruction;

	a->now = a->label[label].in;
	for (uint32_t i = first; i < a->count; i++) {
		const struct insn *d = &a->decoded[i];

		if (i != first && a->label_at[i] != NO_LABEL) {
			hand_on(a, a->label_at[i]);
			return true;
		}
		if (++*steps > (uint64_t)a->count * STEPS_PER_INSTRUCTION)
			return false;
		note(a, i);
		if (d->next == INSN_NEXT_JUMP || d->next == INSN_NEXT_COND) {
			uint32_t to = target(a, i);

			if (to != UINT32_MAX)
				hand_on(a, a->label_at[to]);
		}
		if (d->next == INSN_NEXT_INDIRECT)
			note_leap(a, i);
		if (d->next != INSN_NEXT_FALL && d->next != INSN_NEXT_COND)
			return true;
		if (d->next == INSN_NEXT_FALL)
			run_one(a, i);
	}
	return true;
}

static void settle(struct goasm *a, struct goasm_curg *curg)
{
	const struct unwind_rule unknown = { .cfa = UNWIND_CFA_END,
					     .cfa_add = UNWIND_END_UNSUPPORTED };
	struct restore more = { 0 };

	if (a->role == GOASM_RETURNS && !curg->known) {
		for (uint32_t n = 0; n < a->restores && !curg->known; n++) {
			const struct govalue *v = &a->restore[n].value;

			if (v->kind == GOVALUE_CHAIN)
				*curg = (struct goasm_curg){ .known = true,
							     .by_word = v->by_word,
							     .tls = v->off[0],
							     .m = v->off[1],
							     .curg = v->off[2] };
		}
	}
	if (a->role == GOASM_MORESTACK && a->g_sp && a->g_pc && curg->known) {
		more.value =
			(struct govalue){ .kind = GOVALUE_CHAIN, .n = 4, .by_word = curg->by_word };
		more.value.off[0] = curg->tls;
		more.value.off[1] = curg->m;
		more.value.off[2] = curg->curg;
		more.value.off[3] = a->g_sp_at;
		more.off = a->g_sp_off;
		/* When Go moves the stack, the word below that address is not moved. */
		more.pc_at = a->g_pc_at;
	}
	for (uint32_t i = 0; i < a->count; i++) {
		struct goasm_row *row = &a->row[i];

		if (!row->known || a->found[i].base == GOVALUE_CFA || a->role == GOASM_LEAVES)
			continue;
		if (more.value.kind == GOVALUE_CHAIN && rule_restored(&more, 0, &row->rule))
			continue;
		for (uint32_t n = 0; n < a->restores; n++) {
			const struct restore *x = &a->restore[n];

			if (x->base != a->found[i].base || row->at < x->since)
				continue;
			/* Stacks other than goroutines' do not move, and slots in the frame are
			 * valid at any depth of calls. */
			if (x->value.kind == GOVALUE_CHAIN && a->found[i].sure &&
			    a->role != GOASM_RETURNS)
				continue;
			if (rule_restored(x, a->found[i].off, &row->rule))
				break;
		}
		if (row->rule.cfa == UNWIND_CFA_END)
			row->rule = unknown;
	}
}

int goasm_rows(struct goasm *a, const uint8_t *code, uint32_t size, uint64_t offset,
	       const struct goasm_delta *deltas, uint32_t n, enum goasm_role role,
	       struct goasm_curg *curg, const struct goasm_row **ret_rows, uint32_t *ret_n)
{
	uint64_t steps = 0;

	if (size == 0 || size > GOASM_MAX_CODE)
		return GOASM_GIVEN_UP;
	a->code = code;
	a->size = size;
	a->offset = offset;
	a->deltas = deltas;
	a->delta_count = n;
	a->role = role;
	a->restores = a->queue_head = a->queued = 0;
	a->g_sp = a->g_pc = false;
	disassemble(a);
	if (!find_labels(a))
		return GOASM_GIVEN_UP;

	gostate_enter(&a->now);
	hand_on(a, 0);
	while (a->queued) {
		uint32_t label = a->queue[a->queue_head];

		a->queue_head = (a->queue_head + 1) % MAX_LABELS;
		a->queued--;
		a->label[label].queued = false;
		if (!run(a, label, &steps))
			return GOASM_GIVEN_UP;
	}
	settle(a, curg);
	*ret_rows = a->row;
	*ret_n = a->count;
	return 0;
}
