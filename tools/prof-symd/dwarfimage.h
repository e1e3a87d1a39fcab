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
#include "tools/prof-symd/lazy.h"
#include "tools/prof-symd/symfile.h"

#define DWARFIMAGE_SECTIONS 9

struct dwarfimage_piece {
	const struct symfile_section *section;
	uint64_t size;	/* unpacked */
	uint64_t skip;	/* bytes before the packed data */
	uint64_t start; /* where in the image */
	bool packed;
};

struct dwarfimage {
	const struct symfile *file;
	struct dwarfimage_piece pieces[DWARFIMAGE_SECTIONS];
	struct lazy *lazy; /* where nothing is packed; then bytes are its */
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
/* Gives up what libdw made of it. */
void dwarfimage_end(struct dwarfimage *m);
/* And the bytes. */
void dwarfimage_done(struct dwarfimage *m);
/* Bytes of memory that it takes. */
size_t dwarfimage_bytes(const struct dwarfimage *m);

#endif
