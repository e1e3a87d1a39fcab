/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of a program's file for a backend that names its addresses: the build ids, by which
 * it finds the file, and the segments, by which offsets become addresses. They are labels; nothing
 * else trusts them. Fixed width, without padding: workers send it as it is.
 */
#ifndef COMMON_NAMES_ELF_FILEID_H
#define COMMON_NAMES_ELF_FILEID_H

#include "common/names/elf/symfile.h"

#define FILEID_HTLHASH 16
#define FILEID_GO 128
#define FILEID_SEGMENTS 16

struct fileid {
	uint32_t gnu_len, go_len, htlhash_len, segment_count; /* 0: unknown, or none */
	uint8_t gnu[SYMFILE_BUILD_ID];			      /* the GNU build id */
	uint8_t htlhash[FILEID_HTLHASH]; /* of the file's head, tail and length */
	char go[FILEID_GO];		 /* what the Go linker wrote */
	/* Executable segments: offset in the file, size there, ELF address. */
	uint64_t segments[3 * FILEID_SEGMENTS];
};

_Static_assert(sizeof(struct fileid) ==
		       4 * 4 + SYMFILE_BUILD_ID + FILEID_HTLHASH + FILEID_GO + 24 * FILEID_SEGMENTS,
	       "no padding");

/* Reads all that the file has. What cannot be read is unknown. */
void fileid_read(const struct symfile *f, struct fileid *ret);
/* Whether one of untrusted bytes has its lengths within its arrays. */
bool fileid_is_sane(const struct fileid *id);
/* The ELF address of an offset in the file. False: no segment has it. */
bool fileid_address(const struct fileid *id, uint64_t offset, uint64_t *ret);

#endif
