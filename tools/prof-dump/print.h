/* SPDX-License-Identifier: Apache-2.0 */
/* Prints stacks as text, with the names of their functions. */
#ifndef PROF_DUMP_PRINT_H
#define PROF_DUMP_PRINT_H

#include <stdio.h>
#include "common/base/bytes/buf.h"
#include "tools/prof-dump/space/stack.h"

#define PRINT_DWARF (1ull << 30) /* bytes of DWARF decompressed from one file, at most */
/* Bytes of all programs together; beyond that, those not in use are closed. */
#define PRINT_MEMORY (3ull << 29)

struct generated;
struct names;
struct program;
struct runtimes;

struct printer {
	const struct space *space;   /* borrowed */
	int socket;		     /* to the other half, which opens files with names */
	struct generated *generated; /* borrowed; NULL: generated code gets no names */
	bool names, inlined;	     /* wanted */
	bool interpreter;	     /* wanted: also the native frames of an interpreter's loop */
	struct program **programs;   /* by number of file */
	bool *tried;
	struct names *calls;
	struct runtimes *runtimes;
	struct buf line;
	uint32_t files;
};

/* socket: borrowed. names: false prints only addresses. Returns 0 or -ENOMEM. */
int printer_init(struct printer *p, const struct space *s, int socket, bool names, bool inlined);
void printer_done(struct printer *p);
/* Appends the lines of one stack to `to`. Escapes names and paths for a terminal, and also blanks
 * of paths, so that each path is one word. Returns 0, -ENOMEM, or -EIO if it cannot write. */
int printer_stack(struct printer *p, const struct stack *s, FILE *to);

#endif
