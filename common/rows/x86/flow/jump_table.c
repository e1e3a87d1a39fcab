/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/x86/flow/jump_table.h"

#define INSN_NO_REG 16
#define CALLERS 0xf028u /* registers that calls preserve: rbx rbp r12 to r15 */

enum want {
	WANT_TARGET, /* the instruction that sets the register jumped to */
	WANT_LOAD,   /* the one that loads one of the two addends */
	WANT_TABLE,  /* the instruction that sets the table's address, and the comparison */
	WANT_NOTHING,
};

struct jump_table_search {
	enum want want;
	uint8_t sum[2]; /* WANT_TARGET: [0]; WANT_LOAD: both */
	uint8_t index;	/* the register with the number of the case; INSN_NO_REG: it came from
			 * memory */
	bool bounded, base_wanted;
	ZydisMnemonic branch; /* the nearest conditional branch after this point */
	struct jump_table t;
};

static uint8_t gpr(ZydisRegister r)
{
	ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);

	return ZydisRegisterGetClass(full) == ZYDIS_REGCLASS_GPR64
		       ? (uint8_t)ZydisRegisterGetId(full)
		       : INSN_NO_REG;
}

static bool writes(const ZydisDecodedInstruction *in, const ZydisDecodedOperand *op, uint8_t reg)
{
	for (unsigned i = 0; reg != INSN_NO_REG && i < in->operand_count; i++) {
		if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE && gpr(op[i].reg.value) == reg)
			return true;
	}
	return false;
}

/* Matches a table's entry: [base + index * scale + disp]. */
static bool entry_at(const ZydisDecodedOperand *op, uint8_t width, struct jump_table_search *s)
{
	if (op->type != ZYDIS_OPERAND_TYPE_MEMORY || op->mem.scale != width ||
	    op->mem.index == ZYDIS_REGISTER_NONE)
		return false;
	s->index = gpr(op->mem.index);
	s->t.base = gpr(op->mem.base);
	if (op->mem.base != ZYDIS_REGISTER_NONE && s->t.base == INSN_NO_REG)
		return false;
	s->t.width = width;
	s->t.address = (uint64_t)op->mem.disp.value;
	s->t.known = op->mem.base == ZYDIS_REGISTER_NONE;
	s->base_wanted = !s->t.known;
	s->want = WANT_TABLE;
	return true;
}

static bool is_pointer(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.index == ZYDIS_REGISTER_NONE;
}

static bool look_target(struct jump_table_search *s, const ZydisDecodedInstruction *in,
			const ZydisDecodedOperand *op, uint64_t next)
{
	bool to_it = in->operand_count >= 2 && op[0].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		     op[0].size == 64 && gpr(op[0].reg.value) == s->sum[0];

	if (to_it && in->mnemonic == ZYDIS_MNEMONIC_ADD &&
	    op[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
		s->sum[1] = gpr(op[1].reg.value);
		s->want = WANT_LOAD;
		return true;
	}
	if (to_it && in->mnemonic == ZYDIS_MNEMONIC_LEA && op[1].mem.base == ZYDIS_REGISTER_RIP) {
		s->t.pointer = true;
		s->t.address = next + (uint64_t)op[1].mem.disp.value;
		return false;
	}
	if (to_it && in->mnemonic == ZYDIS_MNEMONIC_MOV) {
		if (op[1].type != ZYDIS_OPERAND_TYPE_REGISTER) {
			s->t.pointer = is_pointer(&op[1]);
			return entry_at(&op[1], 8, s);
		}
		s->sum[0] = gpr(op[1].reg.value);
		return true;
	}
	return !writes(in, op, s->sum[0]);
}

static bool look_load(struct jump_table_search *s, const ZydisDecodedInstruction *in,
		      const ZydisDecodedOperand *op)
{
	for (unsigned i = 0; i < 2; i++) {
		uint8_t other = s->sum[1 - i];

		if (in->mnemonic == ZYDIS_MNEMONIC_MOVSXD && in->operand_count >= 2 &&
		    op[0].size == 64 && gpr(op[0].reg.value) == s->sum[i])
			return entry_at(&op[1], 4, s) && s->t.base == other && s->t.address == 0;
	}
	return !writes(in, op, s->sum[0]) && !writes(in, op, s->sum[1]);
}

/* Sets the number of cases from a comparison, by the branch after it. */
static void compared(struct jump_table_search *s, uint64_t with)
{
	s->bounded = true;
	if (with >= JUMP_TABLE_MAX)
		return;
	/* Assembly uses signed comparisons for numbers that are known to be positive. */
	if (s->branch == ZYDIS_MNEMONIC_JNBE || s->branch == ZYDIS_MNEMONIC_JBE ||
	    s->branch == ZYDIS_MNEMONIC_JNLE || s->branch == ZYDIS_MNEMONIC_JLE)
		s->t.bound = (uint32_t)with + 1;
	else if (s->branch == ZYDIS_MNEMONIC_JNB || s->branch == ZYDIS_MNEMONIC_JB ||
		 s->branch == ZYDIS_MNEMONIC_JNL || s->branch == ZYDIS_MNEMONIC_JL)
		s->t.bound = (uint32_t)with;
}

static void look_bound(struct jump_table_search *s, const ZydisDecodedInstruction *in,
		       const ZydisDecodedOperand *op)
{
	bool two = in->operand_count >= 2;
	uint8_t first = two && op[0].type == ZYDIS_OPERAND_TYPE_REGISTER ? gpr(op[0].reg.value)
									 : INSN_NO_REG;

	if (in->meta.category == ZYDIS_CATEGORY_COND_BR) {
		s->branch = in->mnemonic;
		return;
	}
	if (two && in->mnemonic == ZYDIS_MNEMONIC_CMP &&
	    op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && s->branch && first == s->index &&
	    (first != INSN_NO_REG || op[0].type == ZYDIS_OPERAND_TYPE_MEMORY)) {
		compared(s, op[1].imm.value.u);
		return;
	}
	if (!writes(in, op, s->index))
		return;
	if (two && first == s->index &&
	    (in->mnemonic == ZYDIS_MNEMONIC_MOV || in->mnemonic == ZYDIS_MNEMONIC_MOVZX ||
	     in->mnemonic == ZYDIS_MNEMONIC_MOVSX || in->mnemonic == ZYDIS_MNEMONIC_MOVSXD) &&
	    op[1].type != ZYDIS_OPERAND_TYPE_IMMEDIATE) {
		s->index = op[1].type == ZYDIS_OPERAND_TYPE_REGISTER ? gpr(op[1].reg.value)
								     : INSN_NO_REG;
		return;
	}
	s->bounded = true;
	if (two && first == s->index && in->mnemonic == ZYDIS_MNEMONIC_AND &&
	    op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && op[1].imm.value.u < JUMP_TABLE_MAX)
		s->t.bound = (uint32_t)op[1].imm.value.u + 1;
}

static bool look_table(struct jump_table_search *s, const ZydisDecodedInstruction *in,
		       const ZydisDecodedOperand *op, uint64_t next)
{
	if (!s->bounded)
		look_bound(s, in, op);
	if (s->base_wanted && writes(in, op, s->t.base)) {
		if (in->mnemonic == ZYDIS_MNEMONIC_LEA && op[1].mem.base == ZYDIS_REGISTER_RIP) {
			s->t.address += next + (uint64_t)op[1].mem.disp.value;
			s->t.known = true;
			s->base_wanted = false;
		} else if (in->mnemonic == ZYDIS_MNEMONIC_MOV && op[0].size == 64 &&
			   op[1].type == ZYDIS_OPERAND_TYPE_REGISTER) {
			s->t.base = gpr(op[1].reg.value);
		} else {
			return false;
		}
	}
	if (s->bounded && !s->base_wanted)
		s->want = WANT_NOTHING;
	return true;
}

bool jump_table_find(const ZydisDecoder *decoder, const uint8_t *code, uint32_t size,
		     uint64_t address, const uint32_t *path, uint32_t n, struct jump_table *ret)
{
	struct jump_table_search s = { .want = WANT_TARGET };

	*ret = (struct jump_table){ 0 };
	for (uint32_t i = 0; i < n && s.want != WANT_NOTHING; i++) {
		ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
		ZydisDecodedInstruction in;
		bool goes_on;

		if (path[i] >= size || !ZYAN_SUCCESS(ZydisDecoderDecodeFull(
					       decoder, code + path[i], size - path[i], &in, op)))
			break;
		if (i == 0) {
			if (op[0].type == ZYDIS_OPERAND_TYPE_REGISTER)
				s.sum[0] = gpr(op[0].reg.value);
			else if (!entry_at(&op[0], 8, &s)) {
				ret->pointer = is_pointer(&op[0]);
				return false;
			}
			continue;
		}
		if (s.want == WANT_TARGET)
			goes_on = look_target(&s, &in, op, address + path[i] + in.length);
		else if (s.want == WANT_LOAD)
			goes_on = look_load(&s, &in, op);
		else
			goes_on = look_table(&s, &in, op, address + path[i] + in.length);
		if (!goes_on) {
			ret->pointer = s.t.pointer;
			ret->address = s.t.pointer ? s.t.address : 0;
			return false;
		}
		/* A call: the search does not track whether a value survives it. */
		if (in.meta.category == ZYDIS_CATEGORY_CALL) {
			if (s.want != WANT_TABLE || (s.base_wanted && !(CALLERS >> s.t.base & 1)))
				return false;
			s.bounded = true;
		}
	}
	*ret = s.t;
	ret->untouched = s.want == WANT_TARGET;
	return s.want == WANT_TABLE || s.want == WANT_NOTHING;
}
