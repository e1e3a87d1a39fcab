/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/x86/flow/frame.h"

#define RED_ZONE 128
#define ALIGN_MAX 4095		/* bytes */
#define SYSCALL_CLOBBERS 0x0803 /* rax rcx r11 */
#define SYS_CLONE 56
#define SYS_CLONE3 435

void frame_enter(struct frame *s, unsigned tracked)
{
	*s = (struct frame){ .tracked = (uint8_t)tracked };
	s->reg[INSN_RSP] = SYM(CFA, -8);
	s->reg[INSN_RBP] = SYM(CALLER, INSN_RBP);
	s->reg[tracked] = SYM(CALLER, tracked);
	s->slot[s->slots++] = (struct frame_slot){ .place = SYM(CFA, -8), .value = SYM(RETURN, 0) };
}

static void drop_slot(struct frame *s, unsigned n)
{
	s->slot[n] = s->slot[--s->slots];
}

/* Whether a value depends on the base of ALIGNED places. */
static bool is_aligneds(uint64_t v)
{
	return sym_kind(v) == SYM_ALIGNED || sym_kind(v) == SYM_SIZE;
}

/* RSP becomes unknown, and the new base of ALIGNED places. */
static void rebase(struct frame *s)
{
	for (unsigned n = s->slots; n--;) {
		if (sym_kind(s->slot[n].place) == SYM_ALIGNED || is_aligneds(s->slot[n].value))
			drop_slot(s, n);
	}
	for (unsigned r = 0; r < 16; r++) {
		if (is_aligneds(s->reg[r]))
			s->reg[r] = SYM(UNKNOWN, 0);
	}
	s->reg[INSN_RSP] = SYM(ALIGNED, 0);
	s->align = 0;
	s->aligned = SYM(UNKNOWN, 0);
	if (s->nest)
		s->nest = FRAME_NEST_LOST;
}

/* Applies `and rsp, imm`. */
static void align(struct frame *s, int32_t imm)
{
	uint32_t cleared = ~(uint32_t)imm;
	uint64_t v = s->reg[INSN_RSP];

	rebase(s);
	if (imm >= 0 || cleared & (cleared + 1) || cleared > ALIGN_MAX || sym_kind(v) != SYM_CFA)
		return;
	s->align = (uint8_t)__builtin_popcount(cleared);
	s->aligned = v;
}

static void set(struct frame *s, unsigned reg, uint64_t v)
{
	if (reg >= 16)
		return;
	if (reg == INSN_RSP && sym_kind(v) != SYM_CFA && sym_kind(v) != SYM_ALIGNED)
		rebase(s);
	else
		s->reg[reg] = v;
	if (reg == INSN_RSP && sym_kind(v) == SYM_CFA) {
		s->align = 0;
		s->aligned = SYM(UNKNOWN, 0);
		s->nest = FRAME_NEST_NONE;
	}
}

static bool is_place(uint64_t v)
{
	return sym_kind(v) == SYM_CFA || sym_kind(v) == SYM_ALIGNED;
}

/* Returns a place plus n bytes, or unknown. */
static uint64_t advanced(uint64_t v, int32_t n)
{
	int32_t off;

	if (n == 0)
		return v;
	if (!is_place(v) || __builtin_add_overflow(sym_off(v), n, &off) || off > 1 << 28 ||
	    off < -(1 << 28))
		return SYM(UNKNOWN, 0);
	return v >> 32 << 32 | (uint32_t)off;
}

/* Moves RSP down (sign -1) or up by a register's value. */
static void move_by(struct frame *s, unsigned reg, int sign)
{
	uint64_t rsp = s->reg[INSN_RSP], v = s->reg[reg];

	if (sym_kind(v) == SYM_CONST && sym_off(v) != INT32_MIN) {
		set(s, INSN_RSP, advanced(rsp, sign * sym_off(v)));
		return;
	}
	if (sign > 0 && sym_kind(v) == SYM_SIZE && sym_kind(rsp) == SYM_ALIGNED) {
		set(s, INSN_RSP, advanced(SYM(CFA, sym_off(v)), sym_off(rsp)));
		return;
	}
	rebase(s);
	if (sign < 0 && sym_kind(v) == SYM_UNKNOWN && sym_kind(rsp) == SYM_CFA)
		s->reg[reg] = SYM(SIZE, sym_off(rsp));
}

static void store(struct frame *s, uint64_t place, unsigned width, uint64_t v)
{
	if (!is_place(place))
		return;
	for (unsigned n = s->slots; n--;) {
		int64_t d = (int64_t)sym_off(s->slot[n].place) - sym_off(place);

		if (sym_kind(s->slot[n].place) == sym_kind(place) && d > -8 && d < (int64_t)width)
			drop_slot(s, n);
	}
	if (width != 8 ||
	    (sym_kind(v) != SYM_CFA && sym_kind(v) != SYM_CALLER && sym_kind(v) != SYM_RETURN &&
	     sym_kind(v) != SYM_SIZE) ||
	    s->slots == FRAME_SLOTS)
		return;
	s->slot[s->slots++] = (struct frame_slot){ .place = place, .value = v };
}

uint64_t frame_load(const struct frame *s, uint64_t place)
{
	for (unsigned n = 0; n < s->slots; n++) {
		if (s->slot[n].place == place)
			return s->slot[n].value;
	}
	return SYM(UNKNOWN, 0);
}

/* Forgets all words below RSP, which a call overwrites. */
static void forget_below(struct frame *s)
{
	for (unsigned n = s->slots; n--;) {
		if (sym_kind(s->slot[n].place) == sym_kind(s->reg[INSN_RSP]) &&
		    sym_off(s->slot[n].place) < sym_off(s->reg[INSN_RSP]))
			drop_slot(s, n);
	}
}

/* Returns the registers that a call may change. Assembly calls its own helpers, and relies on them
 * to preserve some registers. */
static unsigned call_clobbers(const struct frame *s, const struct insn *i)
{
	unsigned mask = FRAME_CALL_CLOBBERS;

	for (unsigned left = i->relative ? mask : 0; left; left &= left - 1) {
		unsigned r = (unsigned)__builtin_ctz(left);

		if (sym_kind(s->reg[r]) == SYM_LABEL ||
		    (s->keeps >> r & 1 && sym_kind(s->reg[r]) == SYM_CFA))
			mask &= ~(1u << r);
	}
	return mask;
}

static void clobber(struct frame *s, unsigned mask)
{
	for (; mask; mask &= mask - 1)
		set(s, (unsigned)__builtin_ctz(mask), SYM(UNKNOWN, 0));
}

/* Handles the return of a Lisp callee, whose frame the caller has set up (bpf/walk/owner_sbcl.h).
 * RBP points to this frame. Both of its words are the caller's RBP; the return address replaces one
 * of them. The callee removes the frame. */
static void end_callees_frame(struct frame *s)
{
	const uint64_t rsp = s->reg[INSN_RSP], rbp = frame_load(s, rsp);

	if (!is_place(rsp) || s->reg[INSN_RBP] != rsp || !is_place(rbp) ||
	    frame_load(s, advanced(rsp, 8)) != rbp)
		return;
	s->reg[INSN_RBP] = rbp;
	s->reg[INSN_RSP] = advanced(rsp, 16);
}

bool frame_change(struct frame *s, const struct insn *i)
{
	bool below = true;
	uint64_t v;

	switch (i->op) {
	case INSN_OP_PUSH:
		v = i->src < 16 ? s->reg[i->src] : SYM(UNKNOWN, 0);
		set(s, INSN_RSP, advanced(s->reg[INSN_RSP], -(int32_t)i->width));
		store(s, s->reg[INSN_RSP], i->width, v);
		break;
	case INSN_OP_POP:
		v = frame_load(s, s->reg[INSN_RSP]);
		if (i->width != 8)
			v = SYM(UNKNOWN, 0);
		set(s, INSN_RSP, advanced(s->reg[INSN_RSP], i->width));
		below = s->life != FRAME_LIFE_PLAIN || sym_kind(s->reg[INSN_RSP]) != SYM_CFA ||
			sym_off(s->reg[INSN_RSP]) <= 0;
		set(s, i->dst, v);
		break;
	case INSN_OP_LEA:
		set(s, i->dst, advanced(s->reg[i->src], i->imm));
		break;
	case INSN_OP_CONST:
		set(s, i->dst, SYM(CONST, i->imm));
		break;
	case INSN_OP_CONST_LOW:
		v = s->reg[i->dst];
		set(s, i->dst,
		    sym_kind(v) == SYM_CONST ? SYM(CONST, (sym_off(v) & ~0xff) | i->imm)
					     : SYM(UNKNOWN, 0));
		break;
	case INSN_OP_LOAD:
		v = advanced(s->reg[i->src], i->imm);
		set(s, i->dst, is_place(v) ? frame_load(s, v) : SYM(UNKNOWN, 0));
		break;
	case INSN_OP_STORE:
		v = i->src < 16 ? s->reg[i->src] : SYM(UNKNOWN, 0);
		store(s, advanced(s->reg[i->dst], i->imm), i->width, v);
		break;
	case INSN_OP_LEAVE:
		v = s->reg[INSN_RBP];
		set(s, INSN_RSP, is_place(v) ? advanced(v, 8) : SYM(UNKNOWN, 0));
		set(s, INSN_RBP, is_place(v) ? frame_load(s, v) : SYM(UNKNOWN, 0));
		break;
	case INSN_OP_LOWER:
		move_by(s, i->src, -1);
		break;
	case INSN_OP_RAISE:
		move_by(s, i->src, 1);
		below = sym_kind(s->reg[INSN_RSP]) != SYM_CFA || sym_off(s->reg[INSN_RSP]) < 0;
		break;
	case INSN_OP_ALIGN:
		align(s, i->imm);
		break;
	case INSN_OP_SWAP:
		v = s->reg[i->dst];
		set(s, i->dst, s->reg[i->src]);
		set(s, i->src, v);
		break;
	case INSN_OP_CALL:
		end_callees_frame(s);
		forget_below(s);
		clobber(s, call_clobbers(s, i));
		if (s->life == FRAME_LIFE_CLONE)
			s->life = FRAME_LIFE_PLAIN;
		break;
	case INSN_OP_SYSCALL:
		v = s->reg[INSN_RAX];
		clobber(s, SYSCALL_CLOBBERS);
		if (s->life == FRAME_LIFE_PLAIN &&
		    (v == SYM(CONST, SYS_CLONE) || v == SYM(CONST, SYS_CLONE3)))
			s->life = FRAME_LIFE_CLONE;
		break;
	default:
		break;
	}
	clobber(s, i->clobbers);
	return below;
}

void frame_equal(struct frame *s, unsigned reg)
{
	if (sym_kind(s->reg[reg]) == SYM_CFA)
		s->reg[INSN_RSP] = s->reg[reg];
}

bool frame_merge(struct frame *to, const struct frame *from)
{
	struct frame old = *to, other = *from;
	bool changed = false;

	if (to->reg[INSN_RSP] != other.reg[INSN_RSP]) {
		rebase(&other);
		rebase(to);
	}
	for (unsigned r = 0; r < 16; r++) {
		if (to->reg[r] != other.reg[r])
			to->reg[r] = sym_kind(to->reg[r]) == SYM_LABEL &&
						     sym_kind(other.reg[r]) == SYM_LABEL
					     ? SYM(LABEL, SYM_SOME_LABEL)
					     : SYM(UNKNOWN, 0);
		changed |= to->reg[r] != old.reg[r];
	}
	for (unsigned n = to->slots; n--;) {
		if (frame_load(&other, to->slot[n].place) != to->slot[n].value)
			drop_slot(to, n);
	}
	if (to->life != other.life)
		to->life = FRAME_LIFE_MIXED;
	if (to->aligned != other.aligned || to->align != other.align) {
		to->aligned = SYM(UNKNOWN, 0);
		to->align = 0;
	}
	if (!to->nest) {
		to->nest = other.nest;
		to->nest_at = other.nest_at;
	} else if (other.nest && (to->nest != other.nest || to->nest_at != other.nest_at)) {
		to->nest = FRAME_NEST_LOST;
	}
	return changed || to->slots != old.slots || to->life != old.life ||
	       to->align != old.align || to->nest != old.nest;
}

/* --- code that calls into its own middle --- */

/* The register that identifies the outermost frame of a nest, and holds its CFA; or INSN_NO_REG. */
static unsigned nest_register(const struct frame *s)
{
	if (s->nest != FRAME_NEST_ONE || !s->align || s->reg[INSN_RBP] != SYM(CALLER, INSN_RBP) ||
	    s->reg[s->tracked] != SYM(CALLER, s->tracked) ||
	    sym_kind(s->reg[INSN_RSP]) != SYM_ALIGNED)
		return INSN_NO_REG;
	for (unsigned r = 0; r < 16; r++) {
		if (s->reg[r] == s->aligned)
			return r;
	}
	return INSN_NO_REG;
}

bool frame_enter_nest(struct frame *s)
{
	if (!s->nest && s->align && sym_kind(s->reg[INSN_RSP]) == SYM_ALIGNED) {
		s->nest = FRAME_NEST_ONE;
		s->nest_at = s->reg[INSN_RSP];
	} else if (s->nest && s->nest_at != s->reg[INSN_RSP]) {
		s->nest = FRAME_NEST_LOST;
	}
	return s->nest;
}

bool frame_leaves_nest(const struct frame *s)
{
	return nest_register(s) != INSN_NO_REG && s->reg[INSN_RSP] == s->nest_at;
}

bool frame_nests_deeper(const struct frame *s)
{
	return nest_register(s) != INSN_NO_REG && sym_off(s->reg[INSN_RSP]) <= sym_off(s->nest_at);
}

static bool rule_nest(const struct frame *s, struct unwind_rule *rule)
{
	unsigned r = nest_register(s);
	int64_t pushed;

	if (r == INSN_NO_REG)
		return false;
	pushed = (int64_t)sym_off(s->nest_at) - sym_off(s->reg[INSN_RSP]);
	rule->cfa = UNWIND_CFA_NEST;
	rule->cfa_reg = insn_dwarf[r];
	rule->cfa_off = -sym_off(s->aligned);
	rule->cfa_add = -sym_off(s->reg[INSN_RSP]);
	rule->cfa_mid = (int16_t)(8 + pushed);
	rule->index_reg = s->align;
	return pushed >= 0 && pushed <= INT16_MAX - 8;
}

/* --- rules --- */

/* Makes the rule if the size by which RSP was lowered is stored. */
static bool rule_size(const struct frame *s, struct unwind_rule *rule)
{
	int32_t rsp = sym_off(s->reg[INSN_RSP]);

	if (sym_kind(s->reg[INSN_RSP]) != SYM_ALIGNED)
		return false;
	rule->cfa_reg = UNWIND_REG_RSP;
	for (unsigned n = 0; n < s->slots; n++) {
		if (sym_kind(s->slot[n].place) != SYM_ALIGNED ||
		    sym_kind(s->slot[n].value) != SYM_SIZE || sym_off(s->slot[n].place) < rsp)
			continue;
		rule->cfa = UNWIND_CFA_SUM;
		rule->cfa_off = sym_off(s->slot[n].place) - rsp;
		rule->cfa_add = -rsp - sym_off(s->slot[n].value);
		return true;
	}
	for (unsigned r = 0; r < 16; r++) {
		if (sym_kind(s->reg[r]) != SYM_SIZE)
			continue;
		rule->cfa = UNWIND_CFA_REG;
		rule->cfa_off = -rsp - sym_off(s->reg[r]);
		rule->index = 1;
		rule->index_reg = insn_dwarf[r];
		return true;
	}
	return false;
}

/* Makes the CFA's rule, if the CFA is known. */
static bool rule_cfa(const struct frame *s, struct unwind_rule *rule)
{
	/* Prefer a frame pointer: callees may have removed arguments from the stack, as in V8's
	 * code. */
	bool frame = s->reg[INSN_RBP] == SYM(CFA, -16) &&
		     frame_load(s, SYM(CFA, -16)) == SYM(CALLER, INSN_RBP);

	if (s->nest && sym_kind(s->reg[INSN_RSP]) == SYM_ALIGNED)
		return rule_nest(s, rule);
	for (unsigned n = 0; n < 2; n++) {
		unsigned r = frame == (n == 0) ? INSN_RBP : INSN_RSP;

		if (sym_kind(s->reg[r]) != SYM_CFA)
			continue;
		rule->cfa = UNWIND_CFA_REG;
		rule->cfa_reg = insn_dwarf[r];
		rule->cfa_off = -sym_off(s->reg[r]);
		return r != INSN_RSP || rule->cfa_off >= 0;
	}
	for (unsigned n = 0; n < s->slots; n++) {
		if (sym_kind(s->slot[n].place) != SYM_ALIGNED ||
		    sym_kind(s->slot[n].value) != SYM_CFA ||
		    sym_kind(s->reg[INSN_RSP]) != SYM_ALIGNED)
			continue;
		rule->cfa = UNWIND_CFA_DEREF;
		rule->cfa_reg = UNWIND_REG_RSP;
		rule->cfa_off = sym_off(s->slot[n].place) - sym_off(s->reg[INSN_RSP]);
		rule->cfa_add = -sym_off(s->slot[n].value);
		if (rule->cfa_off >= 0)
			return true;
	}
	if (rule_size(s, rule))
		return true;
	/* Other registers help only in leaves, except RBX, which rules track. */
	for (unsigned n = 0; n < 16; n++) {
		unsigned r = n == 0 ? INSN_RBX : n == INSN_RBX ? INSN_RAX : n;

		if (sym_kind(s->reg[r]) != SYM_CFA)
			continue;
		rule->cfa = UNWIND_CFA_REG;
		rule->cfa_reg = insn_dwarf[r];
		rule->cfa_off = -sym_off(s->reg[r]);
		rule->cfa_add = 0;
		return true;
	}
	return false;
}

static bool rule_ra(const struct frame *s, struct unwind_rule *rule)
{
	if (frame_load(s, SYM(CFA, -8)) == SYM(RETURN, 0) &&
	    (sym_kind(s->reg[INSN_RSP]) != SYM_CFA || sym_off(s->reg[INSN_RSP]) <= -8)) {
		rule->ra = UNWIND_RA_CFA;
		return true;
	}
	if (rule->cfa != UNWIND_CFA_REG)
		return false;
	/* Prefer a stack slot, which is also valid in callers. If RSP was aligned, slots must lie
	 * above the frame pointer. */
	uint64_t lowest = sym_kind(s->reg[INSN_RSP]) == SYM_CFA ? s->reg[INSN_RSP]
								: s->reg[INSN_RBP];
	for (unsigned n = 0; n < s->slots; n++) {
		if (s->slot[n].value != SYM(RETURN, 0) || sym_kind(s->slot[n].place) != SYM_CFA ||
		    sym_kind(lowest) != SYM_CFA || sym_off(s->slot[n].place) < sym_off(lowest))
			continue;
		rule->ra = UNWIND_RA_CFA_OFF;
		rule->cfa_add = sym_off(s->slot[n].place);
		return true;
	}
	for (unsigned r = 0; r < 16; r++) {
		if (s->reg[r] != SYM(RETURN, 0))
			continue;
		rule->ra = UNWIND_RA_REG;
		rule->ra_reg = insn_dwarf[r];
		return true;
	}
	return false;
}

/* Finds the slot that holds the caller's `reg`: a CFA slot not below RSP, one in the red zone, or
 * one above an aligned RSP. */
static bool saved(const struct frame *s, unsigned reg, bool red_zone, uint64_t *ret_place)
{
	for (unsigned n = 0; n < s->slots; n++) {
		uint64_t place = s->slot[n].place, rsp = s->reg[INSN_RSP];

		if (s->slot[n].value != SYM(CALLER, reg))
			continue;
		if (sym_kind(place) == sym_kind(rsp) &&
		    sym_off(place) < sym_off(rsp) - (red_zone ? RED_ZONE : 0))
			continue;
		*ret_place = place;
		return true;
	}
	return false;
}

bool frame_has_cfa(const struct frame *s)
{
	struct unwind_rule rule;

	return rule_cfa(s, &rule);
}

bool frame_rule(const struct frame *s, struct unwind_rule *ret)
{
	struct unwind_rule rule = { .flags = UNWIND_DERIVED | UNWIND_GUESSED };
	uint64_t place;

	if (s->life == FRAME_LIFE_CHILD) {
		*ret = (struct unwind_rule){ .cfa = UNWIND_CFA_REG,
					     .cfa_reg = UNWIND_REG_RSP,
					     .cfa_off = 8,
					     .ra = UNWIND_RA_UNDEFINED,
					     .flags = UNWIND_DERIVED };
		return true;
	}
	if (s->life == FRAME_LIFE_MIXED || !rule_cfa(s, &rule) || !rule_ra(s, &rule))
		return false;
	/* Inner frames do not save the registers that the outermost one may have saved. */
	if (rule.cfa == UNWIND_CFA_NEST) {
		rule.flags |= s->tracked == INSN_RBX ? 0 : UNWIND_R12;
		*ret = rule;
		return true;
	}
	if (saved(s, INSN_RBP, false, &place) ||
	    (s->reg[INSN_RBP] != SYM(CALLER, INSN_RBP) && saved(s, INSN_RBP, true, &place))) {
		if (sym_kind(place) == SYM_CFA) {
			rule.rbp = UNWIND_RBP_CFA;
			rule.rbp_off = sym_off(place);
		} else if (sym_kind(s->reg[INSN_RSP]) == SYM_ALIGNED) {
			rule.rbp = UNWIND_RBP_DEREF_REG;
			rule.rbp_reg = UNWIND_REG_RSP;
			rule.rbp_off = sym_off(place) - sym_off(s->reg[INSN_RSP]);
		} else if (s->reg[INSN_RBP] != SYM(CALLER, INSN_RBP)) {
			rule.rbp = UNWIND_RBP_UNDEFINED;
		}
	} else if (s->reg[INSN_RBP] != SYM(CALLER, INSN_RBP)) {
		rule.rbp = UNWIND_RBP_UNDEFINED;
	}
	const bool holds = s->reg[s->tracked] == SYM(CALLER, s->tracked);

	if (saved(s, s->tracked, !holds, &place) && sym_kind(place) == SYM_CFA &&
	    sym_off(place) % 8 == 0 && sym_off(place) < 0 && sym_off(place) >= -8 * 255)
		rule.rbx = (uint8_t)(-sym_off(place) / 8);
	if (s->tracked != INSN_RBX && (holds || rule.rbx))
		rule.flags |= UNWIND_R12;
	*ret = rule;
	return true;
}

bool frame_matters(const struct frame *s, const struct insn *i)
{
	if (i->op != INSN_OP_NONE)
		return true;
	for (unsigned mask = i->clobbers; mask; mask &= mask - 1) {
		enum sym_kind kind = sym_kind(s->reg[__builtin_ctz(mask)]);

		if (kind != SYM_UNKNOWN && kind != SYM_CONST)
			return true;
	}
	return false;
}
