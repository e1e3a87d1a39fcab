/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The runtimes in the files of a space, and the names of their objects. Names are read from memory
 * when they are printed. If a process continues meanwhile, some objects may be gone, and their
 * names say so.
 */
#ifndef PROF_DUMP_NAMES_RUNTIMES_H
#define PROF_DUMP_NAMES_RUNTIMES_H

#include "common/base/bytes/str.h"
#include "tools/prof-dump/space/stack.h"

/* Searches a file once for a runtime, and sets f->build. Returns 0 or -ENOMEM. */
int runtimes_describe(struct tables *t, struct space_file *f);

struct runtimes;

/* s: borrowed. Returns 0 or -ENOMEM. */
int runtimes_new(const struct space *s, struct runtimes **ret);
void runtimes_free(struct runtimes *r);

struct runtimes_name {
	struct str name, source;	    /* borrowed until the next call */
	uint64_t line;			    /* 0: not known */
	const struct runtime_call *inlined; /* the innermost first; borrowed likewise */
	unsigned inlined_count;
	bool known;  /* the name is real, not the reason why it is unknown */
	bool hidden; /* a function of the runtime itself, not of the program */
};
/* Finds the name of an interpreted frame, or the reason why it is unknown. Returns 0 or -ENOMEM. */
int runtimes_lookup(struct runtimes *r, const struct stack_frame *f, struct runtimes_name *ret);

#endif
