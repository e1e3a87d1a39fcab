/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of stacks that makecontext creates. In glibc their first function returns to
 * __start_context, whose call frame information describes a caller that does not exist. It is
 * searched in libc.so.6 and in static programs, by its instructions.
 */
#ifndef COMMON_ROWS_CONTEXT_UCONTEXT_H
#define COMMON_ROWS_CONTEXT_UCONTEXT_H

#include "common/rows/elf/dynamic.h"
#include "common/rows/rows.h"

/* Adds a function that ends stacks, if there is one. Call it before the rows of .eh_frame are
 * added: these yield to a function that begins lower. fd is borrowed. Returns 0, ROWS_TOO_LARGE,
 * -ENOMEM, or -errno of reading. */
int ucontext_read(int fd, const struct elf_file *f, const struct dynamic *d, struct rows *rows);

#endif
