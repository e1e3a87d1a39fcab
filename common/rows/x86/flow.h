/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow: the rules of one function from its instructions, for code without call frame information.
 *
 * The function is followed along its branches with symbols for values: addresses in its frame, what
 * the caller had in RBP and RBX, the return address. Where two paths meet, what differs is unknown.
 * From what is known at an instruction comes its rule, or none. A function that contradicts itself
 * (returns with RSP elsewhere than at the return address) has no rules at all: it was not one, or
 * it is not understood.
 *
 * Time and memory are linear in the bytes that are reached. Pure: no I/O, no log.
 */
#ifndef PROFPIPE_FLOW_H
#define PROFPIPE_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpf/unwind.h"
#include "common/rows/x86/flow_code.h"

struct flow_result {
	bool returns;	     /* a path was seen that ends as the end of a function does */
	bool rets;	     /* by a ret, not only by a jump to another function */
	bool misaligned;     /* it calls with RSP not at a multiple of 16 */
	bool indirect;	     /* it has indirect jumps that do not leave it */
	bool unread;	     /* some of them without a table that was read */
	uint32_t low, end;   /* the first byte reached, and behind the last one */
	const int64_t *call; /* targets of direct calls, as offsets; not more than are kept */
	const int64_t *jump; /* those of direct jumps that leave the code for another function */
	uint32_t calls, jumps;
};

struct flow; /* memory that functions share, one after the other */

/* code: bytes that a function may have, up to FLOW_MAX_CODE. 0, -ENOMEM. */
int flow_new(uint32_t code, struct flow **ret);
void flow_free(struct flow *f);
/* Without a reader (the default) no table is read. *reader is copied. */
void flow_set_reader(struct flow *f, const struct flow_reader *reader);
/* Of which register (enum gpr: RBX, the default, or 12) rules are to speak besides RSP and RBP. */
void flow_set_kept(struct flow *f, unsigned kept);
/* Looks at a function. 0 and *ret, borrowed until the next call; enum flow_verdict; -ENOMEM. */
int flow_run(struct flow *f, const struct flow_code *code, unsigned flags, struct flow_result *ret);
/* Instructions (and cases of jumps) that all runs have looked at, about: what they cost. */
uint64_t flow_work(const struct flow *f);
/* After flow_run, whatever it gave: FLOW_ASSEMBLY may say more. */
bool flow_by_hand(const struct flow *f);
/* Likewise: some path went on up to where the next function begins. */
bool flow_fell(const struct flow *f);
/* Likewise: it leaves as no function of C's calling convention does. */
bool flow_foreign(const struct flow *f);
/* After flow_run gave 0: the instruction at `at`. False where none was reached. Without a rule
 * *ret_known is false. */
bool flow_rule(const struct flow *f, uint32_t at, uint32_t *ret_len, bool *ret_known,
	       struct unwind_rule *ret);
/* After flow_run gave another verdict than 0: the same code again, with ever more of the calls that
 * padding follows as ones that do not come back, from the last one before it went wrong: those
 * before are followed by loops, whose heads are aligned too. As flow_run. */
int flow_again(struct flow *f, struct flow_result *ret);
/* After flow_run gave 0: how many registers that belong to the caller are pushed before the first
 * branch or call. */
uint32_t flow_saves(const struct flow *f);
/* Likewise: whether the first branch or call is a call, with RSP moved down to a multiple of 16. */
bool flow_frames(const struct flow *f);
#endif
