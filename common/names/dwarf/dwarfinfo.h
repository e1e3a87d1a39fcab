/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, inlined calls and lines of one ELF file with DWARF 2 to 5, through libdw.
 *
 * By itself, libdw would read all debug sections of a file, and open further files by paths in them
 * (.gnu_debugaltlink, split units). So libdw gets an image in memory instead (dwarfimage.h), which
 * names no other file. Usually only a tenth of an image is read. The DWARF of a unit may be in a
 * .dwo file or in a package of these; a lookup in such a unit requests that file.
 */
#ifndef COMMON_NAMES_DWARF_DWARFINFO_H
#define COMMON_NAMES_DWARF_DWARFINFO_H

#include "common/names/elf/symfile.h"
#include "common/names/names.h"
#include "common/names/verdict.h"

struct dwarfinfo;

/* The file that a lookup needs next. */
enum dwarfinfo_want {
	DWARFINFO_WANTS_NOTHING,
	DWARFINFO_WANTS_PACKAGE, /* the .dwp beside the program */
	DWARFINFO_WANTS_PATH,	 /* the .dwo file, at the path that its unit names */
	DWARFINFO_WANTS_BESIDE,	 /* a file of that name beside the program */
};

/* Returns how many bytes of memory the sections of f would take; 0: f has no DWARF. */
uint64_t dwarfinfo_size(const struct symfile *f);
/* Opens the DWARF of f. f and alt are borrowed until dwarfinfo_free. alt is the file of
 * .gnu_debugaltlink, or NULL. max: limit of memory in bytes. Returns 0, SYMFILE_NONE (no DWARF),
 * SYMFILE_TOO_LARGE (over max), SYMFILE_MALFORMED or -errno. */
int dwarfinfo_open(const struct symfile *f, const struct symfile *alt, uint64_t max,
		   struct dwarfinfo **ret);
void dwarfinfo_free(struct dwarfinfo *d);
/* Adds the calls at an ELF address to *ret, innermost first. A call's name is empty if DWARF has a
 * line but no name. Returns 0, SYMFILE_NONE, -ENOMEM or VERDICT_AGAIN. SYMFILE_TOO_LARGE: the
 * lookup needed more memory than allowed, and *ret is invalid. VERDICT_AGAIN: the lookup needs
 * another file first. Then *ret has one call: its `line` is the enum dwarfinfo_want, its source the
 * path or name, its name the unit's id in hexadecimal. */
int dwarfinfo_lookup(struct dwarfinfo *d, uint64_t address, struct names *ret);
/* Gives d the file that the last lookup wanted. d owns f from then on. NULL: the file is not
 * available. */
void dwarfinfo_offer(struct dwarfinfo *d, struct symfile *f);
/* Frees data that the next lookup can rebuild quickly. packed: also frees unpacked sections, which
 * take longer to rebuild. The ranges of units are kept. Returns false if there was nothing to
 * free. */
bool dwarfinfo_rest(struct dwarfinfo *d, bool packed);
/* Estimates the memory in bytes. It grows with each unit that a lookup reads. */
size_t dwarfinfo_bytes(const struct dwarfinfo *d);

#endif
