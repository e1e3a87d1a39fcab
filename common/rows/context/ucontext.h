/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the stacks that makecontext makes end: glibc has their first function return to
 * __start_context, whose call frame information speaks of a caller that there is not. It is looked
 * for in libc.so.6 and in static programs, by what its instructions are.
 */
#ifndef PROFPIPE_UCONTEXT_H
#define PROFPIPE_UCONTEXT_H

#include "common/rows/elf/dynamic.h"
#include "common/rows/rows.h"

/* Adds a function that ends stacks where there is one; before the rows of .eh_frame, which yield to
 * what begins before them. fd is borrowed. 0, ROWS_TOO_LARGE, -ENOMEM, -errno of reading. */
int ucontext_read(int fd, const struct elf_file *f, const struct dynamic *d, struct rows *rows);

#endif
