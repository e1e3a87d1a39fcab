/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A core file, as the kernel and gdb's gcore make them: threads with their registers, memory, and
 * which file was mapped where. Read with pread, a bounded piece at a time; nothing in it is
 * believed: it may come from anywhere.
 *
 * Source: System V gABI, chapter 5 (program headers, notes); core(5); the kernel's fs/binfmt_elf.c
 * (NT_PRSTATUS, NT_AUXV, NT_FILE).
 */
#ifndef PROF_DUMP_CORE_H
#define PROF_DUMP_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/span.h"
#include "tools/prof-dump/half.h"

#define CORE_MAX_HEADERS (1u << 20)   /* program headers */
#define CORE_MAX_NOTES (256ull << 20) /* bytes of notes */
#define CORE_MAX_THREADS (1u << 16)
#define CORE_BUILD_ID 64

enum core_verdict {
	CORE_NOT_ELF = 1,
	CORE_NOT_CORE,	  /* an ELF file of another kind */
	CORE_UNSUPPORTED, /* 32-bit, or of another machine */
	CORE_MALFORMED,	  /* contradicts itself, or is cut short within its headers */
	CORE_TOO_LARGE,	  /* over a limit above */
	CORE_NO_THREADS,
};
/* A sentence's end: "is no core file". */
const char *core_verdict_text(int verdict);

/* A range of memory, of which the file has the first `filled` bytes. */
struct core_range {
	uint64_t start, end;
	uint64_t offset, filled; /* in the core, bytes */
	bool executable, writable;
};

/* A file that was mapped. */
struct core_file {
	uint64_t start, end, offset; /* offset: in that file, bytes */
	const char *path;	     /* borrowed from the core */
};

struct core {
	int fd;
	uint64_t size, wanted_size;  /* bytes there are, and that the headers speak of */
	struct core_range *ranges;   /* sorted by start */
	struct core_file *files;     /* sorted by start */
	struct half_thread *threads; /* the first is the one that took the signal */
	size_t range_count, file_count, thread_count;
	uint64_t vdso; /* address of its first byte; 0: none */
	uint8_t *notes;
};

/* Takes fd on success. 0, enum core_verdict, -errno. */
int core_open(int fd, struct core **ret);
void core_free(struct core *c);
/* The range, or the file, that holds an address; NULL. */
const struct core_range *core_range_at(const struct core *c, uint64_t address);
const struct core_file *core_file_at(const struct core *c, uint64_t address);
/* Reads memory. 0, or negative where the core does not have all of it. */
int core_read(const struct core *c, void *to, size_t size, uint64_t address);
/* The build id of the ELF file whose first byte was mapped at `header`. How long it is; 0: the core
 * does not say. */
size_t core_build_id(const struct core *c, uint64_t header, uint8_t ret[static CORE_BUILD_ID]);

#endif
