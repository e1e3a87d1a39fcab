/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a frame is no longer what its call frame information says: in the last steps of a raised
 * exception. libgcc's unwinder puts what the frame that it goes on in had saved, its return address
 * among it, over what its own frame has saved, then installs that by __builtin_eh_return. Between
 * the two the rows of its own frame lead astray.
 *
 * Told by its code: the last instructions take RSP from RCX, and the two calls before them are
 * uw_install_context_1, which overwrites, and _Unwind_DebugHook, which tells debuggers.
 *
 * The return address is kept elsewhere: an unwinder begins by noting it in the context of its own
 * frame (uw_init_context_1), the one that is overwritten by. Where the contexts lie is what these
 * calls are given, and where in a context the address is, what the debuggers are told of the other.
 * Behind the second call that is of no use: the handler's address overwrites that of a frame
 * further up. Source: GCC's libgcc/unwind-dw2.c (uw_init_context, uw_install_context). Pure.
 */
#ifndef PROFPIPE_EHRETURN_H
#define PROFPIPE_EHRETURN_H

#include <stdbool.h>
#include <stdint.h>

#define EHRETURN_MAX (16u << 10) /* bytes of a function; libgcc's have a tenth of that */

struct ehreturn {
	uint32_t from, to; /* of the code: where rows do not hold, until `to` */
	/* From RBP: where the return address is until ra_to; 0: not known. */
	int32_t ra;
	uint32_t ra_to;
};

/* Of a function that gives its handler two values (its rows say where it saved RAX and RDX): what
 * its n bytes of code tell. False: it installs nothing. */
bool ehreturn_find(const uint8_t *code, uint32_t n, struct ehreturn *ret);

#endif
