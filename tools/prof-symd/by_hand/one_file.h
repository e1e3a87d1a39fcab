/* SPDX-License-Identifier: Apache-2.0 */
/* prof-symd by hand on one file: prints the names of its addresses (-e), or the interpreter in it
 * (--describe). Both functions print to standard output, log errors, and return an exit status
 * (exits.h). */
#ifndef PROF_SYMD_BY_HAND_ONE_FILE_H
#define PROF_SYMD_BY_HAND_ONE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#define ONE_FILE_DWARF (1ull << 30) /* default of dwarf_max */

struct one_file {
	const char *path;
	bool show_address, basenames; /* as in struct addresses */
	uint64_t dwarf_max;	      /* limit of bytes for its DWARF */
};

/* Prints the names of addresses. args: `count` addresses; if 0, they are read from standard input,
 * one per line. */
int one_file_addresses(const struct one_file *o, int count, char **args);
int one_file_describe(const char *path);

#endif
