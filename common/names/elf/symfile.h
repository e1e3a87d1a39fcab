/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ELF file as a source of names: where its file offsets lie in its address space, its build id,
 * the name of its debug file, and its sections (symindex.h has its functions). It is read by pread
 * only, a bounded piece at a time: a file that shrinks under a mapping is a SIGBUS. 64-bit,
 * little-endian.
 *
 * Errors: -errno from reading and memory, enum symfile_verdict for what the bytes say.
 */
#ifndef PROFPIPE_SYMFILE_H
#define PROFPIPE_SYMFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/span.h"

#define SYMFILE_NAME 4096 /* bytes of a raw name that are looked at, with the NUL */
#define SYMFILE_BUILD_ID 64

enum symfile_verdict {
	SYMFILE_NOT_ELF = 1,
	SYMFILE_UNSUPPORTED =
		2, /* 32-bit, big-endian or a core; where a program is asked for, an object file */
	SYMFILE_MALFORMED = 3, /* cut short, or lies about its sizes */
	SYMFILE_TOO_LARGE = 4, /* over a limit */
	SYMFILE_NONE = 5,      /* nothing there: no symbol, no such section, no such address */
};
/* A sentence's end: "is not an ELF file". */
const char *symfile_verdict_text(int verdict);

struct symfile;

struct symfile_section {
	uint64_t addr, offset, size, flags;
	uint32_t name, type, link, entsize;
};

/* Takes fd, on success only. */
int symfile_open(int fd, struct symfile **ret);
/* Over bytes instead, borrowed for the symfile's life. */
int symfile_open_bytes(struct span bytes, struct symfile **ret);
void symfile_free(struct symfile *f);
/* Its descriptor, borrowed; -1: it is over bytes. */
int symfile_fd(const struct symfile *f);

struct span symfile_build_id(const struct symfile *f); /* borrowed; empty without one */
uint64_t symfile_size(const struct symfile *f);	       /* of the file, in bytes */
bool symfile_is_cut(const struct symfile *f); /* ends before its section headers: what a process has
						 of it in memory, or a damaged file */
bool symfile_is_linked(const struct symfile *f);   /* a program or shared object, not an object file
						      (which dwz's shared files claim to be) */
unsigned symfile_machine(const struct symfile *f); /* e_machine */
/* The name (one component, borrowed) and checksum of .gnu_debuglink. 0 or SYMFILE_NONE. */
int symfile_debuglink(const struct symfile *f, const char **ret_name, uint32_t *ret_crc);
/* The CRC-32 of the whole file, as .gnu_debuglink has it. 0, -errno, SYMFILE_TOO_LARGE. */
int symfile_crc(const struct symfile *f, uint32_t *ret);
/* The path and build id that .gnu_debugaltlink names; borrowed until f is freed. 0, SYMFILE_NONE,
 * -errno. */
int symfile_altlink(struct symfile *f, const char **ret_path, struct span *ret_build_id);

/* The ELF address of a file offset. 0, SYMFILE_NONE where no segment has it. */
int symfile_address(const struct symfile *f, uint64_t offset, uint64_t *ret_address);
/* The other way: the file offset of an address, and how many bytes of the file follow it in its
 * segment. 0, SYMFILE_NONE. */
int symfile_offset(const struct symfile *f, uint64_t address, uint64_t *ret_offset,
		   uint64_t *ret_left);
/* The lowest address of a loaded segment: two files of one program may differ in it (prelink). */
uint64_t symfile_base(const struct symfile *f);

/* 0 or SYMFILE_NONE; *ret is borrowed. */
int symfile_section(const struct symfile *f, const char *name, const struct symfile_section **ret);
/* The same where several may have the name: an object file has sections of one function or type. */
int symfile_last_section(const struct symfile *f, const char *name,
			 const struct symfile_section **ret);
/* Where .eh_frame_hdr is, as the program header says, or a section. 0 or SYMFILE_NONE. */
int symfile_frame_header(const struct symfile *f, uint64_t *ret_address, uint64_t *ret_offset,
			 uint64_t *ret_size);
/* 0, SYMFILE_MALFORMED when not all there, -errno. */
int symfile_read(const struct symfile *f, uint64_t offset, void *into, size_t n);
bool symfile_has_symtab(const struct symfile *f);

/* Bytes of memory held. */
size_t symfile_bytes(const struct symfile *f);

#endif
