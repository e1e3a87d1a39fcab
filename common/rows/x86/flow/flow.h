/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow: derives the rules of one function from its instructions, for code without call frame
 * information.
 *
 * It follows the function along its branches, with symbolic values: addresses in the frame, the
 * caller's RBP and RBX, the return address. If two paths meet, values that differ become
 * unknown. Each instruction gets the rule that follows from its known values, or none. If the code
 * contradicts itself, it gets no rules at all: it is not a function, or flow does not understand
 * it. One such contradiction is a return with RSP not at the return address.
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
	bool returns;	     /* at least one path ends as a function ends */
	bool rets;	     /* at least one path ends with a ret, not only with a jump to another
			      * function */
	bool misaligned;     /* it calls when RSP is not at a multiple of 16 */
	bool indirect;	     /* it has indirect jumps that stay inside the function */
	bool unread;	     /* the table of at least one of these jumps was not read */
	bool endless;	     /* it certainly never returns: no path leaves it */
	uint32_t low, end;   /* the first byte reached, and one past the last */
	const int64_t *call; /* targets of direct calls, as offsets; only the first ones are kept */
	const int64_t *jump; /* targets of direct jumps to other functions */
	uint32_t calls, jumps;
};

struct flow; /* memory that is reused from function to function */

/* `code` is the largest size of a function in bytes, up to FLOW_MAX_CODE. Returns 0 or -ENOMEM. */
int flow_new(uint32_t code, struct flow **ret);
void flow_free(struct flow *f);
/* Sets how to read the rest of the file. Without a reader (the default), no jump table is read.
 * Copies *reader. */
void flow_set_reader(struct flow *f, const struct flow_reader *reader);
/* Sets which register rules describe besides RSP and RBP (enum insn_reg): RBX, the default, or 12
 * for R12. */
void flow_set_tracked(struct flow *f, unsigned tracked);
/* Analyses a function. `flags` are enum flow_flags. Returns 0 and fills *ret, whose arrays are
 * borrowed until the next call. Returns enum flow_verdict if it is no function, or -ENOMEM. */
int flow_run(struct flow *f, const struct flow_code *code, unsigned flags, struct flow_result *ret);
/* The cost of all runs: about the number of instructions and of jump table entries that they
 * read. */
uint64_t flow_work(const struct flow *f);
/* After any flow_run: whether a run with FLOW_ASSEMBLY may find more. */
bool flow_by_hand(const struct flow *f);
/* After any flow_run: whether a path falls through to the start of the next function. */
bool flow_fell(const struct flow *f);
/* After any flow_run: whether the code leaves in a way that functions with C's calling convention
 * never do. */
bool flow_foreign(const struct flow *f);
/* After flow_run returned 0: gives length and rule of the instruction at `at`. Returns false if no
 * path reached an instruction there. *ret_known is false if the instruction has no rule. */
bool flow_rule(const struct flow *f, uint32_t at, uint32_t *ret_len, bool *ret_known,
	       struct unwind_rule *ret);
/* After flow_run returned a verdict: runs the same code again. A call followed by padding, or by
 * the first pushes of a function, then counts as one that does not return. It first treats only the
 * last such call before the contradiction this way, and then adds earlier ones step by step.
 * Earlier ones are less likely: the padding may align the head of a loop. Returns as flow_run
 * does. */
int flow_again(struct flow *f, struct flow_result *ret);
/* After flow_run returned 0: how many callee-saved registers are pushed before the first branch or
 * call. */
uint32_t flow_saves(const struct flow *f);
/* After flow_run returned 0: whether a call comes before the first branch, and RSP is lowered to a
 * multiple of 16 at that call. */
bool flow_frames(const struct flow *f);
#endif
