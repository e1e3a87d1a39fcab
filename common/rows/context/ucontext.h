/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of stacks that makecontext creates. In glibc their first function returns to
 * __start_context, whose call frame information describes a caller that does not exist. This code
 * searches for __start_context by its instructions, in libc.so.6 and in static programs.
 */
#ifndef COMMON_ROWS_CONTEXT_UCONTEXT_H
#define COMMON_ROWS_CONTEXT_UCONTEXT_H

#include "common/rows/elf/dynamic.h"
#include "common/rows/rows.h"

/* Adds a row that ends stacks in __start_context, if the file contains it. Call it before the rows
 * of .eh_frame are added: this range begins lower, so it wins. fd is borrowed. Returns 0,
 * MSG_ROWS_TOO_LARGE, -ENOMEM, or -errno of reading. */
int ucontext_read(int fd, const struct elf_file *f, const struct dynamic *d, struct rows *rows);

#endif
