/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runtimes in the files of a space, and the names of their objects, read from its memory when they
 * are printed: of a process, which goes on meanwhile, some may be gone by then, and say so.
 */
#ifndef PROF_DUMP_RUNTIMES_H
#define PROF_DUMP_RUNTIMES_H

#include "common/base/span.h"
#include "tools/prof-dump/space.h"

/* Looks once for a runtime in a file, and sets f->build. 0, -ENOMEM. */
int runtimes_describe(struct tables *t, struct space_file *f);

struct runtimes;

/* s: borrowed. 0, -ENOMEM. */
int runtimes_new(const struct space *s, struct runtimes **ret);
void runtimes_free(struct runtimes *r);

struct runtimes_name {
	struct str name, source; /* borrowed until the next call */
	uint64_t line;		 /* 0: not known */
	bool hidden;		 /* the runtime's own: no function of the program */
};
/* What an interpreted frame of the runtime in a file of the space is called, or why that is not
 * known. 0, -ENOMEM. */
int runtimes_lookup(struct runtimes *r, uint32_t file, uint64_t address, uint64_t mark,
		    struct runtimes_name *ret);

#endif
