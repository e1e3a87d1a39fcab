/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derived rows: unwind rows made from the code itself, where a file has no call frame information.
 * Such code is hand-written assembly, PLTs, _init, musl, entry points, and signal restorers.
 *
 * derive_rows looks at the code that no row covers, from low to high addresses. A function begins
 * - certainly where a symbol, the dynamic section or a call says so (known_starts.h);
 * - likely where the file takes an address (taken_addresses.h);
 * - possibly where the code still has no rows after that: a guess.
 *
 * flow.h follows the function's branches within the gap and makes its rows. A likely or guessed
 * function counts only if it passes two tests (candidate.h): its code returns, or begins, like a
 * function; and it leaves its own code only to places where functions begin. PLT slots and signal
 * restorers are recognized by their bytes (x86/stubs.h), and so are the methods of GraalVM's native
 * images (svmmethods.c).
 *
 * If nearly all of the first few thousand functions keep frame pointers, the search stops there.
 * The walker falls back to frame pointers for the rest.
 */
#ifndef COMMON_ROWS_DERIVE_DERIVE_H
#define COMMON_ROWS_DERIVE_DERIVE_H

#include "common/rows/elf/elf.h"
#include "common/rows/rows.h"

#define DERIVE_MAX_BYTES (24u << 20) /* of code looked at in one file: about one second of work */

/* Adds rows to `rows`, which is finished before and after the call. Reads the file behind fd
 * (borrowed) with pread. Returns 0 (also if it finds nothing), MSG_ROWS_TOO_LARGE, -ENOMEM, or
 * -errno of reading. Time is linear in the bytes that nothing covers, up to the ceiling. */
int derive_rows(int fd, const struct elf_file *f, struct rows *rows);

#endif
