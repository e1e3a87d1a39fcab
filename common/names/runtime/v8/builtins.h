/* SPDX-License-Identifier: Apache-2.0 */
/*
 * V8's builtins: code that V8 compiles when it is built, in one piece of the program (the embedded
 * blob). They are found by their tables, which stripped programs also have:
 *
 *  - the layout: the offset of each builtin in the piece, and its size;
 *  - the metadata: the name of each one, in the same order.
 *
 * The tables do not contain the address of the piece. It is the place where all gaps between
 * builtins are filled as V8 does it.
 *
 * Sources: src/snapshot/embedded/embedded-data.h, src/builtins/builtins.cc
 */
#ifndef COMMON_NAMES_RUNTIME_V8_BUILTINS_H
#define COMMON_NAMES_RUNTIME_V8_BUILTINS_H

#include "common/names/elf/elfview.h"

#define V8_BUILTIN_NAME 160 /* bytes of a name, with the NUL */

struct v8_builtin {
	uint32_t offset, size; /* of its code, from the start of the piece */
	uint64_t name;	       /* ELF address of the string; 0: the program computes it */
};

struct v8_builtins {
	uint64_t start, end; /* ELF addresses of the piece of code */
	uint32_t count;
	uint32_t entry;	   /* the number of the interpreter's entry */
	uint32_t handlers; /* number of the first handler of a bytecode; all later ones are
			    * handlers */
	struct v8_builtin *at;
};

/* Finds the builtins if the file contains V8. Returns 0, -ENOMEM, or SYMFILE_NONE: the file does
 * not contain V8, or v8_builtins_find found none. */
int v8_builtins_open(const struct symfile *f, struct v8_builtins **ret);
/* Finds the builtins. Returns 0, -ENOMEM, or SYMFILE_NONE: there are none, or not all of the tables
 * are as V8 makes them. */
int v8_builtins_find(struct elfview *im, struct v8_builtins **ret);
void v8_builtins_free(struct v8_builtins *b);
/* Gives the name of the builtin at an address, as V8 names its symbol. Returns 0, SYMFILE_NONE or
 * -errno. */
int v8_builtins_name(const struct v8_builtins *b, const struct symfile *f, uint64_t address,
		     char ret[static V8_BUILTIN_NAME]);
size_t v8_builtins_bytes(const struct v8_builtins *b);

#endif
