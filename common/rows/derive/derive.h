/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derived rows: unwind rows from the code itself, where a file has no call frame information:
 * hand-written assembly, PLTs, _init, musl, entry points, restorers of signals.
 *
 * Code that no row covers yet is looked at from low to high addresses. A function begins
 *  - where a symbol, the dynamic section or a call says so (known_starts.h);
 *  - likely where the file takes an address (taken_addresses.h);
 *  - by guess where the code has no rows by then.
 * x86/flow.h makes its rows, wherever its branches lead in the gap. A function that is not certain
 * counts only if its code returns (or begins) as a function does, and leaves itself only to where
 * functions begin (candidate.h). Slots of PLTs and the code that signal handlers return to are
 * recognised by their bytes (x86/stubs.h). If all functions of a file keep frame pointers, the rest
 * is left to these after the first few thousand functions.
 */
#ifndef PROFPIPE_DERIVE_H
#define PROFPIPE_DERIVE_H

#include "common/rows/elf/elf.h"
#include "common/rows/rows.h"

#define DERIVE_MAX_BYTES (24u << 20) /* of code looked at in one file: a second's work */

/* Adds rows to `rows`, which is finished, and is finished again. The file behind fd (borrowed) is
 * read by pread. 0 (also where nothing was found), ROWS_TOO_LARGE, -ENOMEM, -errno of reading. Time
 * is linear in the bytes that nothing covered, up to the ceiling. */
int derive_rows(int fd, const struct elf_file *f, struct rows *rows);

#endif
