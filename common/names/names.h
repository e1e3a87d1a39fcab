/* SPDX-License-Identifier: Apache-2.0 */
/* Names: the answer to a lookup of one address. An address stands for several calls where functions
 * were inlined; the innermost comes first. A struct names owns the text of its calls. */
#ifndef COMMON_NAMES_NAMES_H
#define COMMON_NAMES_NAMES_H

#include "common/base/bytes/str.h"

/* Calls of one address. If there are more, the outermost one is kept, and the calls that it makes
 * are dropped. */
#define NAMES_MAX 64
#define NAMES_TEXT 1024 /* bytes of one string */

struct names_call {
	struct str name;	/* demangled */
	struct str system_name; /* as in the file's table */
	struct str source;	/* path of the file that line is in */
	uint64_t line;		/* 0: unknown */
	uint64_t start_line;	/* line where the function is declared, if that is in `source`; else
				 * 0 */
	bool bare; /* DWARF has no mangled name, although the language mangles names: the symbol
		    * table's name is better */
};

struct names {
	unsigned count;
	struct names_call calls[NAMES_MAX];
	size_t used;
	char text[NAMES_MAX * 3 * (NAMES_TEXT + 1)];
};

/* Makes *n empty. Also initializes a new one. */
void names_reset(struct names *n);
/* Whether any call has a name. */
bool names_known(const struct names *n);
/* Stores a copy of a string, truncated to NAMES_TEXT bytes. Returns the copy, borrowed from n. */
struct str names_keep(struct names *n, const char *s, size_t len);
/* Makes *n hold one call, with a copy of c's names, source and line. */
void names_only(struct names *n, const struct names_call *c);
/* Sets a call's system name, and its demangled name. Both are copied. */
void names_set(struct names *n, struct names_call *c, const char *system_name);
/* Joins a call with that of a second object (RUNTIME_SECOND). The second object's name is put
 * before the call's. If the second object has source and line, these replace the call's. */
void names_join(struct names *n, struct names_call *c, const struct names_call *second);
/* Like names_set, for the PLT slot of a function: `rand@plt`. */
void names_set_slot(struct names *n, struct names_call *c, const char *system_name);

#endif
