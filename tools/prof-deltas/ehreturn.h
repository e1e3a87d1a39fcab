/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a frame is no longer what its call frame information says: in the last steps of a raised
 * exception. libgcc's unwinder puts what the frame that it goes on in had saved, its return address
 * among it, over what its own frame has saved, then installs that by __builtin_eh_return. Between
 * the two the rows of its own frame lead astray.
 *
 * Told by its code: the last instructions take RSP from RCX, and the two calls before them are
 * uw_install_context_1, which overwrites, and _Unwind_DebugHook, which tells debuggers.
 * Source: GCC's libgcc/unwind-dw2.c (uw_install_context). Pure.
 */
#ifndef PROF_DELTAS_EHRETURN_H
#define PROF_DELTAS_EHRETURN_H

#include <stdbool.h>
#include <stdint.h>

#define EHRETURN_MAX (16u << 10) /* bytes of a function; libgcc's have a tenth of that */

/* Of a function that gives its handler two values (its rows say where it saved RAX and RDX): where
 * in its n bytes of code the stretch begins and ends. False: it has none. */
bool ehreturn_find(const uint8_t *code, uint32_t n, uint32_t *ret_from, uint32_t *ret_to);

#endif
