/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks as text, with the names of their functions. */
#ifndef PROF_DUMP_PRINT_H
#define PROF_DUMP_PRINT_H

#include <stdio.h>
#include "common/base/buf.h"
#include "tools/prof-dump/space.h"

#define PRINT_DWARF (1ull << 30) /* bytes of DWARF of one file that are unpacked at most */
#define PRINT_MEMORY \
	(3ull << 29) /* of all programs together, before those not at hand are closed */

struct generated;
struct names;
struct program;
struct runtimes;

struct printer {
	const struct space *space;   /* borrowed */
	int socket;		     /* to the other half, which opens what names a program */
	struct generated *generated; /* borrowed; NULL: no code is named that is in no file */
	bool names, inlined;	     /* wanted */
	bool interpreter;	     /* wanted: the native frames of an interpreter's loop */
	struct program **programs;   /* by number of file */
	bool *tried;
	struct names *calls;
	struct runtimes *runtimes;
	struct buf line;
	uint32_t files;
};

/* socket: borrowed. names: false prints addresses alone. 0, -ENOMEM. */
int printer_init(struct printer *p, const struct space *s, int socket, bool names, bool inlined);
void printer_done(struct printer *p);
/* Appends the lines of one stack to `to`. Names and paths are escaped for a terminal; blanks of a
 * path too, so that it is one word. 0, -ENOMEM, -EIO when it cannot be written. */
int printer_stack(struct printer *p, const struct stack *s, FILE *to);

#endif
