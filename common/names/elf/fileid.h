/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of a program's file, for a backend that names its addresses. The backend finds the
 * file elsewhere by its build ids, and converts offsets to addresses by its segments. Do not trust
 * these values: anybody can make a file with any of them, except for the hash. Fixed width, without
 * padding: workers send it as it is.
 */
#ifndef COMMON_NAMES_ELF_FILEID_H
#define COMMON_NAMES_ELF_FILEID_H

#include <assert.h>
#include "common/names/elf/symfile.h"

#define FILEID_HTLHASH 16
#define FILEID_PART 4096u  /* bytes at either end of the file that the hash covers */
#define FILEID_SEGMENTS 16 /* segments that are reported; programs have one or two */

struct fileid {
	uint64_t size;					      /* of the file, in bytes */
	uint32_t gnu_len, go_len, htlhash_len, segment_count; /* 0: unknown, or none */
	uint8_t gnu[SYMFILE_BUILD_ID];			      /* the GNU build id */
	/* The first bytes of a SHA-256 over the file's first FILEID_PART bytes, its last
	 * FILEID_PART bytes (of a smaller file: all bytes, twice), and its size as a big-endian
	 * number of 64 bits. */
	uint8_t htlhash[FILEID_HTLHASH];
	char go[SYMFILE_GO_BUILD_ID]; /* the Go linker's text */
	/* Executable segments: offset in the file, size there, ELF address. */
	uint64_t segments[3 * FILEID_SEGMENTS];
};

static_assert(sizeof(struct fileid) == 8 + 4 * 4 + SYMFILE_BUILD_ID + FILEID_HTLHASH +
					       SYMFILE_GO_BUILD_ID + 24 * FILEID_SEGMENTS,
	      "no padding");

/* Fills *ret with what the file contains. Reads 8 KiB of it, besides what f has read. If the end
 * cannot be read, there is no hash (htlhash_len 0). */
void fileid_read(const struct symfile *f, struct fileid *ret);
/* Whether a struct of untrusted bytes has lengths that fit its arrays. */
bool fileid_is_sane(const struct fileid *id);
/* The ELF address of an offset in the file. False: no segment has it. */
bool fileid_address(const struct fileid *id, uint64_t offset, uint64_t *ret);

#endif
