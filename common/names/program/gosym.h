/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of Go functions, with files, lines and inlined calls, from the program's own table
 * (common/go/gopclntab.h). Stripping does not remove this table. It has the same names as the
 * program's DWARF, and a lookup needs a few reads instead of all of DWARF.
 *
 * The type arguments of a generic function name shapes, not types. They are shown as `[...]`, as in
 * Go's own tracebacks and profiles; the system name has them in full.
 */
#ifndef COMMON_NAMES_PROGRAM_GOSYM_H
#define COMMON_NAMES_PROGRAM_GOSYM_H

#include "common/names/elf/symfile.h"
#include "common/names/names.h"

struct gosym;

/* Opens the table of f, which is borrowed until gosym_free. Returns 0, SYMFILE_NONE if f is not a
 * Go program, SYMFILE_MALFORMED or -errno. */
int gosym_open(const struct symfile *f, struct gosym **ret);
void gosym_free(struct gosym *g);
/* Looks up the calls at an ELF address, innermost first. Skips functions without lines: these are C
 * functions, which DWARF and symbols describe better. Returns 0, SYMFILE_NONE or -errno. */
int gosym_lookup(struct gosym *g, uint64_t address, struct names *ret);
/* Like gosym_lookup, for functions without lines, of which the table only has the name. */
int gosym_lookup_name(struct gosym *g, uint64_t address, struct names *ret);
size_t gosym_bytes(const struct gosym *g);

#endif
