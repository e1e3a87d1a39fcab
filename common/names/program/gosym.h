/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of Go functions, with files, lines and inlined calls, from the program's own table
 * (common/go/gopclntab.h), which is there when symbols and DWARF are stripped. What it says is what
 * DWARF of the same program says, and it is had for a few reads instead of all of DWARF.
 *
 * The type arguments of a generic function, which name shapes and no types, are shown as `[...]`,
 * as Go's own tracebacks and profiles do; the system name has them.
 */
#ifndef PROFPIPE_GOSYM_H
#define PROFPIPE_GOSYM_H

#include "common/names/names.h"
#include "common/names/elf/symfile.h"

struct gosym;

/* f is borrowed until gosym_free. 0, SYMFILE_NONE where it is no Go program, SYMFILE_MALFORMED,
 * -errno. */
int gosym_open(const struct symfile *f, struct gosym **ret);
void gosym_free(struct gosym *g);
/* The calls at an ELF address, innermost first. Functions without lines, which are C's, are left
 * to who knows more. 0, SYMFILE_NONE, -errno. */
int gosym_lookup(struct gosym *g, uint64_t address, struct names *ret);
/* The same for functions without lines: nothing but a name. */
int gosym_lookup_name(struct gosym *g, uint64_t address, struct names *ret);
size_t gosym_bytes(const struct gosym *g);

#endif
