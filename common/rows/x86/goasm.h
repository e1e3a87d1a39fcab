/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assembly functions of Go's runtime: rules from the instructions themselves, for functions that
 * set the stack pointer to what Go's table of frame sizes cannot say (systemstack, asmcgocall,
 * cgocallback, nanotime1, ...), or that save RBP in a way of their own.
 *
 * The function is run with symbols for values: addresses in its frame, what the caller had in RBP
 * and RBX, and what is reached from the thread's g. Where RSP is not in the frame any more, the CFA
 * is what is left of it in a stack slot or a register, or what the code itself will later take RSP
 * back from: offsets of g and m so come from the very binary and not from a list of versions. An
 * instruction is looked at a few times at most.
 *
 * Sources: runtime/asm_amd64.s, runtime/sys_linux_amd64.s of Go 1.4 to 1.27. Pure: no I/O, no log.
 */
#ifndef PROFPIPE_GOASM_H
#define PROFPIPE_GOASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpf/unwind.h"

#define GOASM_MAX_CODE (64u << 10) /* bytes of a function */

enum goasm_verdict {
	GOASM_GIVEN_UP =
		1, /* too large or too tangled; the table of frame sizes is what there is */
};

/* What a function is, as far as its name says what no instruction does. */
enum goasm_role {
	GOASM_PLAIN,
	GOASM_LEAVES,	/* leaves its stack for good: nothing called it, from there on */
	GOASM_RETURNS,	/* comes back to a goroutine's stack, which may have been moved meanwhile */
	GOASM_MORESTACK /* like it, to what `curg` of struct goasm_curg says; does not return */
};

/* From one pc on, the bytes between RSP and the return address, as Go's table says. */
struct goasm_delta {
	uint32_t at; /* from the function's entry */
	int32_t delta;
};

/* Where a thread's goroutine is: g = *(TLS base + tls), m = *(g + m), curg = *(m + curg). by_word:
 * tls is where the offset from the TLS base is (UNWIND_TLS_WORD). Learnt from a function with the
 * role GOASM_RETURNS, used by GOASM_MORESTACK. */
struct goasm_curg {
	bool known, by_word;
	int32_t tls, m, curg;
};

/* From one instruction on, a rule. `known` is false for instructions that were not reached. */
struct goasm_row {
	uint32_t at, len;
	bool known;
	struct unwind_rule rule;
};

struct goasm; /* memory that functions share, one after the other */

int goasm_new(struct goasm **ret); /* 0, -ENOMEM */
void goasm_free(struct goasm *a);
/* The rows of the function whose `size` bytes are at code, with n deltas, rising, the first at 0;
 * `offset` is that of the code in the file. *ret_rows is borrowed until the next call: by rising
 * addresses, one for each instruction. 0, GOASM_GIVEN_UP. */
int goasm_rows(struct goasm *a, const uint8_t *code, uint32_t size, uint64_t offset,
	       const struct goasm_delta *deltas, uint32_t n, enum goasm_role role,
	       struct goasm_curg *curg, const struct goasm_row **ret_rows, uint32_t *ret_n);

#endif
