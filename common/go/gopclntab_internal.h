/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bounded reading of a Go table, shared by the files that implement gopclntab.h. gopclntab_open.c
 * finds the table, gopclntab_calls.c reads inlined calls, gopclntab.c reads the rest.
 */
#ifndef COMMON_GO_GOPCLNTAB_INTERNAL_H
#define COMMON_GO_GOPCLNTAB_INTERNAL_H

#include "common/go/gopclntab.h"

#define GOPCLNTAB_LOADS 128u
#define GOPCLNTAB_MODULE_WORDS 72u /* words of 8 bytes of runtime.moduledata */

/* A part of the file: a table, or a piece of one. */
struct gopclntab_region {
	uint64_t offset, size;
};

struct gopclntab_load {
	uint64_t vaddr, offset, filesz;
	bool exec, write;
};

/* How a table stores inlined calls. */
enum gopclntab_inline_kind {
	/* parent4 file4 line4 name4 */
	GOPCLNTAB_INLINE_1_9,
	/* parent2 id1 0 file4 line4 name4, offset4 of an instruction at the call */
	GOPCLNTAB_INLINE_1_12,
	/* id1 0 0 0 name4, offset4 of an instruction at the call, startline4 */
	GOPCLNTAB_INLINE_1_20,
};
struct gopclntab_inline {
	enum gopclntab_inline_kind kind;
	uint8_t pcdata, funcdata;
};

struct gopclntab {
	struct gopclntab_reader reader;
	struct gopclntab_load loads[GOPCLNTAB_LOADS];
	unsigned load_count;
	/* .rela.dyn: the entries of type RELATIVE, by rising offset */
	struct gopclntab_region rela;

	enum gopclntab_format format;
	uint64_t vaddr, offset, size; /* of the header; size: how far the table may extend */
	uint32_t count;
	/* files: in format 1.2, its array of offsets */
	struct gopclntab_region names, cutab, files, pctab, funcs;
	uint64_t text;
	unsigned text_tries;
	uint64_t scan_left; /* bytes that may still be searched for the table */
	bool late;	    /* in format 1.2: Go 1.12 or later */
	uint64_t low, high;
	uint64_t module[GOPCLNTAB_MODULE_WORDS];
	unsigned module_words;

	bool inline_tried, inline_known;
	struct gopclntab_inline inlined;
	uint64_t gofunc;

	/* Direct mapped cache of pages. */
	uint32_t slots; /* a power of two */
	uint64_t *tags; /* page + 1 */
	uint32_t *lens;
	uint8_t *pages;
};

/* Reads n bytes at a file offset. Returns 0, GOPCLNTAB_MALFORMED past the file's end, or -errno,
 * like all functions below. */
int gopclntab_fetch(struct gopclntab *t, uint64_t offset, void *into, size_t n);
/* Reads n bytes at an offset into a region. */
int gopclntab_fetch_in(struct gopclntab *t, struct gopclntab_region in, uint64_t at, void *into,
		       size_t n);
/* Reads a string at an offset into a region, truncated to cap - 1 bytes. Returns GOPCLNTAB_NONE if
 * it is empty. */
int gopclntab_fetch_string(struct gopclntab *t, struct gopclntab_region in, uint64_t at, char *into,
			   size_t cap);
/* Converts an address to a file offset. *ret_left is the number of bytes left in its segment.
 * Returns false if no segment contains it. */
bool gopclntab_locate(const struct gopclntab *t, uint64_t vaddr, uint64_t *ret_offset,
		      uint64_t *ret_left);
/* Reads a pointer by its address and file offset, as the dynamic loader leaves it. */
int gopclntab_fetch_word(struct gopclntab *t, uint64_t vaddr, uint64_t offset, uint64_t *ret);
/* Reads a pointer inside the table, by its file offset. */
int gopclntab_word(struct gopclntab *t, uint64_t offset, uint64_t *ret);
bool gopclntab_is_code(const struct gopclntab *t, uint64_t low, uint64_t high);

size_t gopclntab_entry_size(const struct gopclntab *t); /* size in bytes of an entry in functab */
/* Reads the address where function `index` begins; for index == count, where the last one ends. */
int gopclntab_entry(struct gopclntab *t, uint32_t index, uint64_t *ret);
/* Reads the file offset of the function's description (_func). */
int gopclntab_description(struct gopclntab *t, uint32_t index, uint64_t *ret);
/* Reads the value at an address of a table of values, in at most *steps steps. Returns
 * GOPCLNTAB_NONE if the table has none there. */
int gopclntab_value_within(struct gopclntab *t, const struct gopclntab_func *f, uint32_t table,
			   uint64_t address, uint32_t *steps, int32_t *ret);

/* Makes a struct whose table is not found yet (gopclntab_open does that). Returns 0 or -ENOMEM. */
int gopclntab_new(const struct gopclntab_reader *reader, struct gopclntab **ret);

#endif
