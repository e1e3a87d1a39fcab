/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the stacks of greenlets end (greenlet, gevent, eventlet: coroutines of Python that take
 * turns on one C stack). A greenlet has that stack up to its first function; what lies above is of
 * whoever ran there last, and no caller of its. That first function is known by its symbol, which
 * greenlet exports from 2.0 on.
 */
#ifndef PROF_DELTAS_GREENLET_H
#define PROF_DELTAS_GREENLET_H

#include "tools/prof-deltas/dynamic.h"
#include "tools/prof-deltas/rows.h"

/* As ucontext_read. */
int greenlet_read(int fd, const struct dynamic *d, struct rows *rows);

#endif
