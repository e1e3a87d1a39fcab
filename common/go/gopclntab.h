/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function table of a Go program (.gopclntab): functions, stack depths, lines, inlined calls.
 * Supports Go 1.2 to 1.27 for x86-64 in ELF: programs and shared objects, stripped or not, with or
 * without section headers, position-independent or not, with or without cgo.
 *
 * The table is read piece by piece through the caller's function, with a cache of fixed size, so
 * memory does not grow with the file. The contents are untrusted: offsets are checked against the
 * table's bounds, and the file's size bounds the steps of each walk. A defect in one function costs
 * only that function.
 *
 * Addresses are ELF addresses, as in the program headers. Words that the dynamic loader fills in
 * (R_X86_64_RELATIVE) come from the relocations, if the file has zeros there.
 *
 * Sources: golang.org/s/go12symtab; runtime/symtab.go, runtime/runtime2.go (_func),
 * runtime/symtabinl.go, cmd/link/internal/ld/pcln.go and debug/gosym of Go 1.2 to 1.27.
 */
#ifndef COMMON_GO_GOPCLNTAB_H
#define COMMON_GO_GOPCLNTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gopclntab_verdict {
	GOPCLNTAB_NONE = 1,	   /* not a Go program; no such function; no such value */
	GOPCLNTAB_UNSUPPORTED = 2, /* not 64-bit little-endian x86-64 */
	GOPCLNTAB_MALFORMED = 3,   /* the table is inconsistent, or ends too early */
};

/* Formats, named after the first version of Go that writes them. */
enum gopclntab_format {
	GOPCLNTAB_1_2 = 2,
	GOPCLNTAB_1_16 = 16,
	GOPCLNTAB_1_18 = 18,
	GOPCLNTAB_1_20 = 20,
};

/* Reads the file: up to n bytes at a file offset. Returns the number of bytes, which is less than n
 * only at the file's end; or -errno. */
struct gopclntab_reader {
	int64_t (*read)(void *ctx, uint64_t offset, void *into, size_t n);
	void *ctx;
	uint64_t size;	   /* bytes of the file */
	size_t cache_size; /* bytes of the cache; 0: 64 KiB, enough for lookups */
};

struct gopclntab;

/* Finds the table. Borrows reader->ctx until gopclntab_free. Returns 0; GOPCLNTAB_NONE, also for
 * damaged ELF files and others; GOPCLNTAB_UNSUPPORTED; GOPCLNTAB_MALFORMED if there is a table that
 * cannot be used; -errno of reading; -ENOMEM. */
int gopclntab_open(const struct gopclntab_reader *reader, struct gopclntab **ret);
void gopclntab_free(struct gopclntab *t);

enum gopclntab_format gopclntab_format(const struct gopclntab *t);
/* Returns the number of functions. Indices are 0 to count - 1, in the order of addresses. */
uint32_t gopclntab_count(const struct gopclntab *t);
size_t gopclntab_bytes(const struct gopclntab *t); /* returns the memory in use */

/* From Go 1.17 on. */
enum gopclntab_flags {
	GOPCLNTAB_TOP_FRAME = 1, /* the outermost function of a stack */
	GOPCLNTAB_SP_WRITE = 2,	 /* sets the stack pointer in a way that the table cannot express */
	GOPCLNTAB_ASM = 4,
};

/* The numbers of PCDATA_... and FUNCDATA_... tables differ from version to version. gopclntab_calls
 * finds those of inlined calls. */
struct gopclntab_func {
	uint64_t entry, end;	     /* end: the entry of the next function, so padding is
				      * included */
	uint32_t name;		     /* for gopclntab_name */
	int32_t args;		     /* bytes of arguments; INT32_MIN: unknown */
	uint32_t defer_return;	     /* offset from entry; 0: none. Go 1.12 and later */
	uint32_t pcsp, pcfile, pcln; /* for gopclntab_values; 0: none */
	uint32_t start_line;	     /* 0 before Go 1.20 */
	uint32_t cu;		     /* index of its first file; Go 1.16 and later */
	uint32_t npcdata, nfuncdata;
	/* FUNCID_..., which differ from version to version; 0: an ordinary function. */
	uint8_t id;
	uint8_t flags; /* enum gopclntab_flags */
	uint64_t data; /* file offset of its pcdata and funcdata; private */
};

/* Reads a function. Its entry is not below that of the function before it, and lies in executable
 * bytes of the file. Returns 0, GOPCLNTAB_MALFORMED or -errno. */
int gopclntab_func(struct gopclntab *t, uint32_t index, struct gopclntab_func *ret);
/* Finds the index of the function that contains an address. Returns 0, GOPCLNTAB_NONE or -errno. */
int gopclntab_find(struct gopclntab *t, uint64_t address, uint32_t *ret);

/* Reads a function's name as the linker wrote it, NUL-terminated and truncated to cap - 1 bytes.
 * From Go 1.21 on, a generic function's name includes the shapes of its type arguments. Returns 0,
 * GOPCLNTAB_NONE for an empty name, GOPCLNTAB_MALFORMED or -errno. */
int gopclntab_name(struct gopclntab *t, uint32_t name, char *into, size_t cap);
/* Reads a file's path by its number in the function's pcfile table. Returns as gopclntab_name
 * does. */
int gopclntab_file(struct gopclntab *t, const struct gopclntab_func *f, int32_t file, char *into,
		   size_t cap);

/* An iterator over a table of values: pcsp (bytes between the stack pointer and the return
 * address), pcfile, pcln, or one of pcdata. It gives ranges of addresses, each with its value. They
 * rise without gaps from the function's entry on. A function has at most as many ranges as
 * bytes. */
struct gopclntab_values {
	struct gopclntab *t;
	uint64_t at, pc, end;
	int32_t value;
	bool first, over;
};
void gopclntab_values(struct gopclntab *t, const struct gopclntab_func *f, uint32_t table,
		      struct gopclntab_values *ret);
/* Gives the next range. Returns 0; GOPCLNTAB_NONE at the table's end; GOPCLNTAB_MALFORMED;
 * -errno. */
int gopclntab_next(struct gopclntab_values *v, uint64_t *ret_start, uint64_t *ret_end,
		   int32_t *ret_value);
/* Finds the table of values that is pcdata `index` of a function; *ret is 0 if it has none. Returns
 * 0, GOPCLNTAB_MALFORMED or -errno. */
int gopclntab_pcdata(struct gopclntab *t, const struct gopclntab_func *f, uint32_t index,
		     uint32_t *ret);

/* One of the calls at an address: the function itself, or an inlined one. */
struct gopclntab_call {
	uint32_t name;	     /* for gopclntab_name */
	int32_t file;	     /* for gopclntab_file; -1: unknown */
	uint32_t line;	     /* 0: unknown */
	uint32_t start_line; /* 0 before Go 1.20 */
};
/* Lists the calls at an address of f: the innermost inlined one first, f itself last. If there are
 * more than max, the inner ones are left out. Returns their number, at least 1; or -errno. Damaged
 * inlined calls are ignored. */
int gopclntab_calls(struct gopclntab *t, const struct gopclntab_func *f, uint64_t address,
		    struct gopclntab_call *calls, unsigned max);

#endif
