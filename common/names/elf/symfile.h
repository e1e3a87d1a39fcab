/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One ELF file as a source of names: the addresses of its file offsets, its build id, the name of
 * its debug file, and its sections (symindex.h has its functions). 64-bit, little-endian.
 *
 * The file is only read with pread, a bounded piece at a time. If it were mapped and somebody
 * truncated it, the process would die of SIGBUS.
 *
 * Functions return -errno of reading and of memory, and enum symfile_verdict for bad contents.
 */
#ifndef COMMON_NAMES_ELF_SYMFILE_H
#define COMMON_NAMES_ELF_SYMFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"

#define SYMFILE_NAME 4096 /* bytes of a raw name that are read, with the NUL */
#define SYMFILE_BUILD_ID 64
#define SYMFILE_GO_BUILD_ID 128

enum symfile_verdict {
	SYMFILE_NOT_ELF = 1,
	/* 32-bit, big-endian or a core file; also an object file where a program is needed. */
	SYMFILE_UNSUPPORTED = 2,
	SYMFILE_MALFORMED = 3, /* cut short, or its sizes are wrong */
	SYMFILE_TOO_LARGE = 4, /* over a limit */
	SYMFILE_NONE = 5,      /* no such symbol, section or address */
};
/* Returns a reason for messages: "not an ELF file; name a program or shared object". Static
 * text. */
const char *symfile_verdict_text(int verdict);

struct symfile;

struct symfile_section {
	uint64_t addr, offset, size, flags;
	uint32_t name, type, link, entsize;
};

struct symfile_segment {
	uint64_t offset, filesz, vaddr;
	bool exec;
};

/* What a file consists of. */
struct symfile_layout {
	uint64_t size;	  /* of the file, in bytes */
	uint16_t machine; /* e_machine */
	bool linked;	  /* as symfile_is_linked */
	bool cut;	  /* as symfile_is_cut */
	bool bare;	  /* no section headers: its executable segments stand for sections */
	const struct symfile_segment *segments; /* those that are loaded */
	uint32_t segment_count;
	uint64_t entry;			/* ELF address; 0: none */
	uint64_t dynamic, dynamic_size; /* file offset and size of PT_DYNAMIC */
	const struct symfile_section *sections;
	uint32_t section_count;
	const char *names; /* of sections; a NUL follows the last one */
	size_t names_len;
};

/* Bytes of the file that are loaded at an ELF address. */
struct symfile_range {
	uint64_t offset, size, address;
};

/* Opens a file. The symfile owns fd if this succeeds; after an error the caller keeps it. Returns
 * 0, enum symfile_verdict or -errno. */
int symfile_open(int fd, struct symfile **ret);
/* Like symfile_open, for bytes in memory, borrowed until symfile_free. */
int symfile_open_bytes(struct span bytes, struct symfile **ret);
void symfile_free(struct symfile *f);
/* Returns what the file consists of, borrowed until symfile_free. */
const struct symfile_layout *symfile_layout(const struct symfile *f);
/* Returns the descriptor, borrowed; -1 if f was opened from bytes. */
int symfile_fd(const struct symfile *f);

struct span symfile_build_id(const struct symfile *f); /* borrowed; empty if there is none */
/* Returns the build id that the Go linker wrote; borrowed, empty if there is none. */
struct str symfile_go_build_id(const struct symfile *f);
/* Fills ret with the first executable segments, at most `most`. Returns how many it filled. */
unsigned symfile_code(const struct symfile *f, struct symfile_range *ret, unsigned most);
uint64_t symfile_size(const struct symfile *f); /* of the file, in bytes */
/* Whether the file ends before its section headers. Then it is damaged, or an image from the memory
 * of a process. */
bool symfile_is_cut(const struct symfile *f);
/* Whether the file is a program or shared object, not an object file. (The shared files of dwz
 * claim to be object files.) */
bool symfile_is_linked(const struct symfile *f);
unsigned symfile_machine(const struct symfile *f); /* e_machine */
/* Gives the name (one path component, borrowed) and checksum in .gnu_debuglink. Returns 0 or
 * SYMFILE_NONE. */
int symfile_debuglink(const struct symfile *f, const char **ret_name, uint32_t *ret_crc);
/* Gives the path and build id in .gnu_debugaltlink; borrowed until f is freed. Returns 0,
 * SYMFILE_NONE or -errno. */
int symfile_altlink(struct symfile *f, const char **ret_path, struct span *ret_build_id);

/* Converts a file offset to an ELF address. Returns 0, or SYMFILE_NONE if no segment contains
 * it. */
int symfile_address(const struct symfile *f, uint64_t offset, uint64_t *ret_address);
/* Converts an ELF address to a file offset. *ret_left is the number of bytes of the file that
 * follow in its segment. Returns 0 or SYMFILE_NONE. */
int symfile_offset(const struct symfile *f, uint64_t address, uint64_t *ret_offset,
		   uint64_t *ret_left);
/* Returns the lowest address of a loaded segment. Prelink may give a program another one than its
 * debug file. */
uint64_t symfile_base(const struct symfile *f);

/* Finds the first section with this name; *ret is borrowed. Returns 0 or SYMFILE_NONE. */
int symfile_section(const struct symfile *f, const char *name, const struct symfile_section **ret);
/* Whether a section contains a text. False also if the section has more than SYMFILE_TEXT_MAX
 * bytes. */
#define SYMFILE_TEXT_MAX (16u << 20)
bool symfile_has_text(const struct symfile *f, const char *section, const char *what);
/* Finds the last section with this name: an object file may have several, for one function or type
 * each. */
int symfile_last_section(const struct symfile *f, const char *name,
			 const struct symfile_section **ret);
/* Finds .eh_frame_hdr, by its program header or section header. 0 or SYMFILE_NONE. */
int symfile_frame_header(const struct symfile *f, uint64_t *ret_address, uint64_t *ret_offset,
			 uint64_t *ret_size);
/* Finds the first section of a type, borrowed; NULL: none. */
const struct symfile_section *symfile_section_of_type(const struct symfile *f, uint32_t type);
/* Reads n bytes at a file offset. Returns 0, SYMFILE_MALFORMED if the file is too short, or
 * -errno. */
int symfile_read(const struct symfile *f, uint64_t offset, void *into, size_t n);
bool symfile_has_symtab(const struct symfile *f);

/* Bytes of memory held. */
size_t symfile_bytes(const struct symfile *f);

#endif
