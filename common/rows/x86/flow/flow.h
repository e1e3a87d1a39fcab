/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow: derives the rules of one function from its instructions, for code without call frame
 * information.
 *
 * It follows the function along its branches, with symbolic values: addresses in the frame, the
 * caller's RBP and RBX, the return address. Where two paths meet, values that differ become
 * unknown. Each instruction gets the rule that follows from its known values, or none. If a
 * function contradicts itself, it has no rules at all: it is no function, or is not understood. One
 * such contradiction is a return with RSP not at the return address.
 *
 * Time and memory are linear in the bytes reached. Pure: no I/O, no log.
 */
#ifndef COMMON_ROWS_X86_FLOW_FLOW_H
#define COMMON_ROWS_X86_FLOW_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpf/unwind.h"
#include "common/rows/x86/flow/flow_code.h"

struct flow_result {
	bool returns;	     /* a path ends like the end of a function */
	bool rets;	     /* a path ends with a ret, not only with a jump to another function */
	bool misaligned;     /* it calls with RSP not at a multiple of 16 */
	bool indirect;	     /* it has indirect jumps that stay inside */
	bool unread;	     /* the table of at least one of them was not read */
	uint32_t low, end;   /* the first byte reached, and one past the last */
	const int64_t *call; /* targets of direct calls, as offsets; bounded */
	const int64_t *jump; /* targets of direct jumps that leave for another function */
	uint32_t calls, jumps;
};

struct flow; /* memory that is reused from function to function */

/* code: the most bytes a function may have, up to FLOW_MAX_CODE. Returns 0 or -ENOMEM. */
int flow_new(uint32_t code, struct flow **ret);
void flow_free(struct flow *f);
/* Without a reader (the default), no jump table is read. Copies *reader. */
void flow_set_reader(struct flow *f, const struct flow_reader *reader);
/* Sets which register rules describe besides RSP and RBP (enum insn_reg): RBX, the default, or 12
 * for R12. */
void flow_set_tracked(struct flow *f, unsigned tracked);
/* Analyses a function. Returns 0 and *ret, borrowed until the next call; enum flow_verdict;
 * -ENOMEM. */
int flow_run(struct flow *f, const struct flow_code *code, unsigned flags, struct flow_result *ret);
/* The cost of all runs: about the number of instructions and of jump table entries that they
 * read. */
uint64_t flow_work(const struct flow *f);
/* After any flow_run: whether FLOW_ASSEMBLY may find more. */
bool flow_by_hand(const struct flow *f);
/* After any flow_run: whether a path ran on to the start of the next function. */
bool flow_fell(const struct flow *f);
/* After any flow_run: whether it leaves in a way that no function of C's calling convention
 * does. */
bool flow_foreign(const struct flow *f);
/* After flow_run returned 0: the instruction at `at`. Returns false if none was reached there. If
 * it has no rule, *ret_known is false. */
bool flow_rule(const struct flow *f, uint32_t at, uint32_t *ret_len, bool *ret_known,
	       struct unwind_rule *ret);
/* After flow_run returned a verdict: runs the same code again and treats calls with padding, or the
 * first pushes of a function, after them as calls that do not return. It begins with the last such
 * call before the contradiction, and adds earlier ones step by step. Earlier ones are less likely:
 * the padding may align the head of a loop. Returns as flow_run does. */
int flow_again(struct flow *f, struct flow_result *ret);
/* After flow_run returned 0: how many callee-saved registers are pushed before the first branch or
 * call. */
uint32_t flow_saves(const struct flow *f);
/* After flow_run returned 0: whether the first branch or call is a call, with RSP lowered to a
 * multiple of 16. */
bool flow_frames(const struct flow *f);
#endif
