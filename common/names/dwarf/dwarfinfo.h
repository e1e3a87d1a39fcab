/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, inlined calls and lines of one ELF file with DWARF 2 to 5, through libdw.
 *
 * By itself, libdw would read all debug sections of a file, and open further files by paths in them
 * (.gnu_debugaltlink, split units). So libdw gets an image in memory instead (dwarfimage.h), which
 * names no other file. Mostly only a tenth of an image is read. A unit may have its DWARF in a .dwo
 * file or a package of these; a lookup in such a unit asks for that file.
 */
#ifndef COMMON_NAMES_DWARF_DWARFINFO_H
#define COMMON_NAMES_DWARF_DWARFINFO_H

#include "common/names/elf/symfile.h"
#include "common/names/names.h"

struct dwarfinfo;

/* The file that a lookup needs. */
enum dwarfinfo_want {
	DWARFINFO_WANTS_NOTHING,
	DWARFINFO_WANTS_PACKAGE, /* the .dwp beside the program */
	DWARFINFO_WANTS_PATH,	 /* the .dwo file, at the path that its unit names */
	DWARFINFO_WANTS_BESIDE,	 /* a file of that name beside the program */
};

/* The verdict of a lookup that needs another file first. The answer then has one call: its line is
 * the enum dwarfinfo_want, its source the path or name, its name the unit's id in hexadecimal. */
#define DWARFINFO_AGAIN 50

/* Bytes of memory that the sections of f would take; 0: it has no DWARF. */
uint64_t dwarfinfo_size(const struct symfile *f);
/* f and alt are borrowed until dwarfinfo_free. alt: the file of .gnu_debugaltlink, may be NULL. 0,
 * SYMFILE_NONE without DWARF, SYMFILE_TOO_LARGE over max bytes, SYMFILE_MALFORMED, -errno. */
int dwarfinfo_open(const struct symfile *f, const struct symfile *alt, uint64_t max,
		   struct dwarfinfo **ret);
void dwarfinfo_free(struct dwarfinfo *d);
/* Adds the calls at an ELF address to *ret, innermost first. A call's name is empty if DWARF has a
 * line but no name. Returns 0, SYMFILE_NONE, -ENOMEM or DWARFINFO_AGAIN. SYMFILE_TOO_LARGE: the
 * lookup needed more memory than allowed, and *ret is invalid. */
int dwarfinfo_lookup(struct dwarfinfo *d, uint64_t address, struct names *ret);
/* Provides the file that the last lookup wanted, which is taken. NULL: it is not available. */
void dwarfinfo_offer(struct dwarfinfo *d, struct symfile *f);
/* Frees what the next lookup can rebuild quickly. packed: also what was unpacked, which takes
 * longer. The ranges of units are kept. Returns false if there was nothing to free. */
bool dwarfinfo_rest(struct dwarfinfo *d, bool packed);
/* An estimate of the memory in bytes. It grows with each unit that is looked into. */
size_t dwarfinfo_bytes(const struct dwarfinfo *d);

#endif
