/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The state at one instruction of Go's assembly: symbolic values (goasm.h) of registers and stack
 * words. It also makes the parts of a rule that follow from this state alone.
 *
 * Unlike struct frame of frame.h, it describes several stacks that the code switches between, and
 * words reached from the thread's g. Pure.
 */
#ifndef COMMON_ROWS_X86_GO_GOSTATE_H
#define COMMON_ROWS_X86_GO_GOSTATE_H

#include <stdbool.h>
#include <stdint.h>
#include <Zydis/Zydis.h>
#include "bpf/unwind.h"
#include "common/rows/x86/go/govalue.h"
#include "common/rows/x86/insn.h"

#define GOSTATE_SLOTS 24u

/* Registers by their numbers in instructions. */
enum { GOSTATE_REGISTERS = 16, GOSTATE_RETURN = 16 /* the return address */ };

struct gostate_word {
	int32_t base, off;
	uint32_t since; /* the instruction after the one that wrote it */
	struct govalue value;
};
struct gostate {
	struct govalue reg[GOSTATE_REGISTERS]; /* RSP's is a GOVALUE_ADDRESS */
	struct gostate_word slot[GOSTATE_SLOTS];
	uint32_t slots;
};

/* Returns the number of a general register, or of the one that r is a part of; -1: r is not one. */
int gostate_register(ZydisRegister r);
/* The state at a function's first instruction. */
void gostate_enter(struct gostate *s);
/* Records a write of 8 bytes at base + off. since: the instruction after the one that writes. */
void gostate_store(struct gostate *s, int32_t base, int32_t off, const struct govalue *v,
		   uint32_t since);
/* Returns the value written there, or NULL. */
const struct gostate_word *gostate_slot(const struct gostate *s, int32_t base, int32_t off);
/* The place of an operand in memory: a GOVALUE_ADDRESS, or GOVALUE_UNKNOWN. */
struct govalue gostate_place(const struct gostate *s, const ZydisDecodedOperandMem *m);
/* Returns the value of 8 bytes in memory. next: file offset of the next instruction. */
struct govalue gostate_load(const struct gostate *s, const ZydisDecodedOperandMem *m,
			    uint64_t next);

/* Sets the places of the caller's RBP and RBX. */
void gostate_rule_caller(const struct gostate *s, struct unwind_rule *rule);
/* Sets the CFA where RSP is on another stack, from a word on that stack or from a register. Returns
 * false if neither holds it, or only a register that calls do not preserve. */
bool gostate_rule_elsewhere(const struct gostate *s, struct unwind_rule *rule);
/* Sets the return address to a register, as around vfork. Returns false if no register holds it. */
bool gostate_rule_popped(const struct gostate *s, struct unwind_rule *rule);

#endif
