/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of Go programs, which have no .eh_frame: from the function table that they all carry
 * (common/go/gopclntab.h).
 *
 * For each function the table says where the stack pointer stands, from which pc on; the first
 * instructions say where RBP is saved. Assembly functions are looked at one instruction at a time
 * (goasm.h). Some are known by their names: where stacks end, and the signal trampoline.
 *
 * What is wrong with one function costs that function, and is counted (ROWS_SKIP_GO).
 */
#ifndef PROFPIPE_GOROWS_H
#define PROFPIPE_GOROWS_H

#include "common/rows/rows.h"

/* Adds the rows of the Go functions in the file behind fd (borrowed, its position is not moved),
 * `size` bytes long, where nothing was before. rows is laid out, and finished again afterwards. 0,
 * also for what is not a Go program or has a table that cannot be used (counted); ROWS_TOO_LARGE;
 * -ENOMEM; -errno of reading. */
int gorows_read(int fd, uint64_t size, struct rows *rows);

#endif
