/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The half without rights: rows, walks, names and text. It is a main of its own, and logs.
 */
#ifndef PROF_DUMP_WALKER_H
#define PROF_DUMP_WALKER_H

#include <stdbool.h>

struct walker_options {
	bool all, names, inlined;
	bool interpreter; /* show the native frames of an interpreter's loop, too */
	const char *core; /* as the caller named it; NULL: a process */
};

/* Serves one dump over socket, on standard output. The exit status. */
int walker_run(int socket, const struct walker_options *o);

#endif
