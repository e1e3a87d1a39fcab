/* SPDX-License-Identifier: Apache-2.0 */
/* Names: the answer of a lookup. An address stands for several calls where functions were inlined;
 * the innermost comes first. A struct names owns the text of its calls. */
#ifndef COMMON_NAMES_NAMES_H
#define COMMON_NAMES_NAMES_H

#include "common/base/bytes/str.h"

/* Calls of one address. If there are more, the outermost one is kept and calls next to it are cut.
 */
#define NAMES_MAX 64
#define NAMES_TEXT 1024 /* bytes of one string */

struct names_call {
	struct str name;	/* demangled */
	struct str system_name; /* as the table has it */
	struct str source;	/* path of the file that line is in */
	uint64_t line;		/* 0: unknown */
	uint64_t start_line;	/* where the function is declared, if in source; else 0 */
	bool bare; /* DWARF has no mangled name, although the language mangles names: the symbol
		      table's name is better */
};

struct names {
	unsigned count;
	struct names_call calls[NAMES_MAX];
	size_t used;
	char text[NAMES_MAX * 3 * (NAMES_TEXT + 1)];
};

void names_reset(struct names *n);
/* Whether any call has a name. */
bool names_known(const struct names *n);
/* Keeps a copy, cut to NAMES_TEXT bytes. */
struct str names_keep(struct names *n, const char *s, size_t len);
/* Makes *n hold one call, with a copy of this one's names, source and line. */
void names_only(struct names *n, const struct names_call *c);
/* Sets a call's system name, and its demangled name. */
void names_set(struct names *n, struct names_call *c, const char *system_name);
/* Joins a call with that of a second object (RUNTIME_SECOND): the second object's name comes before
 * the call's, and its source and line, if it has any, replace the call's. */
void names_join(struct names *n, struct names_call *c, const struct names_call *second);
/* The same for the PLT slot of a function: `rand@plt`. */
void names_set_slot(struct names *n, struct names_call *c, const char *system_name);

#endif
