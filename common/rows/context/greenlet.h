/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ends of greenlets' stacks. Greenlets (greenlet, gevent, eventlet) are Python coroutines that
 * take turns on one C stack. A greenlet owns that stack up to its first function. The frames above
 * belong to the greenlet that ran there last, and are not its callers. greenlet 2.0 and later
 * export the symbol of that first function.
 */
#ifndef COMMON_ROWS_CONTEXT_GREENLET_H
#define COMMON_ROWS_CONTEXT_GREENLET_H

#include "common/rows/elf/dynamic.h"
#include "common/rows/rows.h"

/* Like ucontext_read. */
int greenlet_read(int fd, const struct dynamic *d, struct rows *rows);

#endif
