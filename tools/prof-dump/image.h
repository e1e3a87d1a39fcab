/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program or library made of what a process, or a core, has of it in memory, where its file
 * cannot be had: one that was deleted belongs to whoever is privileged. Its headers, code, unwind
 * information and dynamic symbols are mapped; its section headers and the rest are not.
 *
 * A stranger's bytes. What ld.so has made addresses of in PT_DYNAMIC is made addresses of the file
 * again.
 */
#ifndef PROF_DUMP_IMAGE_H
#define PROF_DUMP_IMAGE_H

#include "tools/prof-dump/space.h"

#define IMAGE_PIECES 64	       /* of one file */
#define IMAGE_MAX (256u << 20) /* bytes of one file */
#define IMAGE_TOTAL (1u << 30) /* of all */

/* [start, end) of memory holds what the file has at offset. */
struct image_piece {
	uint64_t start, end, offset;
};
struct image {
	struct image_piece pieces[IMAGE_PIECES];
	unsigned count;
	uint64_t total; /* bytes, of all images that were made */
};

void image_reset(struct image *i);
/* More than there is room for are left out. */
void image_piece(struct image *i, uint64_t start, uint64_t end, uint64_t offset);
/* A file of the pieces. A descriptor; -ENOEXEC: they do not begin as an ELF file does; -EFBIG;
 * -errno. */
int image_make(struct image *i, space_reader *read, void *ctx);

#endif
