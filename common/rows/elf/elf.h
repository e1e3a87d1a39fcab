/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of an ELF file bears on unwinding: executable segments, entry point, and where call frame
 * information lies. Read with libelf over a descriptor
 * by pread, never by mmap (a file that shrinks would be SIGBUS); every size is held against the
 * file's.
 *
 * Sources: the generic ABI (gabi), chapters 4 and 5; the psABI for x86-64; Linux Standard Base 5.0
 * (.eh_frame_hdr).
 */
#ifndef PROFPIPE_ELF_H
#define PROFPIPE_ELF_H

#include <stdbool.h>
#include <stdint.h>
#include "common/rows/encoded.h"

#define ELF_MAX_SECTIONS 4 /* of call frame information */
#define ELF_MAX_LOADS 128
#define ELF_MAX_BUILD_ID 32 /* bytes */

enum elf_packing { ELF_PLAIN, ELF_ZLIB, ELF_ZSTD };
struct elf_section {
	uint64_t vaddr, offset, size;
	bool eh;      /* .eh_frame, else .debug_frame */
	bool bounded; /* size is the section's own; else it may end sooner, at a zero length */
	enum elf_packing packing; /* offset and size are those of the packed bytes, behind their
				     header */
};
struct elf_load {
	uint64_t vaddr, offset, filesz;
	bool exec;
};
struct elf_file {
	uint64_t size;	    /* of the file */
	uint64_t entry;	    /* ELF address; 0: none */
	bool entry_certain; /* an executable's, or of what has an interpreter; else the code there
			       must look like one */
	bool interpreted;   /* it names an interpreter: ld.so */
	bool tls;	    /* it has thread-local variables */
	bool truncated;	    /* a segment or section table that matters ends past the file's end */
	struct elf_load load[ELF_MAX_LOADS];
	unsigned loads;
	struct elf_section section[ELF_MAX_SECTIONS];
	unsigned sections;
	unsigned empty_sections; /* of call frame information, without bytes: in a separate debug
				    file */
	struct encoded_bases bases;
	uint8_t build_id[ELF_MAX_BUILD_ID];
	unsigned build_id_len; /* 0: none, or one that is longer */
};

/* Looks at fd (borrowed, its position is not moved). 0; ROWS_NOT_ELF; ROWS_UNSUPPORTED (class, byte
 * order, machine, or more segments than the ceiling); ROWS_MALFORMED; -errno of
 * reading; -ENOMEM. *ret_why, static text, says more for a verdict. */
int elf_read(int fd, struct elf_file *ret, const char **ret_why);

/* pread until n bytes are there or the file ends. The number of bytes, or -errno. */
int64_t elf_pread(int fd, void *into, uint64_t n, uint64_t offset);
/* n bytes at an ELF address, or as many as the segment has. The number of bytes. */
uint32_t elf_pread_up_to(int fd, const struct elf_file *f, void *into, uint32_t n,
			 uint64_t address);
/* n bytes at an ELF address, out of one segment. False where they are not there. */
bool elf_pread_at(int fd, const struct elf_file *f, void *into, uint32_t n, uint64_t address);

#endif
