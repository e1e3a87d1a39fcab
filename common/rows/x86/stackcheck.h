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
 * The function's call frame information goes on at `slow` with the CFA of a frame that is there,
 * although the code comes from where none was made yet.
 *
 * Source: OCaml's asmcomp/amd64/emit.mlp (fundecl), 5.0 to 5.4. Pure.
 */
#ifndef PROFPIPE_STACKCHECK_H
#define PROFPIPE_STACKCHECK_H

#include "common/base/span.h"

#define STACKCHECK_HEAD 32 /* bytes of a function's begin that are looked at */
#define STACKCHECK_TAIL 17 /* bytes of its end */

/* As distances from the function's start. */
struct stackcheck {
	uint32_t back, slow; /* back < slow */
	uint32_t call, jump; /* behind the push, and behind the pop */
};

/* Of a function of `size` bytes: the first and the last ones, as many as the ceilings say, or all
 * that there are. False: they do not say that it has such a check. */
bool stackcheck_find(struct span head, struct span tail, uint32_t size, struct stackcheck *ret);

#endif
