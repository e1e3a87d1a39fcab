/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Instructions, as far as they bear on the stack: what each does to registers and where the code
 * goes on.
 *
 * Zydis says so; what it said is remembered by the bytes that it depends on (prefixes, opcode,
 * ModRM, SIB: all but displacement and immediate), since code is mostly made of instructions that
 * differ in nothing else, and Zydis needs a quarter of a microsecond for each.
 *
 * Source: Intel's manual, volume 2, chapter 2 (instruction format). Pure.
 */
#ifndef PROFPIPE_INSN_H
#define PROFPIPE_INSN_H

#include <stdbool.h>
#include <stdint.h>

/* General registers, by their numbers in instructions. */
enum gpr { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, NO_REG = 16 };
/* By those numbers, the ones that unwind rules have (enum unwind_reg). */
extern const uint8_t insn_dwarf[16];

enum op {
	OP_NONE,
	OP_PUSH,    /* src, or NO_REG; width */
	OP_POP,	    /* dst, or NO_REG; width */
	OP_LEA,	    /* dst = src + imm */
	OP_CONST,   /* dst = imm */
	OP_ADDRESS, /* dst = the address of the next instruction + imm */
	OP_CONST_LOW,
	OP_LOAD,  /* dst = [src + imm] */
	OP_STORE, /* [dst + imm] = src, or NO_REG; width */
	OP_LEAVE,
	OP_LOWER, /* dst -= src */
	OP_RAISE, /* dst += src */
	OP_ALIGN, /* dst &= imm, which may be anything where it is 0 */
	OP_SWAP,
	OP_COMPARE, /* src with RSP */
	OP_CALL,    /* by imm from its end, where it is relative */
	OP_SYSCALL,
};
enum next {
	NEXT_FALL,
	NEXT_JUMP, /* by imm from its end */
	NEXT_COND, /* likewise */
	NEXT_RET,
	NEXT_LEAVES,
	NEXT_INDIRECT,
	NEXT_END
};
enum filler { FILLER_NONE, FILLER_NOP, FILLER_TRAP };

struct decoded {
	int32_t imm;
	uint16_t clobbers; /* registers written, as bits, beside what op says */
	uint8_t len;	   /* bytes */
	uint8_t op, next;  /* enum op; enum next, but LEAVES */
	uint8_t dst, src, width;
	uint8_t zero;	   /* 1: jumps on zero; 2: on not zero */
	uint8_t filler;	   /* enum filler */
	bool relative : 1; /* of a call */
	bool plain : 1;	   /* it only clobbers registers, and is none of mov, lea, add, sub */
	bool memory : 1;   /* an indirect jump through memory at a fixed address */
};

/* The instruction that the n bytes at code begin with. False: none. Not for two threads at once. */
bool insn_decode(const uint8_t *code, uint32_t n, struct decoded *ret);
/* The same by Zydis alone, which insn_decode is held against in tests. */
bool insn_decode_anew(const uint8_t *code, uint32_t n, struct decoded *ret);

#endif
