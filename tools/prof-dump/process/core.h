/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core file, as the kernel and gdb's gcore write them: threads with registers, memory, and the
 * mapped files. Reads with pread, in bounded pieces. The file is untrusted.
 *
 * Source: System V gABI, chapter 5 (program headers, notes); core(5); the kernel's fs/binfmt_elf.c
 * (NT_PRSTATUS, NT_AUXV, NT_FILE).
 */
#ifndef PROF_DUMP_PROCESS_CORE_H
#define PROF_DUMP_PROCESS_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "tools/prof-dump/process/message.h"

#define CORE_MAX_HEADERS (1u << 20)   /* program headers */
#define CORE_MAX_NOTES (256ull << 20) /* bytes of notes */
#define CORE_MAX_THREADS (1u << 16)
#define CORE_BUILD_ID 64

enum core_verdict {
	CORE_NOT_ELF = 1,
	CORE_NOT_CORE,	  /* an ELF file of another type */
	CORE_UNSUPPORTED, /* 32-bit, or another machine */
	CORE_MALFORMED,	  /* contradicts itself, or ends within its headers */
	CORE_TOO_LARGE,	  /* over one of the limits above */
	CORE_NO_THREADS,
};
/* The end of a sentence: "is not a core file". */
const char *core_verdict_text(int verdict);

/* A range of memory. The core has its first `filled` bytes. */
struct core_range {
	uint64_t start, end;
	uint64_t offset, filled; /* position and number of bytes in the core */
	bool executable, writable;
};

/* A mapped file. */
struct core_file {
	uint64_t start, end, offset; /* offset in that file, in bytes */
	const char *path;	     /* points into the core's notes */
};

struct core {
	int fd;
	uint64_t size, wanted_size;	/* size of the file, and the size that its headers claim */
	struct core_range *ranges;	/* sorted by start */
	struct core_file *files;	/* sorted by start */
	struct message_thread *threads; /* the first one took the signal */
	size_t range_count, file_count, thread_count;
	uint64_t vdso; /* address of the first byte; 0: none */
	uint8_t *notes;
};

/* Takes fd if it succeeds. Returns 0, enum core_verdict or -errno. */
int core_open(int fd, struct core **ret);
void core_free(struct core *c);
/* The range, or the file, that contains an address; or NULL. */
const struct core_range *core_range_at(const struct core *c, uint64_t address);
const struct core_file *core_file_at(const struct core *c, uint64_t address);
/* Reads memory. Returns 0, or a negative number if the core does not have all of it. */
int core_read(const struct core *c, void *to, size_t size, uint64_t address);
/* Reads the build id of the ELF file whose first byte was mapped at `header`. Returns its length;
 * 0: unknown. */
size_t core_build_id(const struct core *c, uint64_t header, uint8_t ret[static CORE_BUILD_ID]);

#endif
