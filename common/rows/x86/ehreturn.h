/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function that installs the handler of an exception, whose rows are partly wrong. libgcc's
 * unwinder resumes in a handler's frame. It first overwrites the registers and the return address
 * saved in its own frame with those of the handler's frame. Then it installs them with
 * __builtin_eh_return. Between these two steps the rows of its own frame are wrong.
 *
 * The function is recognized by its code: the last instructions set RSP from RCX. Before them come
 * two calls: uw_install_context_1, which overwrites, and _Unwind_DebugHook, which informs
 * debuggers.
 *
 * The return address also exists elsewhere. An unwinder first stores it in the context of its own
 * frame (uw_init_context_1). The arguments of the two calls show where the contexts lie, and where
 * a context holds its address. After the second call this copy is of no use: by then the handler's
 * address has overwritten that of a frame further up.
 *
 * Source: GCC's libgcc/unwind-dw2.c (uw_init_context, uw_install_context). Pure.
 */
#ifndef COMMON_ROWS_X86_EHRETURN_H
#define COMMON_ROWS_X86_EHRETURN_H

#include <stdbool.h>
#include <stdint.h>

#define EHRETURN_MAX (16u << 10) /* bytes of a function; those of libgcc have a tenth of that */

struct ehreturn {
	uint32_t from, to; /* offsets in the code: the function's rows do not hold in [from, to) */
	/* Offset from RBP of a copy of the return address, valid until ra_to. 0: not known. */
	int32_t ra;
	uint32_t ra_to;
};

/* Looks at the n bytes of a function that passes two values to a handler, which its rows show by
 * saving RAX and RDX. Returns false if it does not install a context. */
bool ehreturn_find(const uint8_t *code, uint32_t n, struct ehreturn *ret);

#endif
