/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <elf.h>
#include <stdio.h>
#include <unistd.h>
#include "tests/fuzz/demangle_leaves.h"
#include "common/names/demangle.h"
#include "common/names/elf/symfile.h"
#include "common/names/elf/symindex.h"

/* A shared object made by hand: text at 0x1000..0x2000 (file offset 0x1000), more text at
 * 0x2000..0x2100, data at 0x3000..0x3100. */
struct made {
	uint8_t bytes[0x4000];
	Elf64_Sym symbols[64];
	size_t symbol_count;
	char strings[4096];
	size_t strings_len;
	bool dynamic; /* .symtab is .dynsym */
	bool bare;    /* no section headers, but PT_DYNAMIC, which leads to symbols */
	bool gnu;     /* by DT_GNU_HASH */
};

enum { NONE, TEXT, MORE, DATA, SYMTAB, STRTAB, NAMES, FDES, SECTIONS };

static struct made *made_new(void)
{
	struct made *m = calloc(1, sizeof(*m));

	cr_assert(m);
	m->symbol_count = 1;
	m->strings_len = 1;
	return m;
}

static void add(struct made *m, const char *name, uint64_t value, uint64_t size, int bind, int type,
		int section)
{
	m->symbols[m->symbol_count++] = (Elf64_Sym){ .st_name = (Elf64_Word)m->strings_len,
						     .st_info = ELF64_ST_INFO(bind, type),
						     .st_shndx = (Elf64_Half)section,
						     .st_value = value,
						     .st_size = size };
	memcpy(m->strings + m->strings_len, name, strlen(name) + 1);
	m->strings_len += strlen(name) + 1;
}

static struct symfile *open_made(struct made *m)
{
	static const char names[] =
		"\0.text\0.more\0.data\0.symtab\0.strtab\0.shstrtab\0.eh_frame_hdr";
	Elf64_Ehdr e = { .e_type = ET_DYN,
			 .e_machine = EM_X86_64,
			 .e_phoff = 0x40,
			 .e_phnum = 3,
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_shoff = 0x100,
			 .e_shnum = SECTIONS,
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shstrndx = NAMES };
	Elf64_Phdr p[3] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R,
		  .p_offset = 0,
		  .p_vaddr = 0,
		  .p_filesz = 0x1800 },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_offset = 0x1000,
		  .p_vaddr = 0x401000,
		  .p_filesz = 0x1100 },
		{ .p_type = m->bare ? PT_DYNAMIC : PT_NULL, .p_offset = 0xf00, .p_filesz = 0x100 },
	};
	const Elf64_Dyn dynamic[] = {
		{ .d_tag = DT_SYMTAB, .d_un = { .d_val = 0x800 } },
		{ .d_tag = DT_STRTAB, .d_un = { .d_val = 0x402000 } },
		{ .d_tag = DT_STRSZ, .d_un = { .d_val = m->strings_len } },
		{ .d_tag = m->gnu ? DT_GNU_HASH : DT_HASH, .d_un = { .d_val = 0xe80 } },
	};
	/* One bucket, whose chain begins with the first symbol and ends with the last. */
	uint32_t gnu[16] = { 1, 1, 1, 0, 0, 0, 1 }, hash[2] = { 1, (uint32_t)m->symbol_count };

	if (m->bare) {
		cr_assert_leq(m->symbol_count, 10);
		gnu[7 + m->symbol_count - 2] = 1;
		e.e_shoff = 0;
		e.e_shnum = e.e_shstrndx = 0;
		memcpy(m->bytes + 0xf00, dynamic, sizeof(dynamic));
		memcpy(m->bytes + 0xe80, m->gnu ? gnu : hash, m->gnu ? sizeof(gnu) : sizeof(hash));
	}
	uint64_t text = SHF_ALLOC | SHF_EXECINSTR;
	Elf64_Shdr s[SECTIONS] = {
		[TEXT] = { .sh_name = 1,
			   .sh_type = SHT_PROGBITS,
			   .sh_flags = text,
			   .sh_addr = 0x1000,
			   .sh_size = 0x1000 },
		[MORE] = { .sh_name = 7,
			   .sh_type = SHT_PROGBITS,
			   .sh_flags = text,
			   .sh_addr = 0x2000,
			   .sh_size = 0x100 },
		[DATA] = { .sh_name = 13,
			   .sh_type = SHT_PROGBITS,
			   .sh_flags = SHF_ALLOC,
			   .sh_addr = 0x3000,
			   .sh_size = 0x100 },
		[SYMTAB] = { .sh_name = 19,
			     .sh_type = m->dynamic ? SHT_DYNSYM : SHT_SYMTAB,
			     .sh_link = STRTAB,
			     .sh_offset = 0x800,
			     .sh_entsize = sizeof(Elf64_Sym),
			     .sh_size = m->symbol_count * sizeof(Elf64_Sym) },
		[STRTAB] = { .sh_name = 27,
			     .sh_type = SHT_STRTAB,
			     .sh_offset = 0x2000,
			     .sh_size = m->strings_len },
		[NAMES] = { .sh_name = 35,
			    .sh_type = SHT_STRTAB,
			    .sh_offset = 0x600,
			    .sh_size = sizeof(names) },
		[FDES] = { .sh_name = 45,
			   .sh_type = SHT_PROGBITS,
			   .sh_flags = SHF_ALLOC,
			   .sh_addr = 0x3200,
			   .sh_offset = 0x680,
			   .sh_size = 28 },
	};
	struct symfile *f;

	memcpy(e.e_ident, ELFMAG, SELFMAG);
	e.e_ident[EI_CLASS] = ELFCLASS64;
	e.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(m->bytes, &e, sizeof(e));
	memcpy(m->bytes + e.e_phoff, p, sizeof(p));
	if (!m->bare)
		memcpy(m->bytes + e.e_shoff, s, sizeof(s));
	memcpy(m->bytes + 0x600, names, sizeof(names));
	memcpy(m->bytes + 0x800, m->symbols, sizeof(m->symbols));
	memcpy(m->bytes + 0x2000, m->strings, m->strings_len);
	cr_assert_eq(
		symfile_open_bytes((struct span){ .data = m->bytes, .len = sizeof(m->bytes) }, &f),
		0);
	return f;
}

static int look_up(const struct symfile *f, uint64_t address, char name[static SYMFILE_NAME])
{
	struct symindex *x;
	int r;

	cr_assert_eq(symindex_new(f, SYMINDEX_LARGE, &x), 0);
	r = symindex_lookup(x, address, name);
	symindex_free(x);
	return r;
}

static void expect(struct symfile *f, uint64_t address, const char *name)
{
	char got[SYMFILE_NAME] = "";
	int r = look_up(f, address, got);

	if (name)
		cr_expect(r == 0 && strcmp(got, name) == 0, "0x%llx: %d %s, not %s",
			  (unsigned long long)address, r, got, name);
	else
		cr_expect(r == SYMFILE_NONE, "0x%llx: %d %s, not nothing",
			  (unsigned long long)address, r, got);
}

Test(symfile, a_symbol_covers_its_size_and_no_more)
{
	struct made *m = made_new();

	add(m, "f", 0x1010, 0x10, STB_GLOBAL, STT_FUNC, TEXT);
	struct symfile *f = open_made(m);

	expect(f, 0x100f, NULL);
	expect(f, 0x1010, "f");
	expect(f, 0x101f, "f");
	expect(f, 0x1020, NULL);
	symfile_free(f);
	free(m);
}

Test(symfile, a_symbol_never_leaves_its_section)
{
	struct made *m = made_new();

	add(m, "long", 0x1ff0, 0x1000, STB_GLOBAL, STT_FUNC, TEXT);
	add(m, "endless", 0x20f0, 0, STB_GLOBAL, STT_FUNC, MORE);
	struct symfile *f = open_made(m);

	expect(f, 0x1fff, "long");
	expect(f, 0x2000, NULL);
	expect(f, 0x20ff, "endless");
	expect(f, 0x2100, NULL);
	symfile_free(f);
	free(m);
}

Test(symfile, a_symbol_without_size_ends_at_the_next_of_any_kind)
{
	struct made *m = made_new();

	add(m, "start", 0x1000, 0, STB_GLOBAL, STT_NOTYPE, TEXT);
	add(m, "table", 0x1040, 0x10, STB_LOCAL, STT_OBJECT, TEXT);
	add(m, "f", 0x1080, 0x20, STB_GLOBAL, STT_FUNC, TEXT);
	add(m, "label", 0x1090, 0, STB_LOCAL, STT_NOTYPE, TEXT);
	struct symfile *f = open_made(m);

	expect(f, 0x1000, "start");
	expect(f, 0x103f, "start");
	expect(f, 0x1040, NULL);
	expect(f, 0x1050, NULL);
	expect(f, 0x1095, "f");
	expect(f, 0x10a0, NULL);
	symfile_free(f);
	free(m);
}

Test(symfile, a_symbol_without_size_ends_at_a_call_target_in_dynsym)
{
	for (int dynamic = 0; dynamic < 2; dynamic++) {
		struct made *m = made_new();
		int32_t distance = 0x1180 - 0x1705;

		m->dynamic = dynamic;
		add(m, "memset", 0x1100, 0, STB_GLOBAL, STT_FUNC, TEXT);
		add(m, "next", 0x1400, 0x10, STB_GLOBAL, STT_FUNC, TEXT);
		m->bytes[0x700] = 0xe8;
		memcpy(m->bytes + 0x701, &distance, sizeof(distance));
		struct symfile *f = open_made(m);

		expect(f, 0x117f, "memset");
		expect(f, 0x1180, dynamic ? NULL : "memset");
		expect(f, 0x13ff, dynamic ? NULL : "memset");
		expect(f, 0x1400, "next");
		symfile_free(f);
		free(m);
	}
}

Test(symfile, a_symbol_without_size_ends_at_the_next_unwind_entry)
{
	static const uint8_t head[] = { 1, 0x1b, 0x03, 0x3b };
	const int32_t table[] = { 0, 2, 0x1100 - 0x3200, 0, 0x1180 - 0x3200, 0 };
	struct made *m = made_new();

	add(m, "by_hand", 0x1100, 0, STB_LOCAL, STT_NOTYPE, TEXT);
	add(m, "alias", 0x1100, 0, STB_LOCAL, STT_NOTYPE, TEXT);
	add(m, "sized", 0x1170, 0x20, STB_LOCAL, STT_FUNC, TEXT);
	add(m, "other", 0x1200, 0, STB_LOCAL, STT_NOTYPE, TEXT);
	memcpy(m->bytes + 0x680, head, sizeof(head));
	memcpy(m->bytes + 0x684, table, sizeof(table));
	struct symfile *f = open_made(m);

	expect(f, 0x1100, "alias");
	expect(f, 0x116f, "alias");
	expect(f, 0x118f, "sized");
	expect(f, 0x1190, NULL);
	expect(f, 0x1200, "other");
	expect(f, 0x1fff, "other");
	symfile_free(f);
	free(m);
}

Test(symfile, without_section_headers_the_dynamic_segment_leads_to_symbols)
{
	for (int gnu = 0; gnu < 2; gnu++) {
		struct made *m = made_new();

		m->bare = true;
		m->gnu = gnu;
		add(m, "first", 0x401100, 0x80, STB_GLOBAL, STT_FUNC, TEXT);
		add(m, "_fini", 0x401200, 0, STB_GLOBAL, STT_FUNC, TEXT);
		add(m, "data", 0x300, 0x80, STB_GLOBAL, STT_FUNC, DATA);
		add(m, "last", 0x402080, 0x200, STB_GLOBAL, STT_FUNC, 999);
		struct symfile *f = open_made(m);

		expect(f, 0x40117f, "first");
		expect(f, 0x401180, NULL);
		expect(f, 0x401200, NULL);
		expect(f, 0x300, NULL);
		expect(f, 0x4020ff, "last");
		expect(f, 0x402100, NULL);
		symfile_free(f);
		free(m);
	}
}

Test(symfile, the_innermost_of_nested_symbols_counts_and_the_outer_resumes)
{
	struct made *m = made_new();

	add(m, "outer", 0x1000, 0x100, STB_GLOBAL, STT_FUNC, TEXT);
	add(m, "middle", 0x1020, 0x40, STB_LOCAL, STT_FUNC, TEXT);
	add(m, "inner", 0x1030, 0x10, STB_LOCAL, STT_FUNC, TEXT);
	struct symfile *f = open_made(m);

	expect(f, 0x101f, "outer");
	expect(f, 0x1020, "middle");
	expect(f, 0x1030, "inner");
	expect(f, 0x1040, "middle");
	expect(f, 0x1060, "outer");
	expect(f, 0x10ff, "outer");
	expect(f, 0x1100, NULL);
	symfile_free(f);
	free(m);
}

Test(symfile, visible_symbols_beat_local_and_those_beat_untyped)
{
	struct made *m = made_new();

	add(m, "u", 0x1000, 0x10, STB_GLOBAL, STT_NOTYPE, TEXT);
	add(m, "l", 0x1000, 0x10, STB_LOCAL, STT_FUNC, TEXT);
	add(m, "ww", 0x1000, 0x10, STB_WEAK, STT_FUNC, TEXT);
	add(m, "ggg", 0x1000, 0x10, STB_GLOBAL, STT_FUNC, TEXT);
	add(m, "l2", 0x1100, 0x10, STB_LOCAL, STT_FUNC, TEXT);
	add(m, "weak2", 0x1100, 0x10, STB_WEAK, STT_FUNC, TEXT);
	struct symfile *f = open_made(m);

	expect(f, 0x1008, "ww");
	expect(f, 0x1108, "weak2");
	symfile_free(f);
	free(m);
}

Test(symfile, of_aliases_the_shortest_demangled_is_taken)
{
	struct made *m = made_new();

	/* Shorter in the table, longer when demangled. */
	add(m, "_ZNSsC1Ev", 0x1000, 0x10, STB_GLOBAL, STT_FUNC, TEXT);
	add(m, "longer_than_it", 0x1000, 0x10, STB_GLOBAL, STT_FUNC, TEXT);
	add(m, "b", 0x1100, 0x10, STB_WEAK, STT_GNU_IFUNC, TEXT);
	add(m, "a", 0x1100, 0x10, STB_WEAK, STT_FUNC, TEXT);
	struct symfile *f = open_made(m);

	expect(f, 0x1000, "longer_than_it");
	expect(f, 0x1100, "a");
	symfile_free(f);
	free(m);
}

Test(symfile, of_aliases_the_one_without_underscores_is_taken)
{
	struct made *m = made_new();

	add(m, "__GI___write", 0x1000, 0x10, STB_LOCAL, STT_FUNC, TEXT);
	add(m, "__wr", 0x1000, 0x10, STB_GLOBAL, STT_FUNC, TEXT);
	add(m, "write", 0x1000, 0x10, STB_WEAK, STT_FUNC, TEXT);
	add(m, "_IO_printf", 0x1100, 0x10, STB_GLOBAL, STT_FUNC, TEXT);
	add(m, "_ZN5otherEv", 0x1100, 0x10, STB_GLOBAL, STT_FUNC, TEXT);
	struct symfile *f = open_made(m);

	expect(f, 0x1000, "write");
	expect(f, 0x1100, "_ZN5otherEv");
	symfile_free(f);
	free(m);
}

Test(symfile, only_functions_in_executable_sections_count)
{
	struct made *m = made_new();

	add(m, "data", 0x3000, 0x10, STB_GLOBAL, STT_FUNC, DATA);
	add(m, "object", 0x1000, 0x10, STB_GLOBAL, STT_OBJECT, TEXT);
	add(m, "undefined", 0x1010, 0x10, STB_GLOBAL, STT_FUNC, SHN_UNDEF);
	add(m, "absolute", 0x1020, 0x10, STB_GLOBAL, STT_FUNC, SHN_ABS);
	add(m, "elsewhere", 0x2000, 0x10, STB_GLOBAL, STT_FUNC, TEXT);
	add(m, "ifunc", 0x1030, 0x10, STB_GLOBAL, STT_GNU_IFUNC, TEXT);
	struct symfile *f = open_made(m);

	for (uint64_t address = 0x1000; address < 0x1030; address++)
		expect(f, address, NULL);
	expect(f, 0x1030, "ifunc");
	expect(f, 0x2000, NULL);
	expect(f, 0x3000, NULL);
	symfile_free(f);
	free(m);
}

static uint32_t dice(uint32_t below)
{
	static uint64_t state = 7;

	state = state * 6364136223846793005ull + 1442695040888963407ull;
	return (uint32_t)(state >> 33) % below;
}

/* Symbols of all kinds, some nested, with holes between them; every third table is large. */
static struct symfile *any_symbols(struct made *m)
{
	static const int kinds[] = { STT_FUNC, STT_FUNC, STT_FUNC, STT_NOTYPE, STT_OBJECT };
	static const int binds[] = { STB_LOCAL, STB_GLOBAL, STB_WEAK };
	const uint32_t count = 4 + dice(59), width = dice(3) ? 64 : 0x1000;
	char name[16];

	for (uint32_t i = 0; i < count; i++) {
		const bool more = dice(4) == 0;
		const uint64_t at = more ? 0x2000 + dice(0x100) : 0x1000 + dice(0x1000) / 8 * 8;

		snprintf(name, sizeof(name), "f%u", i);
		add(m, name, at, dice(3) ? 1 + dice(width) : 0, binds[dice(3)], kinds[dice(5)],
		    more ? MORE : TEXT);
	}
	return open_made(m);
}

Test(symfile, a_table_that_is_not_held_whole_names_the_same)
{
	static char name[SYMFILE_NAME], other[SYMFILE_NAME];
	uint64_t named = 0;

	for (int i = 0; i < 200; i++) {
		struct made *m = made_new();
		struct symfile *f = any_symbols(m);
		struct symindex *whole, *part;

		cr_assert_eq(symindex_new(f, UINT64_MAX, &whole), 0);
		cr_assert_eq(symindex_new(f, 1, &part), 0);
		for (int k = 0; k < 3000; k++) {
			const uint64_t at = 0xff0 + dice(0x1200);
			const int r = symindex_lookup(whole, at, name);

			cr_assert_eq(symindex_lookup(part, at, other), r, "%d %lx", i, at);
			cr_assert(r || strcmp(name, other) == 0, "%lx: %s, %s", at, name, other);
			named += !r;
		}
		symindex_free(whole);
		symindex_free(part);
		symfile_free(f);
		free(m);
	}
	cr_assert_gt(named, 100000);
}

Test(symfile, offsets_map_through_the_executable_segment_first)
{
	struct made *m = made_new();
	struct symfile *f = open_made(m);
	uint64_t address = 0;

	cr_expect(symfile_address(f, 0x1000, &address) == 0 && address == 0x401000);
	cr_expect(symfile_address(f, 0x20ff, &address) == 0 && address == 0x4020ff);
	cr_expect(symfile_address(f, 0xfff, &address) == 0 && address == 0xfff);
	cr_expect_eq(symfile_address(f, 0x2100, &address), SYMFILE_NONE);
	symfile_free(f);
	free(m);
}

Test(symfile, lying_tables_are_refused)
{
	struct made *m = made_new();
	struct symfile *f;
	char name[SYMFILE_NAME];

	add(m, "f", 0x1010, 0x10, STB_GLOBAL, STT_FUNC, TEXT);
	symfile_free(open_made(m));
	Elf64_Shdr *s = (Elf64_Shdr *)(m->bytes + 0x100);

	s[SYMTAB].sh_size = UINT64_MAX - 100;
	cr_assert_eq(
		symfile_open_bytes((struct span){ .data = m->bytes, .len = sizeof(m->bytes) }, &f),
		0);
	cr_expect_eq(look_up(f, 0x1010, name), SYMFILE_MALFORMED);
	symfile_free(f);
	s[SYMTAB].sh_size = 2 * sizeof(Elf64_Sym);
	s[STRTAB].sh_offset = UINT64_MAX;
	cr_assert_eq(
		symfile_open_bytes((struct span){ .data = m->bytes, .len = sizeof(m->bytes) }, &f),
		0);
	cr_expect_eq(look_up(f, 0x1010, name), SYMFILE_MALFORMED);
	symfile_free(f);
	((Elf64_Ehdr *)m->bytes)->e_shoff = sizeof(m->bytes) - 1;
	cr_expect_eq(
		symfile_open_bytes((struct span){ .data = m->bytes, .len = sizeof(m->bytes) }, &f),
		SYMFILE_MALFORMED);
	cr_expect_eq(symfile_open_bytes((struct span){ .data = m->bytes, .len = 40 }, &f),
		     SYMFILE_MALFORMED);
	cr_expect_eq(symfile_open_bytes(
			     (struct span){ .data = (const uint8_t *)"#!/bin/sh", .len = 9 }, &f),
		     SYMFILE_NOT_ELF);
	m->bytes[EI_CLASS] = ELFCLASS32;
	cr_expect_eq(
		symfile_open_bytes((struct span){ .data = m->bytes, .len = sizeof(m->bytes) }, &f),
		SYMFILE_UNSUPPORTED);
	free(m);
}

static void expect_demangled(const char *name, const char *shown)
{
	char got[DEMANGLE_MAX + 1];

	demangle(name, got, sizeof(got));
	cr_expect_str_eq(got, shown);
}

Test(demangle, cxx_and_rust_are_shown_as_written)
{
	expect_demangled("_ZN1a1B3inlEi", "a::B::inl(int)");
	expect_demangled("_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write");
	expect_demangled("_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function");
	expect_demangled("_Z3foov.cold", "foo() [clone .cold]");
}

Test(demangle, d_is_shown_as_written)
{
	expect_demangled("_Dmain", "D main");
	expect_demangled("_D1a4workFAAyaiZd", "a.work(immutable(char)[][], int)");
	expect_demangled("_D1a5Shape4areaMFiZi", "a.Shape.area(int)");
	expect_demangled("_D1a__T5PointTdZQj3dotMxFNaNbNiNfxSQBh__TQBiTdZQBoZd",
			 "a.Point!(double).Point.dot(const(a.Point!(double).Point)) const");
	expect_demangled("_D1a4workFAAyaiZd.part.0",
			 "a.work(immutable(char)[][], int) [clone .part.0]");
	expect_demangled("_D", "_D");
	expect_demangled("_Done", "_Done");
	expect_demangled("_D9short", "_D9short");
}

Test(demangle, a_name_of_d_that_doubles_by_back_references_stays, .timeout = 5)
{
	/* Each tuple holds the one before it twice; a back reference is a distance in base 26. */
	char name[1024] = "_D1a1fFB2iiZv";
	size_t before = 7, len = 11;

	for (int i = 0; i < 90; i++) {
		const size_t at = len;

		len += (size_t)snprintf(name + len, sizeof(name) - len, "B2");
		for (int k = 0; k < 2; k++) {
			const size_t back = len - before;

			len += (size_t)snprintf(
				name + len, sizeof(name) - len, back < 26 ? "Q%c" : "Q%c%c",
				back < 26 ? (char)('a' + back) : (char)('A' + back / 26),
				(char)('a' + back % 26));
		}
		before = at;
	}
	snprintf(name + len, sizeof(name) - len, "Zv");
	for (int i = 0; i < 40; i++)
		expect_demangled(name, name);
}

Test(demangle, an_at_sign_within_a_name_is_no_version)
{
	expect_demangled("*Array(Int32)@Array(T)#size:Int32", "*Array(Int32)@Array(T)#size:Int32");
	expect_demangled("~proc2Proc(Nil)@src/a.cr:12", "~proc2Proc(Nil)@src/a.cr:12");
	expect_demangled("read@GLIBC_2.2.5", "read");
}

Test(demangle, names_that_are_not_mangled_stay)
{
	expect_demangled("main", "main");
	expect_demangled("f.part.0", "f.part.0");
	expect_demangled("_Zork", "_Zork");
	expect_demangled("memcpy@@GLIBC_2.14", "memcpy");
	expect_demangled("@odd", "@odd");
	expect_demangled("", "");
}

Test(demangle, a_name_that_doubles_by_back_references_is_cut, .timeout = 5)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[1024] = "_Z1f1aI1bS0_E", got[DEMANGLE_MAX + 1];
	size_t len = strlen(name);

	for (int i = 1; i < 36; i++)
		len += (size_t)snprintf(name + len, sizeof(name) - len, "1aIS%c_S%c_E", digits[i],
					digits[i]);
	cr_expect_eq(demangle(name, got, sizeof(got)), DEMANGLE_MAX);
	cr_expect_eq(strncmp(got, "f(a<b, b>", 9), 0);
}

Test(demangle, a_cut_never_breaks_a_character)
{
	char name[64] = "", got[16];

	for (int i = 0; i < 8; i++)
		strcat(name, "\xe2\x82\xac");
	cr_expect_eq(demangle(name, got, 15), 12);
	cr_expect_eq(demangle(name, got, 16), 15);
	cr_expect_eq(memcmp(got, name, 15), 0);
}
