/* SPDX-License-Identifier: Apache-2.0 */
/* prof-symd by hand on one file: the names of its addresses (-e), or the interpreter in it
 * (--describe). Both print to standard output, log errors, and return an exit status (exits.h). */
#ifndef PROF_SYMD_BY_HAND_ONE_FILE_H
#define PROF_SYMD_BY_HAND_ONE_FILE_H

#include <stdbool.h>
#include <stdint.h>

#define ONE_FILE_DWARF (1ull << 30) /* the default for dwarf_max */

struct one_file {
	const char *path;
	bool show_address, basenames; /* as in struct addresses */
	uint64_t dwarf_max;	      /* bytes that its DWARF may take */
};

/* args: `count` addresses; if 0, they are read from standard input, one per line. */
int one_file_addresses(const struct one_file *o, int count, char **args);
int one_file_describe(const char *path);

#endif
