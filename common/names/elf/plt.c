/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/elf/plt.h"

#include <elf.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/names/elf/symtable.h"

#define SLOT 16
#define SMALL_SLOT 8		   /* bytes, in a .plt.got without endbr64 */
#define CHUNK 170		   /* relocations read at once */
#define MAX_RELOCATIONS (1u << 20) /* read for one address */

static const char *section_name(const struct symfile_layout *l, const struct symfile_section *s)
{
	return s->name < l->names_len ? l->names + s->name : "";
}

static const struct symfile_section *table_at(const struct symfile_layout *l, uint64_t address)
{
	for (uint32_t i = 1; i < l->section_count; i++) {
		const struct symfile_section *s = &l->sections[i];
		const char *name = section_name(l, s);

		if (s->type == SHT_PROGBITS && s->flags & SHF_EXECINSTR && address >= s->addr &&
		    address - s->addr < s->size &&
		    (strncmp(name, ".plt", 4) == 0 || strcmp(name, ".iplt") == 0))
			return s;
	}
	return NULL;
}

/* The target of a slot: the address of a GOT word, or the number of a relocation. */
enum slot_kind { SLOT_NONE, SLOT_WORD, SLOT_NUMBER };

/*
 * Decodes a slot, which has one of these forms:
 *
 *  - [endbr64] [mov $number, %r11d] [bnd] jmp *word(%rip)
 *  - endbr64, push $number
 */
static enum slot_kind read_slot(struct span s, uint64_t address, uint64_t *ret)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const uint8_t *begin = s.data;
	struct span part;
	uint8_t op[2];
	int32_t distance;

	if (s.len >= sizeof(endbr) && memcmp(s.data, endbr, sizeof(endbr)) == 0)
		span_take(&s, sizeof(endbr), &part);
	if (s.len >= 6 && s.data[0] == 0x41 && s.data[1] == 0xbb)
		span_take(&s, 6, &part);
	if (s.len && s.data != begin && s.data[0] == 0x68) {
		uint32_t number;

		span_take(&s, 1, &part);
		if (!span_read(&s, &number, sizeof(number)))
			return SLOT_NONE;
		*ret = number;
		return SLOT_NUMBER;
	}
	if (s.len && s.data[0] == 0xf2)
		span_take(&s, 1, &part);
	if (!span_read(&s, op, 2) || op[0] != 0xff || op[1] != 0x25 ||
	    !span_read(&s, &distance, sizeof(distance)))
		return SLOT_NONE;
	*ret = address + (uint64_t)(s.data - begin) + (uint64_t)(int64_t)distance;
	return SLOT_WORD;
}

static int symbol_name(const struct symfile *f, struct symindex *symbols, const Elf64_Rela *rela,
		       char ret_name[static SYMFILE_NAME])
{
	const uint64_t number = ELF64_R_SYM(rela->r_info);
	struct symtable t;
	Elf64_Sym s;
	int r;

	switch (ELF64_R_TYPE(rela->r_info)) {
	case R_X86_64_IRELATIVE:
		return symindex_lookup(symbols, (uint64_t)rela->r_addend, ret_name);
	case R_X86_64_JUMP_SLOT:
	case R_X86_64_GLOB_DAT:
		break;
	default:
		return SYMFILE_NONE;
	}
	r = symtable_find(f, SYMTABLE_DYNSYM, &t);
	if (!r && (!number || number >= t.count))
		r = SYMFILE_NONE;
	if (!r)
		r = symfile_read(f, t.offset + number * sizeof(s), &s, sizeof(s));
	if (!r)
		r = symtable_name(f, &t.strings, s.st_name, ret_name);
	return r ? r : ret_name[0] ? 0 : SYMFILE_NONE;
}

/* Finds the relocation of a slot in one section of relocations. */
static int find_in(const struct symfile *f, const struct symfile_section *s, enum slot_kind kind,
		   uint64_t what, uint32_t *left, Elf64_Rela *ret)
{
	const uint64_t count = s->size / sizeof(Elf64_Rela);
	Elf64_Rela chunk[CHUNK];

	if (kind == SLOT_NUMBER) {
		if (what >= count)
			return SYMFILE_NONE;
		return symfile_read(f, s->offset + what * sizeof(*ret), ret, sizeof(*ret));
	}
	for (uint64_t at = 0; at < count && *left;) {
		uint64_t n = numbers_smaller(count - at, CHUNK);
		int r;

		n = n < *left ? n : *left;
		r = symfile_read(f, s->offset + at * sizeof(*ret), chunk, n * sizeof(*ret));
		if (r)
			return r;
		for (uint64_t i = 0; i < n; i++) {
			if (chunk[i].r_offset == what) {
				*ret = chunk[i];
				return 0;
			}
		}
		at += n;
		*left -= (uint32_t)n;
	}
	return SYMFILE_NONE;
}

static int find_relocation(const struct symfile *f, enum slot_kind kind, uint64_t what,
			   Elf64_Rela *ret)
{
	const struct symfile_layout *l = symfile_layout(f);
	uint32_t left = MAX_RELOCATIONS;
	int r = SYMFILE_NONE;

	/* Search the relocations of the PLT first, which are few, then all others. */
	for (int others = 0; others < (kind == SLOT_NUMBER ? 1 : 2); others++) {
		for (uint32_t i = 1; r == SYMFILE_NONE && i < l->section_count; i++) {
			const struct symfile_section *s = &l->sections[i];
			const bool of_table = strcmp(section_name(l, s), ".rela.plt") == 0;

			if (s->type == SHT_RELA && s->flags & SHF_ALLOC && of_table == !others)
				r = find_in(f, s, kind, what, &left, ret);
		}
	}
	return r;
}

int plt_lookup(const struct symfile *f, struct symindex *symbols, uint64_t address,
	       char ret_name[static SYMFILE_NAME])
{
	const struct symfile_layout *l = symfile_layout(f);
	const struct symfile_section *s = table_at(l, address);
	int r = SYMFILE_NONE;

	if (!s || l->machine != EM_X86_64)
		return SYMFILE_NONE;
	for (unsigned size = SMALL_SLOT; r == SYMFILE_NONE && size <= SLOT; size += SMALL_SLOT) {
		const uint64_t at = (address - s->addr) / size * size;
		uint8_t bytes[SLOT] = { 0 };
		const size_t n = numbers_smaller(s->size - at, size);
		enum slot_kind kind;
		Elf64_Rela rela;
		uint64_t what;

		r = symfile_read(f, s->offset + at, bytes, n);
		if (r)
			return r;
		r = SYMFILE_NONE;
		kind = read_slot((struct span){ .data = bytes, .len = n }, s->addr + at, &what);
		if (kind != SLOT_NONE)
			r = find_relocation(f, kind, what, &rela);
		if (!r)
			r = symbol_name(f, symbols, &rela, ret_name);
	}
	return r;
}
