/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Labels of a program: by these, whoever reads a profile finds the same program elsewhere, such as
 * its symbols on a server. They are not its identity: anybody can make a file with any labels,
 * except for the hash. Its GNU build id is a label as well (symfile.h).
 */
#ifndef COMMON_NAMES_ELF_FILELABELS_H
#define COMMON_NAMES_ELF_FILELABELS_H

#include "common/names/elf/symfile.h"

#define FILELABELS_HASH 16
#define FILELABELS_PART 4096u  /* bytes at either end of the file that the hash covers */
#define FILELABELS_SEGMENTS 16 /* that are told; programs have one or two */

struct filelabels {
	uint64_t size; /* of the file, in bytes */
	uint32_t hash_len, go_build_id_len, segment_count;
	uint32_t zero;
	/* The first bytes of a SHA-256 over the first FILELABELS_PART bytes, the last as many (of
	 * a smaller file: all bytes, twice), and the size as a big-endian number of 64 bits. */
	uint8_t hash[FILELABELS_HASH];
	char go_build_id[SYMFILE_GO_BUILD_ID];
	struct symfile_range segments[FILELABELS_SEGMENTS]; /* executable ones */
};

/* Reads the labels of a file: 8 KiB of it, beside what f has read. An end that cannot be read
 * leaves the hash out (hash_len 0). */
void filelabels_read(const struct symfile *f, struct filelabels *ret);
/* Whether labels of a stranger can be used: all lengths are within their arrays. */
bool filelabels_are_sane(const struct filelabels *l);

#endif
