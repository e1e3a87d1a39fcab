/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/x86/go/gostate.h"

/* Registers that may hold a copy of RSP, callee-saved ones first. */
static const uint8_t copies[] = { 3, 12, 13, 14, 15, 0, 1, 2, 6, 7, 8, 9, 10, 11 };

/* --- values --- */

int gostate_register(ZydisRegister r)
{
	ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);

	if (ZydisRegisterGetClass(full) != ZYDIS_REGCLASS_GPR64)
		return -1;
	return ZydisRegisterGetId(full);
}

void gostate_store(struct gostate *s, int32_t base, int32_t off, const struct govalue *v,
		   uint32_t since)
{
	for (uint32_t i = 0; i < s->slots;) {
		struct gostate_word *x = &s->slot[i];

		if (x->base == base && (int64_t)x->off - off < 8 && (int64_t)off - x->off < 8)
			*x = s->slot[--s->slots];
		else
			i++;
	}
	/* For the function's own frame, keep only values that rules can use. */
	if (base == GOVALUE_CFA && v->kind != GOVALUE_CALLERS && v->kind != GOVALUE_ADDRESS)
		return;
	if (s->slots < GOSTATE_SLOTS)
		s->slot[s->slots++] = (struct gostate_word){
			.base = base, .off = off, .since = since, .value = *v
		};
}

const struct gostate_word *gostate_slot(const struct gostate *s, int32_t base, int32_t off)
{
	for (uint32_t i = 0; i < s->slots; i++) {
		if (s->slot[i].base == base && s->slot[i].off == off)
			return &s->slot[i];
	}
	return NULL;
}

struct govalue gostate_place(const struct gostate *s, const ZydisDecodedOperandMem *m)
{
	struct govalue v = { 0 };
	int r = m->base == ZYDIS_REGISTER_NONE ? -1 : gostate_register(m->base);
	int32_t off;

	if (r < 0 || m->index != ZYDIS_REGISTER_NONE || m->segment == ZYDIS_REGISTER_FS ||
	    s->reg[r].kind != GOVALUE_ADDRESS)
		return v;
	if (govalue_plus(s->reg[r].off[0], m->disp.value, &off))
		v = govalue_address(s->reg[r].base, off);
	return v;
}

/* Returns the word at fs:operand, which belongs to the thread. */
static struct govalue load_tls(const struct gostate *s, const ZydisDecodedOperandMem *m)
{
	const ZydisRegister parts[] = { m->base, m->index };
	struct govalue v = { .kind = GOVALUE_CHAIN, .n = 1 };
	bool ok = govalue_plus(0, m->disp.value, &v.off[0]);
	int base = m->base == ZYDIS_REGISTER_NONE ? -1 : gostate_register(m->base);

	if (base >= 0 && s->reg[base].kind == GOVALUE_WORD) {
		v.by_word = 1;
		v.off[0] = s->reg[base].off[0];
		ok = m->disp.value == 0 && m->index == ZYDIS_REGISTER_NONE;
		return ok ? v : (struct govalue){ 0 };
	}
	for (unsigned i = 0; i < 2; i++) {
		int r = parts[i] == ZYDIS_REGISTER_NONE ? -1 : gostate_register(parts[i]);

		if (parts[i] == ZYDIS_REGISTER_NONE)
			continue;
		ok = ok && r >= 0 && s->reg[r].kind == GOVALUE_CONSTANT &&
		     (i == 0 || m->scale == 1) &&
		     govalue_plus(v.off[0], s->reg[r].off[0], &v.off[0]);
	}
	return ok ? v : (struct govalue){ 0 };
}

struct govalue gostate_load(const struct gostate *s, const ZydisDecodedOperandMem *m, uint64_t next)
{
	struct govalue at = gostate_place(s, m), v = { 0 };
	int32_t off;

	if (m->segment == ZYDIS_REGISTER_FS)
		return load_tls(s, m);
	if (m->base == ZYDIS_REGISTER_RIP) {
		if (next <= INT32_MAX && govalue_plus((int32_t)next, m->disp.value, &off) &&
		    off > 0)
			v = (struct govalue){ .kind = GOVALUE_WORD, .off = { off } };
		return v;
	}
	if (at.kind == GOVALUE_ADDRESS) {
		const struct gostate_word *slot = gostate_slot(s, at.base, at.off[0]);

		/* A stored g may no longer be the current one. */
		if (slot &&
		    (slot->value.kind == GOVALUE_ADDRESS || slot->value.kind == GOVALUE_CALLERS))
			return slot->value;
		if (at.base == GOVALUE_CFA)
			return v;
		at.kind = GOVALUE_LOADED;
		return at;
	}

	int r = m->base == ZYDIS_REGISTER_NONE ? -1 : gostate_register(m->base);

	if (r < 0 || m->index != ZYDIS_REGISTER_NONE)
		return v;
	v = s->reg[r];
	if (v.kind == GOVALUE_CHAIN && v.n == 1 && !v.by_word && v.off[0] == 0) {
		/* fs:0 holds its own address. */
		if (govalue_plus(0, m->disp.value, &v.off[0]))
			return v;
	} else if (v.kind == GOVALUE_CHAIN && v.n < 4) {
		if (govalue_plus(0, m->disp.value, &v.off[v.n++]))
			return v;
	} else if (v.kind == GOVALUE_LOADED && m->disp.value == 8) {
		v.kind = GOVALUE_HIGH;
		return v;
	}
	return (struct govalue){ 0 };
}

void gostate_enter(struct gostate *s)
{
	memset(s, 0, sizeof(*s));
	for (int r = 0; r < GOSTATE_REGISTERS; r++)
		s->reg[r] = (struct govalue){ .kind = GOVALUE_CALLERS, .off = { r } };
	s->reg[INSN_RSP] = govalue_address(GOVALUE_CFA, -8);
	gostate_store(s, GOVALUE_CFA, -8,
		      &(struct govalue){ .kind = GOVALUE_CALLERS, .off = { GOSTATE_RETURN } }, 0);
}

/* --- rules --- */

void gostate_rule_caller(const struct gostate *s, struct unwind_rule *rule)
{
	const struct govalue *sp = &s->reg[INSN_RSP];

	rule->rbp = UNWIND_RBP_UNDEFINED;
	for (uint32_t i = 0; i < s->slots; i++) {
		const struct gostate_word *x = &s->slot[i];

		/* Slots below the stack pointer may be overwritten. */
		if (x->base != GOVALUE_CFA || x->value.kind != GOVALUE_CALLERS ||
		    (sp->base == GOVALUE_CFA && x->off < sp->off[0]))
			continue;
		if (x->value.off[0] == INSN_RBP) {
			rule->rbp = UNWIND_RBP_CFA;
			rule->rbp_off = x->off;
		} else if (x->value.off[0] == INSN_RBX && x->off < 0 && x->off % 8 == 0 &&
			   x->off / -8 <= UINT8_MAX) {
			rule->rbx = (uint8_t)(x->off / -8);
		}
	}
	if (s->reg[INSN_RBP].kind == GOVALUE_CALLERS && s->reg[INSN_RBP].off[0] == INSN_RBP) {
		rule->rbp = UNWIND_RBP_SAME;
		rule->rbp_off = 0;
	}
}

bool gostate_rule_elsewhere(const struct gostate *s, struct unwind_rule *rule)
{
	const struct govalue *sp = &s->reg[INSN_RSP];

	for (uint32_t i = 0; i < s->slots; i++) {
		const struct gostate_word *x = &s->slot[i];

		if (x->base != sp->base || !govalue_in_frame(&x->value) || x->off < sp->off[0])
			continue;
		rule->cfa = UNWIND_CFA_DEREF;
		rule->cfa_reg = UNWIND_REG_RSP;
		rule->cfa_off = x->off - sp->off[0];
		rule->cfa_add = -x->value.off[0];
		return true;
	}
	if (govalue_in_frame(&s->reg[INSN_RBP])) {
		rule->cfa = UNWIND_CFA_REG;
		rule->cfa_reg = UNWIND_REG_RBP;
		rule->cfa_off = -s->reg[INSN_RBP].off[0];
		return true;
	}
	for (unsigned i = 0; i < sizeof(copies); i++) {
		if (!govalue_in_frame(&s->reg[copies[i]]))
			continue;
		rule->cfa = UNWIND_CFA_REG;
		rule->cfa_reg = insn_dwarf[copies[i]];
		rule->cfa_off = -s->reg[copies[i]].off[0];
		return false;
	}
	rule->cfa = UNWIND_CFA_END;
	return false;
}

bool gostate_rule_popped(const struct gostate *s, struct unwind_rule *rule)
{
	const struct govalue *sp = &s->reg[INSN_RSP];

	for (int r = 0; r < GOSTATE_REGISTERS && govalue_in_frame(sp) && sp->off[0] == 0; r++) {
		if (s->reg[r].kind != GOVALUE_CALLERS || s->reg[r].off[0] != GOSTATE_RETURN)
			continue;
		rule->cfa = UNWIND_CFA_REG;
		rule->cfa_reg = UNWIND_REG_RSP;
		rule->ra = UNWIND_RA_REG;
		rule->ra_reg = insn_dwarf[r];
		return true;
	}
	return false;
}
