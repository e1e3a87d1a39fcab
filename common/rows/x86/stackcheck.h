/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stack check: the code by which a function of OCaml 5 asks for a larger stack before it makes
 * its frame. x86-64 only.
 *
 *	        lea r10, [rsp - size]           begin
 *	        cmp r10, [r14 + current_stack]
 *	        jb slow
 *	back:   sub rsp, frame
 *	        ...
 *	slow:   push words                      end
 *	        call caml_call_realloc_stack
 *	        pop r10
 *	        jmp back
 *
 * At `slow`, the function's call frame information gives the CFA of a full frame. But the code
 * comes there from a place where no frame was made yet.
 *
 * Source: OCaml's asmcomp/amd64/emit.mlp (fundecl), 5.0 to 5.4. Pure.
 */
#ifndef COMMON_ROWS_X86_STACKCHECK_H
#define COMMON_ROWS_X86_STACKCHECK_H

#include "common/base/bytes/span.h"

#define STACKCHECK_HEAD 32 /* bytes that are read at a function's start */
#define STACKCHECK_TAIL 17 /* and at its end */

/* Distances from the function's start. */
struct stackcheck {
	uint32_t back, slow; /* offsets of the code after the check, and of the slow path; back <
			      * slow */
	uint32_t call, jump; /* offsets after the push, and after the pop */
};

/* Finds a stack check. head and tail are the first and last bytes of a function of `size` bytes, as
 * many as the limits allow. Returns false if there is no stack check. */
bool stackcheck_find(struct span head, struct span tail, uint32_t size, struct stackcheck *ret);

#endif
