/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The half without rights makes rows, walks, finds names and prints. It is a main of its own, and
 * logs.
 */
#ifndef PROF_DUMP_WALKER_H
#define PROF_DUMP_WALKER_H

#include <stdbool.h>

struct walker_options {
	bool all, names, inlined;
	bool interpreter; /* also show the native frames of an interpreter's loop */
	const char *core; /* the name that the caller gave; NULL: a process */
};

/* Serves one dump over socket, and prints on standard output. Returns the exit status. */
int walker_run(int socket, const struct walker_options *o);

#endif
