/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program as the dynamic linker would lay it out, by ELF address: bytes, words with their
 * relocations applied, symbols by name. For those who look for what is in a program, rather than
 * for names of its code (symfile.h). x86-64.
 *
 * Sources: System V gABI chapters 4 and 5; the x86-64 psABI, "Relocation Types"; the layout of
 * .gnu.hash as binutils writes it.
 */
#ifndef PROFPIPE_ELFVIEW_H
#define PROFPIPE_ELFVIEW_H

#include <elf.h>
#include "common/names/elf/funcbounds.h"
#include "common/names/elf/symfile.h"

struct elfview {
	const struct symfile *file; /* borrowed */
	Elf64_Rela *relas;	    /* owned; read at the first need */
	size_t rela_count;
	bool relas_tried;
	struct funcbounds *bounds; /* owned; NULL before the first need */
};

struct elfview_symbol {
	uint64_t value, size;
	unsigned type; /* STT_* */
};

/* What stands in a word once the program is loaded. */
enum elfview_word {
	ELFVIEW_BYTES,	 /* what the file has there */
	ELFVIEW_ADDRESS, /* an address of this image */
	ELFVIEW_TPOFF,	 /* the offset of a thread-local variable from the TLS base */
	ELFVIEW_DTPMOD,	 /* the number of this image's TLS block */
	ELFVIEW_SYMBOL,	 /* the address of a symbol that another file may define */
	ELFVIEW_OTHER,
};

#define ELFVIEW_NAME 64 /* bytes of a symbol's name that are looked at, with the NUL */

struct elfview_value {
	enum elfview_word kind;
	uint64_t value;
	char name[ELFVIEW_NAME]; /* of the symbol; else "" */
};

void elfview_init(struct elfview *im, const struct symfile *file);
void elfview_done(struct elfview *im);

/* The functions below return 0, SYMFILE_NONE, SYMFILE_MALFORMED, SYMFILE_TOO_LARGE or -errno. */

int elfview_read(const struct elfview *im, uint64_t address, void *into, size_t n);
/* At most size - 1 bytes of a string, NUL-terminated. */
int elfview_string(const struct elfview *im, uint64_t address, char *into, size_t size);
/* n words from address on: those that are relocated to addresses of this image as such, others as
 * the file has them. */
int elfview_words(struct elfview *im, uint64_t address, uint64_t *ret, size_t n);
/* Where words hold an address of this image, in data that may be constant: at most n places. */
int elfview_pointers(struct elfview *im, uint64_t to, uint64_t *ret, size_t n, size_t *ret_count);
int elfview_word(struct elfview *im, uint64_t address, struct elfview_value *ret);

/* A symbol that the file defines, of its dynamic ones: by .gnu.hash, in some microseconds. */
int elfview_exported(const struct elfview *im, const char *name, struct elfview_symbol *ret);
/* Calls back for each defined symbol of .symtab, or of .dynsym, whose name begins with prefix;
 * name is cut to ELFVIEW_NAME. A return value other than 0 ends it, and is returned. */
int elfview_symbols(const struct elfview *im, bool dynamic, const char *prefix,
		    int (*each)(void *ctx, const char *name, const struct elfview_symbol *s),
		    void *ctx);
/* A symbol of .symtab. */
int elfview_local(const struct elfview *im, const char *name, struct elfview_symbol *ret);
/* A symbol that the file defines, of either table. */
int elfview_defined(const struct elfview *im, const char *name, struct elfview_symbol *ret);
/* As funcbounds_entry. */
int elfview_function(struct elfview *im, uint64_t address, uint64_t *ret_start, uint64_t *ret_end);

#endif
