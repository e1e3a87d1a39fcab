/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The function table that every Go program carries (.gopclntab): functions, stack sizes, lines,
 * inlined calls; of Go 1.2 to 1.27, x86-64, ELF; stripped or not, with section headers or without,
 * position-independent or not, with cgo or not, programs and shared objects.
 *
 * It is read piece by piece through the caller's function, kept in a cache of a fixed size; nothing
 * is copied as a whole, so that memory does not grow with the file. All of it is a stranger's:
 * offsets are held against the table's bounds, and every walk ends, in steps that the file's size
 * bounds. What is wrong with one function costs that function.
 *
 * Addresses are ELF addresses (as in the program headers). Words that the dynamic loader would fill
 * in (R_X86_64_RELATIVE) are taken from the relocations where the file has none.
 *
 * Sources: golang.org/s/go12symtab; runtime/symtab.go, runtime/runtime2.go (_func),
 * runtime/symtabinl.go, cmd/link/internal/ld/pcln.go and debug/gosym of Go 1.2 to 1.27.
 */
#ifndef PROFPIPE_GOPCLNTAB_H
#define PROFPIPE_GOPCLNTAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum gopclntab_verdict {
	GOPCLNTAB_NONE = 1,	   /* not a Go program; no such function; no such value */
	GOPCLNTAB_UNSUPPORTED = 2, /* not 64-bit little-endian x86-64 */
	GOPCLNTAB_MALFORMED = 3,   /* contradicts itself, or ends too soon */
};

/* Formats, by the first Go that writes them. */
enum gopclntab_format {
	GOPCLNTAB_1_2 = 2,
	GOPCLNTAB_1_16 = 16,
	GOPCLNTAB_1_18 = 18,
	GOPCLNTAB_1_20 = 20,
};

/* How the file is read: up to n bytes from a file offset. The number of bytes, less than n only at
 * the file's end; or -errno. */
struct gopclntab_reader {
	int64_t (*read)(void *ctx, uint64_t offset, void *into, size_t n);
	void *ctx;
	uint64_t size;	   /* of the file */
	size_t cache_size; /* bytes kept; 0: 64 KiB, enough for looking up */
};

struct gopclntab;

/* Looks for the table. reader->ctx is borrowed until gopclntab_free. 0; GOPCLNTAB_NONE also where
 * the file is no ELF file or damaged; GOPCLNTAB_UNSUPPORTED; GOPCLNTAB_MALFORMED where there is a
 * table that cannot be used; -errno of reading; -ENOMEM. */
int gopclntab_open(const struct gopclntab_reader *reader, struct gopclntab **ret);
void gopclntab_free(struct gopclntab *t);

enum gopclntab_format gopclntab_format(const struct gopclntab *t);
/* How many functions: indices are 0 to count - 1, in the order of addresses. */
uint32_t gopclntab_count(const struct gopclntab *t);
/* The addresses that its functions cover: from the first's entry to the last's end. */
void gopclntab_range(const struct gopclntab *t, uint64_t *ret_low, uint64_t *ret_high);
size_t gopclntab_bytes(const struct gopclntab *t); /* memory held */

/* Flags, Go 1.17 and later. */
#define GOPCLNTAB_TOP_FRAME 1 /* the outermost function of a stack */
#define GOPCLNTAB_SP_WRITE 2  /* sets the stack pointer to what the table cannot say */
#define GOPCLNTAB_ASM 4

/* PCDATA_... and FUNCDATA_... tables differ from version to version; those of inlined calls are
 * found by gopclntab_inlined. */
struct gopclntab_func {
	uint64_t entry, end;	     /* end: the next one's entry; padding included */
	uint32_t name;		     /* for gopclntab_name */
	int32_t args;		     /* bytes of arguments; INT32_MIN: unknown */
	uint32_t defer_return;	     /* offset from entry; 0: none. Go 1.12 and later */
	uint32_t pcsp, pcfile, pcln; /* for gopclntab_values; 0: none */
	uint32_t start_line;	     /* 0 before Go 1.20 */
	uint32_t cu;		     /* first entry of its files, from Go 1.16 on */
	uint32_t npcdata, nfuncdata;
	uint8_t id;    /* FUNCID_..., whose numbers differ from version to version; 0: an ordinary
			  function */
	uint8_t flags; /* GOPCLNTAB_... */
	uint64_t data; /* file offset of its pcdata and funcdata, for this module */
};

/* One function. Its entry is at or above the one before it, and it lies in executable bytes of the
 * file. 0, GOPCLNTAB_MALFORMED, -errno. */
int gopclntab_func(struct gopclntab *t, uint32_t index, struct gopclntab_func *ret);
/* The index of the function that an address lies in. 0, GOPCLNTAB_NONE, -errno. */
int gopclntab_find(struct gopclntab *t, uint64_t address, uint32_t *ret);

/* The name, NUL-terminated, as the linker wrote it (of a generic function with the type arguments'
 * shapes from Go 1.21 on), cut to cap - 1 bytes. 0, GOPCLNTAB_NONE for an empty one,
 * GOPCLNTAB_MALFORMED, -errno. */
int gopclntab_name(struct gopclntab *t, uint32_t name, char *into, size_t cap);
/* A file's path, by its number in the function's pcfile table. The same. */
int gopclntab_file(struct gopclntab *t, const struct gopclntab_func *f, int32_t file, char *into,
		   size_t cap);

/* A walk over a table of values (pcsp: bytes between the stack pointer and the return address;
 * pcfile; pcln; one of pcdata): ranges of addresses, rising and without gaps from the function's
 * entry on, each with its value. Steps are at most as many as the function has bytes. */
struct gopclntab_values {
	struct gopclntab *t;
	uint64_t at, pc, end;
	int32_t value;
	bool first, over;
};
void gopclntab_values(struct gopclntab *t, const struct gopclntab_func *f, uint32_t table,
		      struct gopclntab_values *ret);
/* 0; GOPCLNTAB_NONE at the table's end; GOPCLNTAB_MALFORMED; -errno. */
int gopclntab_next(struct gopclntab_values *v, uint64_t *ret_start, uint64_t *ret_end,
		   int32_t *ret_value);
/* The value at an address. 0; GOPCLNTAB_NONE where the table has none; GOPCLNTAB_MALFORMED; -errno.
 */
int gopclntab_value(struct gopclntab *t, const struct gopclntab_func *f, uint32_t table,
		    uint64_t address, int32_t *ret);
/* The table of values that is pcdata `index` of a function; *ret is 0 where it has none. 0,
 * GOPCLNTAB_MALFORMED, -errno. */
int gopclntab_pcdata(struct gopclntab *t, const struct gopclntab_func *f, uint32_t index,
		     uint32_t *ret);

/* One call at an address. */
struct gopclntab_call {
	uint32_t name;	     /* for gopclntab_name */
	int32_t file;	     /* for gopclntab_file; -1: unknown */
	uint32_t line;	     /* 0: unknown */
	uint32_t start_line; /* 0 before Go 1.20 */
};
/* The calls at an address of f, innermost inlined call first, f itself last; at most max (of more,
 * inner ones are left out). Returns how many, at least 1; or -errno. What is damaged of the inlined
 * calls counts as none. */
int gopclntab_calls(struct gopclntab *t, const struct gopclntab_func *f, uint64_t address,
		    struct gopclntab_call *calls, unsigned max);

#endif
