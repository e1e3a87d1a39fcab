/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What libdw is given of a file: an ELF image in memory that holds the debug sections that names
 * come from, unpacked (SHF_COMPRESSED, .zdebug), and nothing that names another file. Where nothing
 * is packed, a piece of it is read when libdw first looks at it.
 */
#ifndef PROFPIPE_DWARFIMAGE_H
#define PROFPIPE_DWARFIMAGE_H

#include <elfutils/libdw.h>
#include <libelf.h>
#include <setjmp.h>
#include "common/names/dwarf/lazy_memory.h"
#include "common/names/elf/symfile.h"

#define DWARFIMAGE_SECTIONS 9

/* The sections, in the order of dwarfimage.c. */
enum dwarfimage_section {
	DWARFIMAGE_INFO,
	DWARFIMAGE_ABBREV,
	DWARFIMAGE_LINE,
	DWARFIMAGE_LINE_STR,
	DWARFIMAGE_STR,
	DWARFIMAGE_STR_OFFSETS,
	DWARFIMAGE_ADDR,
	DWARFIMAGE_RANGES,
	DWARFIMAGE_RNGLISTS,
};

/* Where a section comes from: all of it, or a part. */
struct dwarfimage_slice {
	const struct symfile *file; /* NULL: it is not there */
	bool split;		    /* of the file it is the one whose name ends in .dwo */
	uint64_t from, size;	    /* unpacked; size: UINT64_MAX: to the end */
};

struct dwarfimage_piece {
	const struct symfile *file;
	const struct symfile_section *section;
	uint64_t size;	/* unpacked */
	uint64_t whole; /* of the section, of which `from` bytes are left off, and what follows */
	uint64_t from;
	uint64_t skip;	/* bytes before the packed data */
	uint64_t start; /* where in the image */
	bool packed;
};

struct dwarfimage {
	struct dwarfimage_piece pieces[DWARFIMAGE_SECTIONS];
	struct lazy_memory *lazy; /* where nothing is packed; then bytes are its */
	uint8_t *bytes;
	size_t size;
	Elf *elf;
	Dwarf *dwarf;
};

/* Where libdw goes when it is refused memory, which would end the process: to be set around all
 * that may ask it for some. */
extern jmp_buf *dwarfimage_no_memory;

/* Bytes that the sections of f would take; 0 where there is no DWARF. */
uint64_t dwarfimage_size(const struct symfile *f);
/* Makes it of f (borrowed for its life), and opens it in libdw; where its bytes are still there,
 * libdw begins anew with them. max: bytes of memory. 0, SYMFILE_NONE, SYMFILE_TOO_LARGE,
 * SYMFILE_MALFORMED, -errno; after an error it wants dwarfimage_done, too. */
int dwarfimage_open(const struct symfile *f, uint64_t max, struct dwarfimage *m);
/* The same of slices, whose files are borrowed for its life. */
int dwarfimage_open_slices(const struct dwarfimage_slice from[static DWARFIMAGE_SECTIONS],
			   uint64_t max, struct dwarfimage *m);
/* Gives up what libdw made of it. */
void dwarfimage_end(struct dwarfimage *m);
/* And the bytes. */
void dwarfimage_done(struct dwarfimage *m);
/* Bytes of memory that it takes. */
size_t dwarfimage_bytes(const struct dwarfimage *m);

#endif
