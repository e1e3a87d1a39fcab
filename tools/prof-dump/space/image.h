/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An image: an ELF file rebuilt from the memory of a process or core, where the file itself cannot
 * be opened. To open a deleted file takes privileges. Memory has the file's headers, code, unwind
 * information and dynamic symbols, but not its section headers and the rest.
 *
 * The bytes are untrusted. Addresses that ld.so relocated in PT_DYNAMIC are turned back into the
 * file's addresses.
 */
#ifndef PROF_DUMP_SPACE_IMAGE_H
#define PROF_DUMP_SPACE_IMAGE_H

#include "tools/prof-dump/space/space.h"

#define IMAGE_PIECES 64	       /* of one file */
#define IMAGE_MAX (256u << 20) /* bytes of one file */
#define IMAGE_TOTAL (1u << 30) /* bytes of all files */

/* Memory at [start, end) holds the file's bytes from `offset` on. */
struct image_piece {
	uint64_t start, end, offset;
};
struct image {
	struct image_piece pieces[IMAGE_PIECES];
	unsigned count;
	uint64_t total; /* bytes of all images made so far */
};

void image_reset(struct image *i);
/* Adds a piece; ignores it if there is no room. */
void image_piece(struct image *i, uint64_t start, uint64_t end, uint64_t offset);
/* Makes a file of the pieces. Returns a descriptor; -ENOEXEC: they do not begin like an ELF file;
 * -EFBIG; -errno. */
int image_make(struct image *i, space_reader *read, void *ctx);

#endif
