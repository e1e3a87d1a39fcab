/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of a section in order, as they lie in the file or unpacked, through one window that
 * grows for long entries only. Read by pread, never by mmap (a file that shrinks would be SIGBUS).
 */
#ifndef PROFPIPE_SECTION_READER_H
#define PROFPIPE_SECTION_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/rows/elf/elf.h"

#define SECTION_READER_WINDOW (64u << 10) /* bytes read at once */
#define SECTION_READER_MAX_SECTION \
	(1ull << 30) /* bytes of one section that are looked at, unpacked */

struct section_reader {
	int fd;		       /* borrowed */
	uint64_t offset, left; /* in the file, of what was not read yet */
	uint64_t given;	       /* bytes handed out */
	uint8_t *window;       /* len bytes are there */
	size_t cap, len;
	bool end; /* nothing follows what is in the window */
	enum elf_packing packing;
	struct section_reader_unpacker *unpacker; /* owned; NULL for plain bytes */
};

/* 0 or -ENOMEM; section_reader_done in either case. */
int section_reader_init(struct section_reader *s, int fd, const struct elf_section *section);
void section_reader_done(struct section_reader *s);
/* Makes the window hold at least `want` bytes, or what there is. 0; -errno; -EBADMSG when what is
 * packed is broken. */
int section_reader_fill(struct section_reader *s, size_t want);
/* Drops n bytes off the window's front. */
void section_reader_drop(struct section_reader *s, size_t n);

#endif
