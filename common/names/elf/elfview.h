/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A view of a program as the dynamic linker would load it, by ELF address: bytes, words with
 * relocations applied, symbols by name. Runtimes use it to find things in a program; symfile.h is
 * for names of its code. x86-64.
 *
 * Sources: System V gABI chapters 4 and 5; the x86-64 psABI, "Relocation Types"; the layout of
 * .gnu.hash as binutils writes it.
 */
#ifndef COMMON_NAMES_ELF_ELFVIEW_H
#define COMMON_NAMES_ELF_ELFVIEW_H

#include <elf.h>
#include "common/names/elf/funcbounds.h"
#include "common/names/elf/relas.h"
#include "common/names/elf/symfile.h"

struct elfview {
	const struct symfile *file; /* borrowed */
	struct relas relas;
	struct funcbounds *bounds; /* owned; NULL until first needed */
};

struct elfview_symbol {
	uint64_t value, size;
	unsigned type; /* STT_* */
};

/* The contents of a word once the program is loaded. */
enum elfview_word {
	ELFVIEW_BYTES,	 /* the bytes of the file */
	ELFVIEW_ADDRESS, /* an address of this image */
	ELFVIEW_TPOFF,	 /* the offset of a thread-local variable from the TLS base */
	ELFVIEW_DTPMOD,	 /* the number of this image's TLS block */
	ELFVIEW_SYMBOL,	 /* the address of a symbol that another file may define */
	ELFVIEW_OTHER,
};

#define ELFVIEW_NAME 64 /* bytes of a symbol's name that are read, with the NUL */

struct elfview_value {
	enum elfview_word kind;
	uint64_t value;
	char name[ELFVIEW_NAME]; /* name of the symbol; "" for the other kinds */
};

void elfview_init(struct elfview *im, const struct symfile *file);
void elfview_done(struct elfview *im);

/* Unless said otherwise, the functions below return 0, SYMFILE_NONE, SYMFILE_MALFORMED,
 * SYMFILE_TOO_LARGE or -errno. They take ELF addresses. */

int elfview_read(const struct elfview *im, uint64_t address, void *into, size_t n);
/* Reads at most size - 1 bytes of a string, and NUL-terminates it. */
int elfview_string(const struct elfview *im, uint64_t address, char *into, size_t size);
/* Finds bytes in a section, searching from an address on. Returns 0, or SYMFILE_NONE if they are
 * not found. */
int elfview_find(const struct elfview *im, const char *section, struct span what, uint64_t from,
		 uint64_t *ret);
/* Finds a string that begins its section or follows the NUL of another one. */
int elfview_text(const struct elfview *im, const char *section, const char *text, uint64_t *ret);
/* Reads n words. A word that is relocated to an address of this image gets that address; all others
 * are as in the file. */
int elfview_words(struct elfview *im, uint64_t address, uint64_t *ret, size_t n);
/* Finds words that hold an address of this image, in data that may be constant. Returns at most
 * n. */
int elfview_pointers(struct elfview *im, uint64_t to, uint64_t *ret, size_t n, size_t *ret_count);
/* Reads one word, and finds out what it contains once the program is loaded. */
int elfview_word(struct elfview *im, uint64_t address, struct elfview_value *ret);

/* Finds a symbol of .dynsym that the file defines, through .gnu.hash. Takes some microseconds. */
int elfview_exported(const struct elfview *im, const char *name, struct elfview_symbol *ret);
/* Calls `each` for the defined symbols of .symtab or .dynsym whose names begin with prefix. name is
 * truncated to ELFVIEW_NAME. Stops when `each` returns a value other than 0, and returns that
 * value. */
int elfview_symbols(const struct elfview *im, bool dynamic, const char *prefix,
		    int (*each)(void *ctx, const char *name, const struct elfview_symbol *s),
		    void *ctx);
/* Finds a symbol of .symtab. */
int elfview_local(const struct elfview *im, const char *name, struct elfview_symbol *ret);
/* Finds a symbol that the file defines, in either table. */
int elfview_defined(const struct elfview *im, const char *name, struct elfview_symbol *ret);
/* Like funcbounds_entry. */
int elfview_function(struct elfview *im, uint64_t address, uint64_t *ret_start, uint64_t *ret_end);

#endif
