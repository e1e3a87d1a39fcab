/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of Go programs, which have no .eh_frame. They come from the function table that every Go
 * program carries (common/go/gopclntab.h).
 *
 * - For each function, the table gives the stack depth from each pc on.
 * - The first instructions show where RBP is saved.
 * - Assembly functions are followed instruction by instruction (goasm.h).
 * - A few functions are known by name: those where stacks end, and the signal trampoline.
 *
 * A defect in one function costs only that function, and is counted (ROWS_SKIP_GO).
 */
#ifndef COMMON_ROWS_GO_GOROWS_H
#define COMMON_ROWS_GO_GOROWS_H

#include "common/rows/rows.h"

/* Adds the rows of the Go functions in the file behind fd (borrowed; its position does not move),
 * `size` bytes long, where there are none yet. rows is laid out, and is finished again afterwards.
 * Returns 0, also if the file is no Go program or has an unusable table (counted). Otherwise
 * returns MSG_ROWS_TOO_LARGE, -ENOMEM, or -errno of reading. */
int gorows_read(int fd, uint64_t size, struct rows *rows);

#endif
