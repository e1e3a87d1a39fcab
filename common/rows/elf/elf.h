/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts of an ELF file that unwinding needs: executable segments, entry point, and the place of
 * call frame information. Reads the descriptor with libelf and pread, never mmap: a file that
 * shrinks would cause SIGBUS. Each size is checked against the file's.
 *
 * Sources: the generic ABI (gabi), chapters 4 and 5; the psABI for x86-64; Linux Standard Base 5.0
 * (.eh_frame_hdr).
 */
#ifndef COMMON_ROWS_ELF_ELF_H
#define COMMON_ROWS_ELF_ELF_H

#include <stdbool.h>
#include <stdint.h>
#include "common/rows/elf/ehpointer.h"

#define ELF_MAX_SECTIONS 4 /* sections of call frame information */
#define ELF_MAX_LOADS 128
#define ELF_MAX_BUILD_ID 32 /* bytes */

enum elf_packing { ELF_PLAIN, ELF_ZLIB, ELF_ZSTD };
struct elf_section {
	uint64_t vaddr, offset, size;
	bool eh;      /* .eh_frame; else .debug_frame */
	bool bounded; /* size is the section's own; else a zero length may end the section
		       * earlier */
	/* If the section is compressed, offset and size are those of the compressed bytes, after
	 * their header. */
	enum elf_packing packing;
};
struct elf_load {
	uint64_t vaddr, offset, filesz;
	bool exec;
};
struct elf_file {
	uint64_t size;	/* of the file */
	uint64_t entry; /* ELF address; 0: none */
	/* The file is an executable or names an interpreter, so the entry is certain. Otherwise the
	 * code at the entry must look like an entry point. */
	bool entry_certain;
	bool interpreted;  /* it names an interpreter (ld.so) */
	bool tls;	   /* it has thread-local variables */
	bool native_image; /* it is a GraalVM native image: it has a section of Java's heap */
	bool truncated;	   /* a needed segment or section table ends after the end of the file */
	struct elf_load load[ELF_MAX_LOADS];
	unsigned loads;
	struct elf_section section[ELF_MAX_SECTIONS];
	unsigned sections;
	/* Sections of call frame information without bytes; the bytes are in a separate debug
	 * file. */
	unsigned empty_sections;
	struct ehpointer_bases bases;
	uint8_t build_id[ELF_MAX_BUILD_ID];
	unsigned build_id_len; /* 0: none, or too long */
};

/* Reads the headers of fd (borrowed; its position does not move). Returns 0; MSG_ROWS_NOT_ELF;
 * MSG_ROWS_UNSUPPORTED (class, byte order, machine, or too many segments); MSG_ROWS_MALFORMED;
 * -errno of reading; -ENOMEM. *ret_why is static text that explains a verdict. */
int elf_read(int fd, struct elf_file *ret, const char **ret_why);

/* Reads n bytes at an ELF address, or as many as the segment has. Returns the number of bytes. */
uint32_t elf_pread_up_to(int fd, const struct elf_file *f, void *into, uint32_t n,
			 uint64_t address);
/* Reads n bytes at an ELF address from one segment. Returns false if they are not all there. */
bool elf_pread_at(int fd, const struct elf_file *f, void *into, uint32_t n, uint64_t address);

#endif
