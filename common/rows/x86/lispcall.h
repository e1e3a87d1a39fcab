/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of a Lisp function by SBCL's runtime (call_into_lisp). x86-64 only.
 *
 * * push rbp
 * * push rbp
 * * mov rbp, rsp            the callee's frame (bpf/walk/owner_sbcl.h)
 * * ...
 * * call [rax - 3]
 * * ...                     RBP is the caller's again
 * * leave
 * * ret
 *
 * The function's call frame information gives the CFA only for the code up to the call. After the
 * call, RBP is the caller's again. An unwinder that comes from the callee gets this later RBP,
 * since the callee has only the frame that is set up here.
 *
 * Source: SBCL's src/runtime/x86-64-assem.S, 2.2.9. Pure.
 */
#ifndef COMMON_ROWS_X86_LISPCALL_H
#define COMMON_ROWS_X86_LISPCALL_H

#include <stdbool.h>
#include <stdint.h>
#include "common/base/bytes/span.h"

#define LISPCALL_FRAME 5 /* bytes of the first three instructions */
#define LISPCALL_MAX 64	 /* bytes read of these instructions and of those that follow */

/* Offsets in the code. */
struct lispcall {
	uint32_t call, ret; /* of these instructions; call < ret */
};

/* Finds the call and the return in `code`, which begins with the first `push`. Returns false if it
 * is other code. */
bool lispcall_find(struct span code, struct lispcall *ret);

#endif
