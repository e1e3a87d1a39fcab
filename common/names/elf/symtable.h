/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The symbol tables of a file: .symtab, .dynsym (by its section or through PT_DYNAMIC), and the
 * .symtab inside .gnu_debugdata. Only symbols that matter for code are returned. symindex.h has the
 * rules, and chooses between several symbols. Pure, except that it reads the file.
 */
#ifndef COMMON_NAMES_ELF_SYMTABLE_H
#define COMMON_NAMES_ELF_SYMTABLE_H

#include "common/names/elf/symfile.h"

#define SYMTABLE_MAX_SYMBOLS (4u << 20) /* of all tables of one file */

enum symtable_id { SYMTABLE_SYMTAB, SYMTABLE_DYNSYM, SYMTABLE_MINI, SYMTABLES };

/* The strings of a table, in the file or in memory. */
struct symtable_strings {
	uint64_t offset, size;
	uint8_t *bytes; /* owned; NULL: in the file */
};

struct symtable {
	enum symtable_id id;
	uint64_t offset, count; /* of its entries, in the file */
	struct symtable_strings strings;
};

/* A symbol's name in 32 bits: the table in bits 31..30, the offset in its strings in bits 28..0.
 * Bit 29 is free for the owner of the symbol. */
#define SYMTABLE_NAME_SHIFT 30
#define SYMTABLE_NAME_FLAG (1u << 29)
#define SYMTABLE_NAME_OFFSET (SYMTABLE_NAME_FLAG - 1)

/* BORDER: has no name to show, but an unsized symbol before it ends there. */
enum symtable_kind { SYMTABLE_BORDER, SYMTABLE_UNSIZED, SYMTABLE_SIZED };

struct symtable_symbol {
	uint64_t value;
	uint32_t size; /* bytes; of an unsized symbol: up to its section's end */
	uint32_t name;
	uint32_t kind; /* enum symtable_kind */
	uint32_t rank; /* higher is better */
};

struct symtable_symbols {
	struct symtable_symbol *data; /* owned */
	size_t len, cap;
};
/* Appends a symbol. Returns 0, SYMFILE_TOO_LARGE or -ENOMEM. */
int symtable_push(struct symtable_symbols *all, const struct symtable_symbol *s);

/* The functions below return 0, SYMFILE_NONE (no such table), SYMFILE_MALFORMED, SYMFILE_TOO_LARGE
 * or -errno. */

/* Finds a table. Not for SYMTABLE_MINI. */
int symtable_find(const struct symfile *f, enum symtable_id id, struct symtable *ret);
/* Calls fn for each symbol of code, with its number in the table. Stops when fn returns a value
 * other than 0, and returns that value. */
int symtable_each(const struct symfile *f, const struct symtable *t,
		  int (*fn)(void *ctx, uint32_t number, const struct symtable_symbol *s),
		  void *ctx);
/* Adds the symbols of code with these numbers, which are sorted and may repeat. Neighbours share a
 * read. Returns 0, errors of symfile_read or of symtable_push. */
int symtable_pick(const struct symfile *f, const struct symtable *t, const uint32_t *numbers,
		  size_t len, struct symtable_symbols *all);
/* Adds all symbols of code. */
int symtable_add(const struct symfile *f, const struct symtable *t, struct symtable_symbols *all);
/* Unpacks MiniDebugInfo, and adds its symbols. The caller owns ret_strings->bytes. */
int symtable_add_mini(const struct symfile *f, struct symtable_strings *ret_strings,
		      struct symtable_symbols *all);
/* Reads the name at an offset, NUL-terminated. */
int symtable_name(const struct symfile *f, const struct symtable_strings *s, uint32_t offset,
		  char into[static SYMFILE_NAME]);

#endif
