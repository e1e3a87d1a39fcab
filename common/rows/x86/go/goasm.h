/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules of the assembly functions in Go's runtime, made from their instructions. These functions
 * set the stack pointer in ways that Go's table of frame sizes cannot express, or save RBP in their
 * own way. Examples are systemstack, asmcgocall, cgocallback and nanotime1.
 *
 * The function is run with symbolic values: addresses in its frame, the caller's RBP and RBX, and
 * words reached from the thread's g. If RSP has left the frame, the CFA comes from a copy in a
 * stack slot or register, or from the place where the code itself will reload RSP from. So the
 * offsets of g and m come from the binary itself, not from a list of versions. Each instruction is
 * read a few times at most.
 *
 * Sources: runtime/asm_amd64.s, runtime/sys_linux_amd64.s of Go 1.4 to 1.27. Pure: no I/O, no log.
 */
#ifndef COMMON_ROWS_X86_GO_GOASM_H
#define COMMON_ROWS_X86_GO_GOASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "bpf/unwind.h"

#define GOASM_MAX_CODE (64u << 10) /* bytes of a function */

enum goasm_verdict {
	/* Too large or too complex; fall back to the table of frame sizes. */
	GOASM_GIVEN_UP = 1,
};

/* The role of a function, for those whose name tells more than their instructions. */
enum goasm_role {
	GOASM_PLAIN,
	GOASM_LEAVES,	/* leaves its stack permanently: from there on, it has no caller */
	GOASM_RETURNS,	/* returns to a goroutine's stack, which may have been moved meanwhile */
	GOASM_MORESTACK /* likewise, to the stack of `curg` in struct goasm_curg; does not return to
			 * its caller */
};

/* By Go's table: from `at` on, `delta` bytes lie between RSP and the return address. */
struct goasm_delta {
	uint32_t at; /* from the function's entry */
	int32_t delta;
};

/* How to reach a thread's goroutine: g = *(TLS base + tls), m = *(g + m), curg = *(m + curg).
 * by_word: tls is the place of the offset from the TLS base (UNWIND_TLS_WORD). goasm_rows fills it
 * for functions with the role GOASM_RETURNS, and uses it for GOASM_MORESTACK. */
struct goasm_curg {
	bool known, by_word;
	int32_t tls, m, curg;
};

/* The rule from one instruction on. `known` is false for instructions that were not reached. */
struct goasm_row {
	uint32_t at, len;
	bool known;
	struct unwind_rule rule;
};

struct goasm; /* memory that is reused from function to function */

int goasm_new(struct goasm **ret); /* returns 0 or -ENOMEM */
void goasm_free(struct goasm *a);
/* Makes the rows of the function of `size` bytes at `code`, `offset` bytes into the file. The n
 * deltas rise, and the first is at 0. *ret_rows has one row for each instruction, by rising
 * address, and is borrowed until the next call. Returns 0 or GOASM_GIVEN_UP. */
int goasm_rows(struct goasm *a, const uint8_t *code, uint32_t size, uint64_t offset,
	       const struct goasm_delta *deltas, uint32_t n, enum goasm_role role,
	       struct goasm_curg *curg, const struct goasm_row **ret_rows, uint32_t *ret_n);

#endif
