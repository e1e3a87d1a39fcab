/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Derived rows: what a file's code itself says of its stack, where no call frame information does:
 * hand-written assembly, PLTs, _init, musl, entry points, restorers of signals.
 *
 * What no row covers yet is looked at from low to high addresses. A function begins where a symbol,
 * the dynamic section or a call says so (known.h); likely where the file takes an address
 * (taken.h); else, by guess, at what has no rows by then. flow.h makes its rows, wherever its
 * branches lead in the gap. What is not certain counts only where the code returns (or begins) as a
 * function does, and leaves it only to where functions begin. Recognised by content: slots of PLTs,
 * the code that signal handlers return to. A file whose functions keep frame pointers throughout is
 * left to them after the first few thousand.
 */
#ifndef PROF_DELTAS_DERIVE_H
#define PROF_DELTAS_DERIVE_H

#include "tools/prof-deltas/elf.h"
#include "tools/prof-deltas/rows.h"

#define DERIVE_MAX_BYTES (24u << 20) /* of code looked at in one file: a second's work */

/* Adds rows to `rows`, which is finished, and is finished again. The file behind fd (borrowed) is
 * read by pread. 0 (also where nothing was found), ROWS_TOO_LARGE, -ENOMEM, -errno of reading. Time
 * is linear in the bytes that nothing covered, up to the ceiling. */
int derive_rows(int fd, const struct elf_file *f, struct rows *rows);

#endif
