/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions, inlined calls and lines of one ELF file with DWARF 2 to 5, through libdw.
 *
 * libdw would read every debug section of a file, and would open further files by paths found in it
 * (.gnu_debugaltlink, split units). So it is given an ELF image in memory that holds only the
 * sections that are needed here, unpacked (SHF_COMPRESSED, .zdebug), and nothing that names another
 * file. Where nothing is packed, a piece of the image is read when libdw first looks at it: a tenth
 * of it, mostly. The DWARF of units that have it in a .dwo file, or in a package of these, is asked
 * for when an address in one is looked up.
 */
#ifndef PROFPIPE_DWARFINFO_H
#define PROFPIPE_DWARFINFO_H

#include "common/names/names.h"
#include "common/names/elf/symfile.h"

struct dwarfinfo;

/* What a lookup lacks. */
enum dwarfinfo_want {
	DWARFINFO_WANTS_NOTHING,
	DWARFINFO_WANTS_PACKAGE, /* the .dwp beside the program */
	DWARFINFO_WANTS_PATH,	 /* the .dwo file where a unit says that it is */
	DWARFINFO_WANTS_BESIDE,	 /* a file of that name beside the program */
};

/* The verdict of a lookup that wants something first: one call with enum dwarfinfo_want for its
 * line, the path or name as its source, and the unit's id, in hexadecimal, as its name. */
#define DWARFINFO_AGAIN 50

/* Bytes that the sections of f would take in memory; 0 where there is no DWARF. */
uint64_t dwarfinfo_size(const struct symfile *f);
/* f and alt (the file that .gnu_debugaltlink names, may be NULL) are borrowed for *ret's life. 0,
 * SYMFILE_NONE without DWARF, SYMFILE_TOO_LARGE over max bytes, SYMFILE_MALFORMED, -errno. */
int dwarfinfo_open(const struct symfile *f, const struct symfile *alt, uint64_t max,
		   struct dwarfinfo **ret);
void dwarfinfo_free(struct dwarfinfo *d);
/* Adds the calls at an ELF address to *ret, innermost first; a call's name is empty where DWARF has
 * a line and no name. 0, SYMFILE_NONE; SYMFILE_TOO_LARGE: this one takes more memory than it may,
 * and nothing is to be believed; -ENOMEM; DWARFINFO_AGAIN. */
int dwarfinfo_lookup(struct dwarfinfo *d, uint64_t address, struct names *ret);
/* What the last lookup wanted, which is taken; NULL: it cannot be had. */
void dwarfinfo_offer(struct dwarfinfo *d, struct symfile *f);
/* Gives up what the next lookup makes again in a moment; if `packed`, what was unpacked as well,
 * which takes longer. Which code is where stays known. False: there was nothing to give. */
bool dwarfinfo_rest(struct dwarfinfo *d, bool packed);
/* Bytes of memory held: it grows with the units that are looked into. An estimate. */
size_t dwarfinfo_bytes(const struct dwarfinfo *d);

#endif
