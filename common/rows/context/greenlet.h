/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the stacks of greenlets end (greenlet, gevent, eventlet: coroutines of Python that take
 * turns on one C stack). A greenlet has that stack up to its first function; what lies above is of
 * whoever ran there last, and no caller of its. That first function is known by its symbol, which
 * greenlet exports from 2.0 on.
 */
#ifndef PROFPIPE_GREENLET_H
#define PROFPIPE_GREENLET_H

#include "common/rows/elf/dynamic.h"
#include "common/rows/rows.h"

/* As ucontext_read. */
int greenlet_read(int fd, const struct dynamic *d, struct rows *rows);

#endif
