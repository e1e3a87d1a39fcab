/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An instruction decoder, limited to effects on the stack: which registers an instruction changes,
 * and where the code continues.
 *
 * Zydis does the decoding, which takes a quarter of a microsecond. A cache stores its results by
 * the bytes that they depend on: prefixes, opcode, ModRM, SIB, but not displacement and immediate.
 * Most instructions of a program agree in these bytes with an earlier one.
 *
 * Source: Intel's manual, volume 2, chapter 2 (instruction format). Pure.
 */
#ifndef COMMON_ROWS_X86_INSN_H
#define COMMON_ROWS_X86_INSN_H

#include <stdbool.h>
#include <stdint.h>

/* General registers by their numbers in instructions. */
enum insn_reg {
	INSN_RAX,
	INSN_RCX,
	INSN_RDX,
	INSN_RBX,
	INSN_RSP,
	INSN_RBP,
	INSN_RSI,
	INSN_RDI,
	INSN_NO_REG = 16
};
/* The numbers of these registers in unwind rules (enum unwind_reg). */
extern const uint8_t insn_dwarf[16];

enum insn_op {
	INSN_OP_NONE,
	INSN_OP_PUSH,	 /* src, or INSN_NO_REG; width */
	INSN_OP_POP,	 /* dst, or INSN_NO_REG; width */
	INSN_OP_LEA,	 /* dst = src + imm */
	INSN_OP_CONST,	 /* dst = imm */
	INSN_OP_ADDRESS, /* dst = the address of the next instruction + imm */
	INSN_OP_CONST_LOW,
	INSN_OP_LOAD,  /* dst = [src + imm] */
	INSN_OP_STORE, /* [dst + imm] = src, or INSN_NO_REG; width */
	INSN_OP_LEAVE,
	INSN_OP_LOWER, /* dst -= src */
	INSN_OP_RAISE, /* dst += src */
	INSN_OP_ALIGN, /* dst &= imm; imm 0: the mask is not known */
	INSN_OP_SWAP,
	INSN_OP_COMPARE, /* compares src with RSP */
	INSN_OP_CALL,	 /* target: its end + imm, if relative */
	INSN_OP_SYSCALL,
};
enum insn_next {
	INSN_NEXT_FALL,
	INSN_NEXT_JUMP, /* target: its end + imm */
	INSN_NEXT_COND, /* the same */
	INSN_NEXT_RET,
	INSN_NEXT_LEAVES,
	INSN_NEXT_INDIRECT,
	INSN_NEXT_END
};
enum insn_filler { INSN_FILLER_NONE, INSN_FILLER_NOP, INSN_FILLER_TRAP };

struct insn {
	int32_t imm;
	uint16_t clobbers; /* bit mask: registers written, besides the effect of op */
	uint8_t len;	   /* bytes */
	uint8_t op, next;  /* enum insn_op; enum insn_next without INSN_NEXT_LEAVES */
	uint8_t dst, src, width;
	uint8_t zero;	   /* a conditional jump: 1: taken if zero; 2: taken if not zero */
	uint8_t filler;	   /* enum insn_filler */
	bool relative : 1; /* the target of the call is relative */
	bool plain : 1;	   /* it only clobbers registers, and is not mov, lea, add or sub */
	bool memory : 1;   /* an indirect jump through memory at a fixed address */
};

/* Decodes the first instruction of the n bytes at code. Returns false if they do not begin with a
 * valid one. Not thread-safe, because of the cache. */
bool insn_decode(const uint8_t *code, uint32_t n, struct insn *ret);
/* Like insn_decode, without the cache. A test compares the two. */
bool insn_decode_anew(const uint8_t *code, uint32_t n, struct insn *ret);

#endif
