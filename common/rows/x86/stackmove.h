/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack move that call frame information leaves out. The FDE of some hand-written functions has
 * no instruction: its only rule is the one that holds at the entry. But later code moves RSP:
 *
 * * lea r10, [rsp]
 * * sub rsp, 0x108
 * * ...
 * * lea rsp, [r10]
 * * ret
 *
 * Source: OpenSSL's crypto/bn/asm/x86_64-mont5.pl (bn_gather5), 1.1.1 to 3.5. Pure.
 */
#ifndef COMMON_ROWS_X86_STACKMOVE_H
#define COMMON_ROWS_X86_STACKMOVE_H

#include <stdbool.h>
#include "common/base/bytes/span.h"

#define STACKMOVE_HEAD 32 /* bytes that are read at a function's start */
/* Smaller functions are not read. Most functions without instructions are that small, and in
 * Debian 12 the smallest of those that move the stack has 26 bytes (glibc). */
#define STACKMOVE_SIZE 25

/* Whether the code moves RSP. head holds the first bytes of a function, at most STACKMOVE_HEAD.
 * Only the code before the first branch counts. */
bool stackmove_find(struct span head);

#endif
