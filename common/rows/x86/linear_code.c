/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/x86/linear_code.h"

#include <Zydis/Zydis.h>
#include "common/rows/x86/insn.h"

uint32_t linear_code_padding(const uint8_t *code, uint32_t size)
{
	uint32_t at = 0;
	struct insn d;

	while (at < size) {
		if (code[at] == 0xcc || code[at] == 0x90) {
			at++;
			continue;
		}
		/* A zero before other bytes is padding only if zeros precede it. */
		if (code[at] == 0 &&
		    (at + 1 == size || code[at + 1] == 0 || (at && !code[at - 1]))) {
			at++;
			continue;
		}
		if (code[at] != 0x66 && code[at] != 0x0f && code[at] != 0x2e)
			break;
		if (!insn_decode(code + at, size - at, &d) || d.filler != INSN_FILLER_NOP)
			break;
		at += d.len;
	}
	return at;
}

static bool begins_function(const ZydisDecodedInstruction *in)
{
	return in->mnemonic == ZYDIS_MNEMONIC_NOP || in->mnemonic == ZYDIS_MNEMONIC_INT3 ||
	       in->mnemonic == ZYDIS_MNEMONIC_PUSH || in->mnemonic == ZYDIS_MNEMONIC_ENDBR64 ||
	       in->mnemonic == ZYDIS_MNEMONIC_SUB;
}

uint32_t linear_code_entry(const uint8_t *code, uint32_t size, int64_t *ret_call)
{
	bool after_call = false, called_next = false;
	ZydisDecodedInstruction in;
	ZydisDecoderContext ctx;
	ZydisDecoder zydis;
	uint32_t at = 0;

	if (size > LINEAR_CODE_MAX_ENTRY)
		size = LINEAR_CODE_MAX_ENTRY;
	ZydisDecoderInit(&zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	while (at < size && ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(&zydis, &ctx, code + at,
								       size - at, &in))) {
		bool stops = in.mnemonic == ZYDIS_MNEMONIC_HLT || in.mnemonic == ZYDIS_MNEMONIC_UD2;

		/* After a call that does not return, another function begins. */
		if (after_call && !stops && (called_next || begins_function(&in)))
			break;
		at += in.length;
		after_call = in.meta.category == ZYDIS_CATEGORY_CALL;
		called_next = after_call && in.raw.imm[0].is_relative && in.raw.imm[0].value.s == 0;
		if (after_call && in.raw.imm[0].is_relative)
			*ret_call = (int64_t)at + in.raw.imm[0].value.s;
		if (stops || in.meta.category == ZYDIS_CATEGORY_RET ||
		    in.meta.category == ZYDIS_CATEGORY_UNCOND_BR)
			break;
	}
	return at;
}

uint64_t linear_code_argument(const uint8_t *code, uint32_t size, uint64_t address)
{
	uint64_t argument = 0;
	uint32_t at = 0;
	struct insn d;

	if (size > LINEAR_CODE_MAX_ENTRY)
		size = LINEAR_CODE_MAX_ENTRY;
	while (at < size && insn_decode(code + at, size - at, &d)) {
		at += d.len;
		if (d.op == INSN_OP_CALL || d.next == INSN_NEXT_JUMP ||
		    d.next == INSN_NEXT_INDIRECT)
			return argument;
		if (d.next != INSN_NEXT_FALL)
			break;
		if (d.op == INSN_OP_ADDRESS && d.dst == INSN_RDI)
			argument = address + at + (uint64_t)(int64_t)d.imm;
		else if (d.op == INSN_OP_CONST && d.dst == INSN_RDI)
			argument = (uint32_t)d.imm;
		else if (d.clobbers >> INSN_RDI & 1 ||
			 (d.op != INSN_OP_STORE && d.dst == INSN_RDI) ||
			 (d.op == INSN_OP_SWAP && d.src == INSN_RDI))
			argument = 0;
	}
	return 0;
}

uint32_t linear_code_past(const uint8_t *code, uint32_t size)
{
	uint32_t at = 0;
	struct insn d;

	while (at < size) {
		if (!insn_decode(code + at, size - at, &d)) {
			at++;
			continue;
		}
		at += d.len;
		if (d.next != INSN_NEXT_FALL && d.next != INSN_NEXT_COND)
			break;
	}
	return at;
}
