/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of a Lisp function by SBCL's runtime (call_into_lisp). x86-64 only.
 *
 *	push rbp
 *	push rbp
 *	mov rbp, rsp            the callee's frame (bpf/walk/owner_sbcl.h)
 *	...
 *	call [rax - 3]
 *	...                     RBP is the caller's again
 *	leave
 *	ret
 *
 * The function's call frame information has the CFA of the code up to the call. But whoever unwinds
 * the callee gets the RBP behind the call, since the callee has no other frame than this.
 *
 * Source: SBCL's src/runtime/x86-64-assem.S, 2.2.9. Pure.
 */
#ifndef COMMON_ROWS_X86_LISPCALL_H
#define COMMON_ROWS_X86_LISPCALL_H

#include <stdbool.h>
#include <stdint.h>
#include "common/base/bytes/span.h"

#define LISPCALL_FRAME 5 /* bytes of the first three instructions */
#define LISPCALL_MAX 64	 /* bytes that are read of them and of what follows */

/* Offsets in the code. */
struct lispcall {
	uint32_t call, ret; /* of these instructions; call < ret */
};

/* code begins with the first `push`. False: it is something else. */
bool lispcall_find(struct span code, struct lispcall *ret);

#endif
