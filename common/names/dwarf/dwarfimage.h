/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The image of a file's DWARF that libdw gets: an ELF file in memory. It has the debug sections
 * that names come from, unpacked (SHF_COMPRESSED, .zdebug), and no section that names another file.
 * If no section is packed, a piece of the image is read when libdw first touches it.
 */
#ifndef COMMON_NAMES_DWARF_DWARFIMAGE_H
#define COMMON_NAMES_DWARF_DWARFIMAGE_H

#include <elfutils/libdw.h>
#include <libelf.h>
#include <setjmp.h>
#include "common/names/dwarf/lazy_memory.h"
#include "common/names/elf/symfile.h"

#define DWARFIMAGE_SECTIONS 9

/* The sections, in the same order as in dwarfimage.c. */
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

/* The source of a section of the image: a section of a file, or a part of it. */
struct dwarfimage_slice {
	const struct symfile *file; /* NULL: no such section */
	bool split;		    /* take the file's section whose name ends in .dwo */
	uint64_t from, size;	    /* when unpacked; size UINT64_MAX: up to the section's end */
};

struct dwarfimage_piece {
	const struct symfile *file;
	const struct symfile_section *section;
	uint64_t size;	/* in the image, unpacked */
	uint64_t whole; /* of the whole section, unpacked. The image holds only `size` bytes,
			 * beginning at `from`. */
	uint64_t from;
	uint64_t skip;	/* bytes before the packed data */
	uint64_t start; /* offset in the image */
	bool packed;
};

struct dwarfimage {
	struct dwarfimage_piece pieces[DWARFIMAGE_SECTIONS];
	struct lazy_memory *lazy; /* set if no section is packed; then it owns `bytes` */
	uint8_t *bytes;
	size_t size;
	Elf *elf;
	Dwarf *dwarf;
};

/* Control jumps here when libdw gets no memory; without it, libdw would end the process. Set it
 * around each call that may allocate in libdw. */
extern jmp_buf *dwarfimage_no_memory;

/* Returns the size of an image of f in bytes; 0: f has no DWARF. */
uint64_t dwarfimage_size(const struct symfile *f);
/* Makes an image of f (borrowed until dwarfimage_done), and opens it in libdw. After dwarfimage_end
 * it reuses the bytes. max: limit of memory in bytes. Returns 0, SYMFILE_NONE, SYMFILE_TOO_LARGE,
 * SYMFILE_MALFORMED or -errno. Call dwarfimage_done even after an error. */
int dwarfimage_open(const struct symfile *f, uint64_t max, struct dwarfimage *m);
/* Like dwarfimage_open, but takes the sections from slices. Their files are borrowed until
 * dwarfimage_done. */
int dwarfimage_open_slices(const struct dwarfimage_slice from[static DWARFIMAGE_SECTIONS],
			   uint64_t max, struct dwarfimage *m);
/* Returns a section of the image, empty if there is none. Reading it may fill lazy memory. */
struct span dwarfimage_section(const struct dwarfimage *m, enum dwarfimage_section which);
/* Closes the image in libdw, and keeps its bytes. */
void dwarfimage_end(struct dwarfimage *m);
/* Closes the image and frees its bytes. */
void dwarfimage_done(struct dwarfimage *m);
/* Bytes of memory held. */
size_t dwarfimage_bytes(const struct dwarfimage *m);

#endif
