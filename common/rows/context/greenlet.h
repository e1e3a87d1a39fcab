/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of greenlets' stacks. Greenlets (greenlet, gevent, eventlet) are Python coroutines that
 * take turns on one C stack. The part of the stack from a greenlet's first function on is its own.
 * The callers above that function belong to another greenlet, which ran there before, so stacks
 * must end at it. greenlet 2.0 and later export its symbol.
 */
#ifndef COMMON_ROWS_CONTEXT_GREENLET_H
#define COMMON_ROWS_CONTEXT_GREENLET_H

#include "common/rows/elf/dynamic.h"
#include "common/rows/rows.h"

/* Adds the function that ends greenlets' stacks. Parameters and results are those of
 * ucontext_read. */
int greenlet_read(int fd, const struct dynamic *d, struct rows *rows);

#endif
