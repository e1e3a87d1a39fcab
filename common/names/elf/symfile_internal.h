/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of a symfile, shared by symfile.c and the files that read its symbols. */
#ifndef COMMON_NAMES_ELF_SYMFILE_INTERNAL_H
#define COMMON_NAMES_ELF_SYMFILE_INTERNAL_H

#include "common/names/elf/symfile.h"

struct symfile_segment {
	uint64_t offset, filesz, vaddr;
	bool exec;
};

struct symfile {
	int fd; /* -1: opened from bytes */
	struct span bytes;
	uint64_t size;
	uint16_t machine;
	bool linked, cut;
	bool bare; /* no section headers: its executable segments stand for sections */
	struct symfile_segment *segments;
	uint32_t segment_count;
	uint64_t entry;			/* ELF address; 0: none */
	uint64_t dynamic, dynamic_size; /* file offset and size of PT_DYNAMIC */
	uint64_t frame_header, frame_header_address,
		frame_header_size; /* file offset, address and size of PT_GNU_EH_FRAME; size 0:
				    * none */
	struct symfile_section *sections;
	uint32_t section_count;
	char *names; /* of sections; a NUL follows the last one */
	size_t names_len;
	uint8_t build_id[SYMFILE_BUILD_ID];
	size_t build_id_len;
	char go_build_id[SYMFILE_GO_BUILD_ID];
	size_t go_build_id_len;
	char debuglink[256];
	uint32_t debuglink_crc;
	char *altlink; /* path, NUL, build id */
	size_t altlink_len;
};

/* Finds the first section of a type, borrowed; NULL: none. */
const struct symfile_section *symfile_section_of_type(const struct symfile *f, uint32_t type);

#endif
