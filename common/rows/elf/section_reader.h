/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A section reader: returns the bytes of a section in order, decompressed if needed. It has one
 * window, which grows only for long entries. It reads with pread, never mmap: a file that shrinks
 * would cause SIGBUS.
 */
#ifndef COMMON_ROWS_ELF_SECTION_READER_H
#define COMMON_ROWS_ELF_SECTION_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/rows/elf/elf.h"

#define SECTION_READER_WINDOW (64u << 10)	/* bytes read at once */
#define SECTION_READER_MAX_SECTION (1ull << 30) /* bytes read of one section, decompressed */

struct section_reader {
	int fd;		       /* borrowed */
	uint64_t offset, left; /* the part of the file that is not read yet */
	uint64_t given;	       /* bytes already returned */
	uint8_t *window;       /* the first len bytes are valid */
	size_t cap, len;
	bool end; /* nothing follows the window */
	enum elf_packing packing;
	struct section_reader_unpacker *unpacker; /* owned; NULL for plain bytes */
};

/* Prepares to read a section of fd. Returns 0 or -ENOMEM. Call section_reader_done in either
 * case. */
int section_reader_init(struct section_reader *s, int fd, const struct elf_section *section);
void section_reader_done(struct section_reader *s);
/* Fills the window with at least `want` bytes, or all that are left. Returns 0, -errno, or -EBADMSG
 * if the compressed data is damaged. */
int section_reader_fill(struct section_reader *s, size_t want);
/* Drops n bytes from the window's front. */
void section_reader_drop(struct section_reader *s, size_t n);

#endif
