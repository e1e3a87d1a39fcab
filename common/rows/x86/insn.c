/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/x86/insn.h"

#include <string.h>
#include <Zydis/Zydis.h>
#include "bpf/mix.h"

const uint8_t insn_dwarf[16] = { 0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 };

#define MEMO_BITS 12
#define KEY_MAX 8

/* The place of an instruction's imm in its bytes. Size 0: imm is constant. */
struct patch {
	uint8_t at, size; /* bytes; signed, little-endian */
	int16_t factor;
	bool byte;  /* only the low eight bits count */
	bool never; /* the result must not be cached */
};

struct memo {
	uint64_t key; /* the bytes that it depends on, first byte lowest */
	struct insn insn;
	struct patch patch;
};

/* The cache, shared by all files. */
static struct memo memory[1u << MEMO_BITS];

/* --- by Zydis --- */

static uint8_t gpr_of(ZydisRegister r)
{
	ZydisRegister full = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);

	if (ZydisRegisterGetClass(full) != ZYDIS_REGCLASS_GPR64)
		return INSN_NO_REG;
	return (uint8_t)ZydisRegisterGetId(full);
}

/* Whether this is a vector instruction, which writes no general register. */
static bool only_vectors(const ZydisDecodedInstruction *in)
{
	uint8_t o = in->opcode;

	if (in->opcode_map != ZYDIS_OPCODE_MAP_0F)
		return false;
	return (o >= 0x10 && o <= 0x17) || o == 0x28 || o == 0x29 || o == 0x2e || o == 0x2f ||
	       (o >= 0x51 && o <= 0x6f) || (o >= 0x70 && o <= 0x76) || o == 0x7c || o == 0x7d ||
	       o == 0x7f || o == 0xc2 || o == 0xc6 || (o >= 0xd0 && o != 0xd7);
}

static bool simple_memory(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_MEMORY && op->mem.index == ZYDIS_REGISTER_NONE &&
	       gpr_of(op->mem.base) != INSN_NO_REG && op->mem.segment != ZYDIS_REGISTER_FS &&
	       op->mem.segment != ZYDIS_REGISTER_GS && op->mem.disp.value >= INT32_MIN &&
	       op->mem.disp.value <= INT32_MAX;
}

static bool is_reg(const ZydisDecodedOperand *op)
{
	return op->type == ZYDIS_OPERAND_TYPE_REGISTER && gpr_of(op->reg.value) != INSN_NO_REG;
}

static void from_disp(struct insn *i, struct patch *p, const ZydisDecodedInstruction *in,
		      const ZydisDecoderContext *ctx, const ZydisDecodedOperand *at)
{
	bool scaled = in->raw.disp.size == 8 && ctx->cd8_scale > 1;

	i->imm = (int32_t)at->mem.disp.value;
	*p = (struct patch){ .at = in->raw.disp.offset,
			     .size = in->raw.disp.size / 8,
			     .factor = scaled ? ctx->cd8_scale : 1 };
}

static void from_imm(struct insn *i, struct patch *p, const ZydisDecodedInstruction *in)
{
	i->imm = (int32_t)in->raw.imm[0].value.s;
	*p = (struct patch){ .at = in->raw.imm[0].offset,
			     .size = in->raw.imm[0].size / 8,
			     .factor = 1 };
}

static void note_op(struct insn *i, struct patch *p, const ZydisDecodedInstruction *in,
		    const ZydisDecoderContext *ctx, const ZydisDecodedOperand *op)
{
	bool full = in->operand_count && op[0].size == 64;

	/* First all written registers; the cases below remove those they describe better. */
	for (unsigned n = 0; n < in->operand_count; n++) {
		if (op[n].type == ZYDIS_OPERAND_TYPE_REGISTER &&
		    op[n].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
			uint8_t r = gpr_of(op[n].reg.value);

			if (r != INSN_NO_REG)
				i->clobbers |= (uint16_t)(1u << r);
		} else if (op[n].type == ZYDIS_OPERAND_TYPE_MEMORY &&
			   op[n].visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT &&
			   op[n].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE &&
			   simple_memory(&op[n])) {
			i->op = INSN_OP_STORE;
			i->dst = gpr_of(op[n].mem.base);
			i->src = INSN_NO_REG;
			i->width = op[n].size / 8 < 255 ? (uint8_t)(op[n].size / 8) : 255;
			from_disp(i, p, in, ctx, &op[n]);
		}
	}
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_OR:
		/* A memory barrier: lock or [rsp], 0. */
		if (op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && i->op == INSN_OP_STORE) {
			p->never = true;
			if (op[1].imm.value.u == 0)
				i->op = INSN_OP_NONE;
		}
		/* Speculative load hardening: it changes RSP only on mispredicted paths. On real
		 * paths the register is zero. */
		if (is_reg(&op[0]) && full && is_reg(&op[1]) && gpr_of(op[0].reg.value) == INSN_RSP)
			i->clobbers = 0;
		return;
	case ZYDIS_MNEMONIC_PUSH:
		i->op = INSN_OP_PUSH;
		i->width = in->operand_width == 16 ? 2 : 8;
		i->src = is_reg(&op[0]) && full ? gpr_of(op[0].reg.value) : INSN_NO_REG;
		i->clobbers = 0;
		return;
	case ZYDIS_MNEMONIC_PUSHFQ:
	case ZYDIS_MNEMONIC_PUSHF:
		i->op = INSN_OP_PUSH;
		i->width = in->mnemonic == ZYDIS_MNEMONIC_PUSHF ? 2 : 8;
		i->src = INSN_NO_REG;
		i->clobbers = 0;
		return;
	case ZYDIS_MNEMONIC_POPFQ:
	case ZYDIS_MNEMONIC_POPF:
	case ZYDIS_MNEMONIC_POP:
		i->op = INSN_OP_POP;
		i->width = in->operand_width == 16 || in->mnemonic == ZYDIS_MNEMONIC_POPF ? 2 : 8;
		i->dst = in->mnemonic == ZYDIS_MNEMONIC_POP && is_reg(&op[0])
				 ? gpr_of(op[0].reg.value)
				 : INSN_NO_REG;
		i->clobbers = 0;
		return;
	case ZYDIS_MNEMONIC_LEAVE:
		i->op = INSN_OP_LEAVE;
		i->clobbers = 0;
		return;
	case ZYDIS_MNEMONIC_SYSCALL:
		i->op = INSN_OP_SYSCALL;
		i->clobbers = 0;
		return;
	case ZYDIS_MNEMONIC_LEA:
		if (is_reg(&op[0]) && full && op[1].mem.base == ZYDIS_REGISTER_RIP) {
			i->op = INSN_OP_ADDRESS;
			i->dst = gpr_of(op[0].reg.value);
			from_disp(i, p, in, ctx, &op[1]);
			return;
		}
		if (is_reg(&op[0]) && full && op[1].mem.index == ZYDIS_REGISTER_NONE &&
		    gpr_of(op[1].mem.base) != INSN_NO_REG && op[1].mem.base != ZYDIS_REGISTER_RIP &&
		    ZydisRegisterGetClass(op[1].mem.base) == ZYDIS_REGCLASS_GPR64) {
			i->op = INSN_OP_LEA;
			i->dst = gpr_of(op[0].reg.value);
			i->src = gpr_of(op[1].mem.base);
			i->clobbers = 0;
			from_disp(i, p, in, ctx, &op[1]);
		}
		return;
	case ZYDIS_MNEMONIC_ADD:
	case ZYDIS_MNEMONIC_SUB:
		if (is_reg(&op[0]) && full && op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE &&
		    op[1].imm.value.s > INT32_MIN && op[1].imm.value.s <= INT32_MAX) {
			i->op = INSN_OP_LEA;
			i->dst = i->src = gpr_of(op[0].reg.value);
			i->clobbers = 0;
			from_imm(i, p, in);
			if (in->mnemonic == ZYDIS_MNEMONIC_SUB) {
				i->imm = -i->imm;
				p->factor = -1;
			}
		} else if (is_reg(&op[0]) && is_reg(&op[1]) && full &&
			   gpr_of(op[0].reg.value) == INSN_RSP) {
			i->op = in->mnemonic == ZYDIS_MNEMONIC_SUB ? INSN_OP_LOWER : INSN_OP_RAISE;
			i->dst = INSN_RSP;
			i->src = gpr_of(op[1].reg.value);
			i->clobbers = 0;
		}
		return;
	case ZYDIS_MNEMONIC_AND:
		if (is_reg(&op[0]) && gpr_of(op[0].reg.value) == INSN_RSP) {
			i->op = INSN_OP_ALIGN;
			i->dst = INSN_RSP;
			i->clobbers = 0;
			if (full && op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE)
				from_imm(i, p, in);
		}
		return;
	case ZYDIS_MNEMONIC_XOR:
		if (is_reg(&op[0]) && is_reg(&op[1]) && op[0].reg.value == op[1].reg.value &&
		    op[0].size >= 32) {
			i->op = INSN_OP_CONST;
			i->dst = gpr_of(op[0].reg.value);
			i->imm = 0;
			i->clobbers = 0;
			p->size = 0;
		}
		return;
	case ZYDIS_MNEMONIC_XCHG:
		if (is_reg(&op[0]) && is_reg(&op[1]) && full) {
			i->op = INSN_OP_SWAP;
			i->dst = gpr_of(op[0].reg.value);
			i->src = gpr_of(op[1].reg.value);
			i->clobbers = 0;
		}
		return;
	case ZYDIS_MNEMONIC_MOV:
		if (is_reg(&op[0]) && full && is_reg(&op[1])) {
			i->op = INSN_OP_LEA;
			i->dst = gpr_of(op[0].reg.value);
			i->src = gpr_of(op[1].reg.value);
			i->clobbers = 0;
		} else if (is_reg(&op[0]) && op[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
			i->op = op[0].size >= 32 ? INSN_OP_CONST : INSN_OP_CONST_LOW;
			if (op[0].reg.value >= ZYDIS_REGISTER_AH &&
			    op[0].reg.value <= ZYDIS_REGISTER_BH) {
				i->op = INSN_OP_NONE;
				return;
			}
			i->dst = gpr_of(op[0].reg.value);
			i->clobbers = 0;
			from_imm(i, p, in);
			if (op[0].size == 8) {
				i->imm &= 0xff;
				p->byte = true;
			}
			if (op[0].size == 16 || op[1].imm.value.s > UINT32_MAX) {
				i->op = INSN_OP_NONE;
				i->clobbers = (uint16_t)(1u << i->dst);
			}
		} else if (is_reg(&op[0]) && full && simple_memory(&op[1])) {
			i->op = INSN_OP_LOAD;
			i->dst = gpr_of(op[0].reg.value);
			i->src = gpr_of(op[1].mem.base);
			i->clobbers = 0;
			from_disp(i, p, in, ctx, &op[1]);
		} else if (simple_memory(&op[0]) && full && is_reg(&op[1])) {
			i->src = gpr_of(op[1].reg.value);
		}
		return;
	case ZYDIS_MNEMONIC_CMP:
		if (is_reg(&op[0]) && full && is_reg(&op[1]) &&
		    (gpr_of(op[0].reg.value) == INSN_RSP || gpr_of(op[1].reg.value) == INSN_RSP)) {
			i->op = INSN_OP_COMPARE;
			i->src = gpr_of(op[gpr_of(op[0].reg.value) == INSN_RSP].reg.value);
		}
		return;
	case ZYDIS_MNEMONIC_ENTER:
		i->clobbers = 1u << INSN_RSP | 1u << INSN_RBP;
		return;
	default:
		return;
	}
}

/* A branch or a call. */
static void from_relative(struct insn *i, struct patch *p, const ZydisDecodedInstruction *in)
{
	i->relative = in->raw.imm[0].is_relative && in->raw.imm[0].size;
	if (i->relative)
		from_imm(i, p, in);
}

static bool note_flow(struct insn *i, struct patch *p, const ZydisDecodedInstruction *in)
{
	switch (in->meta.category) {
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSRET:
		i->next = in->mnemonic == ZYDIS_MNEMONIC_RET ? INSN_NEXT_RET : INSN_NEXT_END;
		return true;
	case ZYDIS_CATEGORY_CALL:
		i->op = INSN_OP_CALL;
		from_relative(i, p, in);
		return true;
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_COND_BR:
		if (in->mnemonic == ZYDIS_MNEMONIC_XABORT || in->mnemonic == ZYDIS_MNEMONIC_XEND)
			return true;
		i->zero = in->mnemonic == ZYDIS_MNEMONIC_JZ    ? 1
			  : in->mnemonic == ZYDIS_MNEMONIC_JNZ ? 2
							       : 0;
		if (in->mnemonic >= ZYDIS_MNEMONIC_LOOP && in->mnemonic <= ZYDIS_MNEMONIC_LOOPNE)
			i->clobbers = 1u << INSN_RCX;
		from_relative(i, p, in);
		/* jmp *x(%rip) */
		i->memory = !i->relative && in->raw.modrm.mod == 0 && in->raw.modrm.rm == 5;
		i->src = !i->relative && in->raw.modrm.mod == 3
				 ? (uint8_t)(in->raw.modrm.rm | in->raw.rex.B << 3)
				 : INSN_NO_REG;
		i->next = !i->relative					  ? INSN_NEXT_INDIRECT
			  : in->meta.category == ZYDIS_CATEGORY_UNCOND_BR ? INSN_NEXT_JUMP
									  : INSN_NEXT_COND;
		return true;
	default:
		break;
	}
	switch (in->mnemonic) {
	case ZYDIS_MNEMONIC_INT3:
		i->filler = INSN_FILLER_TRAP;
		i->next = INSN_NEXT_END;
		return true;
	case ZYDIS_MNEMONIC_HLT:
	case ZYDIS_MNEMONIC_UD2:
	case ZYDIS_MNEMONIC_UD0:
	case ZYDIS_MNEMONIC_UD1:
	case ZYDIS_MNEMONIC_IRETQ:
		i->next = INSN_NEXT_END;
		return true;
	case ZYDIS_MNEMONIC_NOP:
		i->filler = INSN_FILLER_NOP;
		return true;
	default:
		return only_vectors(in);
	}
}

/* Whether insn.plain holds, for an instruction whose operands Zydis decoded. */
static bool is_plain(const struct insn *i, const ZydisDecodedInstruction *in,
		     const ZydisDecodedOperand *op)
{
	for (unsigned n = 0; n < in->operand_count; n++) {
		if (op[n].type == ZYDIS_OPERAND_TYPE_MEMORY &&
		    op[n].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE)
			return false;
	}
	return i->op == INSN_OP_NONE && i->next == INSN_NEXT_FALL &&
	       in->mnemonic != ZYDIS_MNEMONIC_MOV && in->mnemonic != ZYDIS_MNEMONIC_LEA &&
	       in->mnemonic != ZYDIS_MNEMONIC_ADD && in->mnemonic != ZYDIS_MNEMONIC_SUB;
}

static bool by_zydis(const uint8_t *code, uint32_t n, struct insn *ret, struct patch *p)
{
	ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
	ZydisDecodedInstruction in;
	ZydisDecoderContext ctx;
	ZydisDecoder zydis;

	*p = (struct patch){ 0 };
	ZydisDecoderInit(&zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&zydis, &ctx, code, n, &in)))
		return false;
	*ret = (struct insn){ .len = in.length };
	bool known = note_flow(ret, p, &in);

	if (known && ret->next != INSN_NEXT_FALL)
		return true;
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeOperands(&zydis, &ctx, &in, op, in.operand_count)))
		return false;
	if (!known)
		note_op(ret, p, &in, &ctx, op);
	ret->plain = is_plain(ret, &in, op);
	/* INT32_MIN has no negation, so the code above treats it differently. */
	if (in.raw.imm[0].size == 32 && (int32_t)in.raw.imm[0].value.s == INT32_MIN)
		p->never = true;
	return true;
}

bool insn_decode_anew(const uint8_t *code, uint32_t n, struct insn *ret)
{
	struct patch p;

	return by_zydis(code, n, ret, &p);
}

/* --- the cache --- */

/* The meaning of a first byte in 64-bit mode. If it is uncertain whether a ModRM follows, the byte
 * counts as MODRM: a key may be too long, but not too short. */
enum lead { MODRM, PLAIN, PREFIX, REX, ESCAPE, VEX2, VEX3, EVEX, XOP };
#define X4(x) x, x, x, x
#define X8(x) X4(x), X4(x)
#define X16(x) X8(x), X8(x)
#define ALU X4(MODRM), PLAIN, PLAIN
static const uint8_t leads[256] = {
	/* clang-format off */
	/* 00 */ ALU, MODRM, MODRM, ALU, MODRM, ESCAPE,
	/* 10 */ ALU, MODRM, MODRM, ALU, MODRM, MODRM,
	/* 20 */ ALU, PREFIX, MODRM, ALU, PREFIX, MODRM,
	/* 30 */ ALU, PREFIX, MODRM, ALU, PREFIX, MODRM,
	/* 40 */ X16(REX),
	/* 50 */ X16(PLAIN),
	/* 60 */ MODRM, MODRM, EVEX, MODRM, X4(PREFIX),
	/* 68 */ PLAIN, MODRM, PLAIN, MODRM, X4(PLAIN),
	/* 70 */ X16(PLAIN),
	/* 80 */ X8(MODRM), X4(MODRM), MODRM, MODRM, MODRM, XOP,
	/* 90 */ X16(PLAIN),
	/* a0 */ X4(MODRM), X4(PLAIN), X8(PLAIN),
	/* b0 */ X16(PLAIN),
	/* c0 */ MODRM, MODRM, PLAIN, PLAIN, VEX3, VEX2, MODRM, MODRM,
	/* c8 */ PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, PLAIN, MODRM, PLAIN,
	/* d0 */ X16(MODRM),
	/* e0 */ X16(PLAIN),
	/* f0 */ PREFIX, PLAIN, PREFIX, PREFIX, PLAIN, PLAIN, MODRM, MODRM,
	/* f8 */ X4(PLAIN), PLAIN, PLAIN, MODRM, MODRM,
	/* clang-format on */
};
#undef ALU
#undef X16
#undef X8
#undef X4

/* Returns how many of the eight bytes at code, the first one lowest, identify the instruction
 * without displacement and immediate. 0: more than eight, or unknown. */
static unsigned key_length(uint64_t code)
{
	uint8_t lead = leads[code & 0xff];
	unsigned n = 0;
	uint8_t b;

	while (lead == PREFIX) {
		if (++n == 5)
			return 0;
		lead = leads[code >> 8 * n & 0xff];
	}
	if (lead == REX) {
		n++;
		lead = leads[code >> 8 * n & 0xff];
		if (lead == PREFIX || lead == REX)
			return 0;
	}
	switch (lead) {
	case PLAIN:
		return n + 1;
	case MODRM:
		n += 1;
		break;
	case ESCAPE:
		if (n + 1 >= sizeof(code))
			return 0;
		b = (uint8_t)(code >> 8 * (n + 1));
		n += 2;
		if (b == 0x38 || b == 0x3a)
			n++;
		else if (b == 0x05 || b == 0x0b || b == 0x31 || b == 0x77 || (b & 0xf0) == 0x80 ||
			 b == 0xa2 || (b & 0xf8) == 0xc8)
			return n;
		else if (b == 0x0f)
			return 0;
		break;
	case VEX2:
	case VEX3:
	case EVEX:
		if (n)
			return 0;
		n = lead == VEX2 ? 3 : lead == VEX3 ? 4 : 5;
		break;
	default:
		return 0;
	}
	if (n >= sizeof(code))
		return 0;
	b = (uint8_t)(code >> 8 * n);
	n += b < 0xc0 && (b & 7) == 4 ? 2 : 1;
	return n <= KEY_MAX ? n : 0;
}

static bool patched(const struct memo *m, const uint8_t *code, struct insn *ret)
{
	const struct patch *p = &m->patch;
	int32_t value;

	*ret = m->insn;
	if (!p->size)
		return true;
	if (p->size == 1) {
		value = (int8_t)code[p->at];
	} else if (p->size == 4) {
		memcpy(&value, code + p->at, 4);
		if (value == INT32_MIN)
			return false;
	} else {
		int16_t two;

		memcpy(&two, code + p->at, 2);
		value = two;
	}
	value *= p->factor;
	ret->imm = p->byte ? value & 0xff : value;
	return true;
}

bool insn_decode(const uint8_t *code, uint32_t n, struct insn *ret)
{
	struct patch patch;
	struct memo *m;
	uint64_t key;
	unsigned len;

	if (n < KEY_MAX)
		return insn_decode_anew(code, n, ret);
	memcpy(&key, code, 8);
	len = key_length(key);
	if (!len)
		return insn_decode_anew(code, n, ret);
	key &= UINT64_MAX >> (64 - 8 * len);
	m = &memory[key * MIX_GOLDEN >> (64 - MEMO_BITS)];
	if (m->key == key && m->insn.len && m->insn.len <= n && patched(m, code, ret))
		return true;
	if (!by_zydis(code, n, ret, &patch))
		return false;
	if (patch.size <= 4 && !patch.never)
		*m = (struct memo){ .key = key, .insn = *ret, .patch = patch };
	return true;
}
