/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known at one instruction of Go's assembly: registers and words of stacks, with symbols
 * for values (goasm.h), and the parts of a rule that follow from it alone.
 *
 * Apart from struct frame of frame.h in what it knows: several stacks, between which the code
 * changes, and what is reached from the thread's g. Pure.
 */
#ifndef PROFPIPE_GOSTATE_H
#define PROFPIPE_GOSTATE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <Zydis/Zydis.h>
#include "bpf/unwind.h"
#include "common/rows/x86/insn.h"

#define MAX_SLOTS 24u
#define BASE_CFA 0

/* Registers by the numbers that instructions give them. */
enum { REGISTERS = 16, RETURN = 16 /* the return address */ };

/* Addresses have a base: 0 is the CFA; any other number is a stack that RSP was set to. */
enum govalue_kind {
	UNKNOWN,
	ADDRESS,  /* base + off[0] */
	CALLERS,  /* what register off[0] held at the entry; or the return address */
	CONSTANT, /* off[0] */
	WORD,	  /* that at file offset off[0]: of the GOT, which does not change */
	CHAIN,	  /* n loads, from *(TLS base + off[0]) on; by_word: plus WORD instead */
	LOADED,	  /* the word at base + off[0], of another stack */
	HIGH,	  /* the second word (stack.hi) of what LOADED points at */
	LEFT,	  /* HIGH less the word at base + off[1] */
};
struct govalue {
	uint8_t kind, n; /* enum govalue_kind */
	uint16_t by_word;
	int32_t base, off[4];
};
struct goslot {
	int32_t base, off;
	uint32_t since; /* the instruction behind the one that wrote it */
	struct govalue value;
};
struct gostate {
	struct govalue reg[REGISTERS]; /* that of RSP is an ADDRESS */
	struct goslot slot[MAX_SLOTS];
	uint32_t slots;
};

static inline struct govalue govalue_address(int32_t base, int32_t off)
{
	return (struct govalue){ .kind = ADDRESS, .base = base, .off = { off } };
}

static inline bool govalue_same(const struct govalue *x, const struct govalue *y)
{
	return memcmp(x, y, sizeof(*x)) == 0;
}

static inline bool govalue_in_frame(const struct govalue *v)
{
	return v->kind == ADDRESS && v->base == BASE_CFA;
}

/* The sum, if it is far from overflow: hostile code names what it likes. */
bool govalue_plus(int32_t x, int64_t y, int32_t *ret);

/* The number of a general register or of the one that it is a part of; -1: it is none. */
int gostate_register(ZydisRegister r);
/* As at the first instruction of a function. */
void gostate_enter(struct gostate *s);
/* Writes 8 bytes at base + off; since: the instruction behind the one that does. */
void gostate_store(struct gostate *s, int32_t base, int32_t off, const struct govalue *v,
		   uint32_t since);
/* What was written there, or NULL. */
const struct goslot *gostate_slot(const struct gostate *s, int32_t base, int32_t off);
/* Where an operand in memory is: an ADDRESS, or UNKNOWN. */
struct govalue gostate_place(const struct gostate *s, const ZydisDecodedOperandMem *m);
/* What 8 bytes in memory hold. next: the file offset of the next instruction. */
struct govalue gostate_load(const struct gostate *s, const ZydisDecodedOperandMem *m,
			    uint64_t next);

/* Where the caller's RBP and RBX are. */
void gostate_rule_caller(const struct gostate *s, struct unwind_rule *rule);
/* The CFA where RSP is on another stack: from a word on that stack, or from a register. False: from
 * one that calls do not keep, or there is none. */
bool gostate_rule_elsewhere(const struct gostate *s, struct unwind_rule *rule);
/* The return address in a register, around vfork. False: it is in none. */
bool gostate_rule_popped(const struct gostate *s, struct unwind_rule *rule);

#endif
