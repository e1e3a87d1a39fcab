/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbol tables of a file: .symtab, .dynsym (by its section, or where PT_DYNAMIC leads), and
 * the .symtab within .gnu_debugdata, and of these the symbols that say something of code, each by
 * itself (symfile.h has the rules; what they make of several is symindex.h's). Pure, but for
 * reading the file.
 */
#ifndef PROFPIPE_SYMTABLE_H
#define PROFPIPE_SYMTABLE_H

#include "common/names/elf/symfile_internal.h"

#define SYMTABLE_MAX_SYMBOLS (4u << 20) /* of all tables of one file */

enum symtable_id { SYMTABLE_SYMTAB, SYMTABLE_DYNSYM, SYMTABLE_MINI, SYMTABLES };

/* Where a table's strings are: in the file, or in memory. */
struct symtable_strings {
	uint64_t offset, size;
	uint8_t *bytes; /* owned; NULL: in the file */
};

struct symtable {
	enum symtable_id id;
	uint64_t offset, count; /* of its entries, in the file */
	struct symtable_strings strings;
};

/* A name: bits 31..30 the table, 28..0 the offset in its strings. Bit 29 is for whoever keeps it.
 */
#define SYMBOL_NAME_SHIFT 30
#define SYMBOL_NAME_FLAG (1u << 29)
#define SYMBOL_NAME_OFFSET (SYMBOL_NAME_FLAG - 1)

/* BORDER: it names nothing, and ends what comes before it and has no size. */
enum symbol_kind { SYMBOL_BORDER, SYMBOL_UNSIZED, SYMBOL_SIZED };

struct symbol {
	uint64_t value;
	uint32_t size; /* of one without: up to its section's end */
	uint32_t name;
	uint32_t kind; /* enum symbol_kind */
	uint32_t rank; /* higher is better */
};

struct symbols {
	struct symbol *data; /* owned */
	size_t len, cap;
};
/* 0, SYMFILE_TOO_LARGE, -ENOMEM. */
int symbols_push(struct symbols *all, const struct symbol *s);

/* All of these: 0, SYMFILE_NONE: there is no such table; SYMFILE_MALFORMED, SYMFILE_TOO_LARGE,
 * -errno. */

/* Not for SYMTABLE_MINI. */
int symtable_find(const struct symfile *f, enum symtable_id id, struct symtable *ret);
/* Calls fn for each symbol of code, with its number in the table; what fn returns but 0 ends it,
 * and is returned. */
int symtable_each(const struct symfile *f, const struct symtable *t,
		  int (*fn)(void *ctx, uint32_t number, const struct symbol *s), void *ctx);
/* The symbol of a number; SYMFILE_NONE: it says nothing of code. */
int symtable_get(const struct symfile *f, const struct symtable *t, uint32_t number,
		 struct symbol *ret);
/* Adds all symbols of code. */
int symtable_add(const struct symfile *f, const struct symtable *t, struct symbols *all);
/* Unpacks MiniDebugInfo, and adds its symbols. ret_strings->bytes is given. */
int symtable_add_mini(const struct symfile *f, struct symtable_strings *ret_strings,
		      struct symbols *all);
/* The name at an offset, NUL-terminated. */
int symtable_name(const struct symfile *f, const struct symtable_strings *s, uint32_t offset,
		  char into[static SYMFILE_NAME]);

#endif
