/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small Go program made by hand. Addresses are file offsets plus 0x400000.
 *
 *   0x0000 headers, section headers, relocations; 0x1000 text; 0x2000 the table; 0x3000 data
 *
 *   0x401000 main.main                   a.go:10, from +0x20 on a.go:12
 *   0x401040 main.work[go.shape.int]     a.go:20, in +0x10..+0x20 main.inner b.go:5, called from
 *                                        a.go:22, itself inlined main.middle b.go:7 in between
 *   0x401080 crosscall                   no lines
 *   0x4010a0 runtime.goexit              a.go:30
 *   0x4010c0 the end
 */
#ifndef TESTS_UNIT_GOTABLE_H
#define TESTS_UNIT_GOTABLE_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define GO_BASE 0x400000ull
#define GO_TEXT 0x401000ull
#define GO_TABLE 0x2000u
#define GO_TREE 0x3800u	  /* inlined calls */
#define GO_MODULE 0x3100u /* runtime.moduledata */
#define GO_SIZE 0x4000u
#define GO_FUNCTIONS 4u

enum go_kind { GO_1_4, GO_1_9, GO_1_12, GO_1_13, GO_1_16, GO_1_18, GO_1_20, GO_1_26, GO_KINDS };

struct gotable {
	uint8_t bytes[GO_SIZE];
	enum go_kind kind;
	bool relocated;	     /* pointers are only in relocations */
	bool no_sections;    /* section headers are stripped */
	const char *section; /* the table's name; NULL: .gopclntab */
	uint32_t relocations;
	uint32_t at;	   /* where the next item goes */
	uint32_t names[8]; /* offsets, in the unit of the format */
	uint32_t functab;  /* file offsets of the parts */
	uint32_t function[GO_FUNCTIONS];
	uint32_t pctab, tables[8];
};

enum { NAME_MAIN, NAME_WORK, NAME_CROSS, NAME_GOEXIT, NAME_INNER, NAME_MIDDLE };
enum { TABLE_SP, TABLE_FILE, TABLE_LINES_MAIN, TABLE_FILES_WORK, TABLE_LINES_WORK, TABLE_TREE };

static inline void go_put(struct gotable *g, const void *data, size_t n)
{
	memcpy(g->bytes + g->at, data, n);
	g->at += (uint32_t)n;
}

static inline void go_u32(struct gotable *g, uint64_t v)
{
	uint32_t x = (uint32_t)v;

	go_put(g, &x, 4);
}

static inline void go_u64(struct gotable *g, uint64_t v)
{
	go_put(g, &v, 8);
}

/* Writes a pointer at g->at. */
static inline void go_pointer(struct gotable *g, uint64_t v)
{
	if (g->relocated && v) {
		Elf64_Rela r = { .r_offset = GO_BASE + g->at,
				 .r_info = R_X86_64_RELATIVE,
				 .r_addend = (int64_t)v };

		memcpy(g->bytes + 0x800 + g->relocations++ * sizeof(r), &r, sizeof(r));
		v = 0;
	}
	go_u64(g, v);
}

/* Writes values and their lengths in bytes, up to a length of 0. */
static inline void go_values(struct gotable *g, int table, const int32_t *pairs)
{
	int32_t value = -1;

	g->tables[table] = g->at;
	for (; pairs[1]; pairs += 2) {
		int32_t delta = pairs[0] - value;
		uint32_t zigzag = (uint32_t)delta << 1 ^ (uint32_t)(delta >> 31);
		uint32_t step = (uint32_t)pairs[1];

		for (; zigzag >= 0x80; zigzag >>= 7)
			g->bytes[g->at++] = (uint8_t)(zigzag | 0x80);
		g->bytes[g->at++] = (uint8_t)zigzag;
		g->bytes[g->at++] = (uint8_t)step; /* under 128 */
		value = pairs[0];
	}
	g->bytes[g->at++] = 0;
}

static inline void go_names(struct gotable *g, uint32_t base)
{
	static const char *const names[] = { "main.main",  "main.work[go.shape.int]",
					     "crosscall",  "runtime.goexit",
					     "main.inner", "main.middle" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		g->names[i] = g->at - base;
		go_put(g, names[i], strlen(names[i]) + 1);
	}
}

static inline void go_pctab(struct gotable *g)
{
	g->pctab = g->at;
	g->bytes[g->at++] = 0;
	go_values(g, TABLE_SP, (const int32_t[]){ 0, 4, 24, 0x1b, 0, 1, 0, 0 });
	go_values(g, TABLE_FILE, (const int32_t[]){ 1, 0x40, 0, 0 });
	go_values(g, TABLE_LINES_MAIN, (const int32_t[]){ 10, 0x20, 12, 0x20, 0, 0 });
	go_values(g, TABLE_FILES_WORK, (const int32_t[]){ 1, 0x10, 2, 0x10, 1, 0x20, 0, 0 });
	go_values(g, TABLE_LINES_WORK,
		  (const int32_t[]){ 20, 8, 22, 4, 7, 4, 5, 0x10, 20, 0x20, 0, 0 });
	/* +8: the call of middle in work; +12: the call of inner in middle. */
	go_values(g, TABLE_TREE, (const int32_t[]){ -1, 12, 0, 4, 1, 0x10, -1, 0x20, 0, 0 });
}

/* main.middle, inlined into work at a.go:22; main.inner, inlined into middle at b.go:7. */
static inline void go_tree(struct gotable *g)
{
	g->at = GO_TREE;
	for (int i = 0; i < 2; i++) {
		uint32_t name = g->names[i ? NAME_INNER : NAME_MIDDLE];
		int32_t parent = i - 1, file = i ? 2 : 1, line = i ? 7 : 22, pc = i ? 12 : 8;

		if (g->kind >= GO_1_20) {
			go_u32(g, 0);
			go_u32(g, name);
			go_u32(g, (uint32_t)pc);
			go_u32(g, i ? 4 : 6);
			continue;
		}
		go_u32(g, g->kind == GO_1_9 ? (uint32_t)parent : (uint16_t)parent);
		go_u32(g, (uint32_t)file);
		go_u32(g, (uint32_t)line);
		go_u32(g, name);
		if (g->kind >= GO_1_12)
			go_u32(g, (uint32_t)pc);
	}
}

static inline uint64_t go_entry(uint32_t i)
{
	static const uint32_t entries[] = { 0, 0x40, 0x80, 0xa0, 0xc0 };

	return GO_TEXT + entries[i];
}

static inline void go_function(struct gotable *g, uint32_t i)
{
	bool tree = i == NAME_WORK && g->kind >= GO_1_9, lines = i != NAME_CROSS;
	bool offsets = g->kind >= GO_1_18;
	uint32_t base = g->kind < GO_1_16 ? GO_TABLE : g->pctab, pcdata = 0, funcdata = 0;
	/* The numbers of the inlined calls' pcdata and funcdata. */
	uint32_t p = g->kind <= GO_1_12 ? 1 : 2, f = g->kind <= GO_1_12	  ? 2
						     : g->kind == GO_1_13 ? 4
									  : 3;

	if (tree) {
		pcdata = p + 1;
		funcdata = f + 1;
	}
	g->at = (g->at + 7) & ~7u;
	g->function[i] = g->at;
	if (offsets)
		go_u32(g, go_entry(i) - GO_TEXT);
	else
		go_pointer(g, go_entry(i));
	go_u32(g, g->names[i]);
	go_u32(g, i == NAME_GOEXIT ? 0x80000000u : 8);
	go_u32(g, 0);
	go_u32(g, g->tables[TABLE_SP] - base);
	go_u32(g, !lines ? 0 : g->tables[i == NAME_WORK ? TABLE_FILES_WORK : TABLE_FILE] - base);
	go_u32(g,
	       !lines ? 0 : g->tables[i == NAME_WORK ? TABLE_LINES_WORK : TABLE_LINES_MAIN] - base);
	go_u32(g, pcdata);
	if (g->kind >= GO_1_16)
		go_u32(g, 0);
	if (g->kind >= GO_1_20)
		go_u32(g, 10 * (i + 1) - 1);
	if (g->kind <= GO_1_9)
		go_u32(g, funcdata);
	else
		go_u32(g, (i == NAME_GOEXIT ? 0x0108u : 0) | funcdata << 24);
	for (uint32_t k = 0; k < pcdata; k++)
		go_u32(g, k == p ? g->tables[TABLE_TREE] - base : 0);
	if (!offsets && g->at % 8)
		go_u32(g, 0);
	for (uint32_t k = 0; k < funcdata; k++) {
		if (offsets)
			go_u32(g, k == f ? 0 : UINT32_MAX);
		else
			go_pointer(g, k == f ? GO_BASE + GO_TREE : 0);
	}
}

static inline void go_functab(struct gotable *g, uint32_t base)
{
	uint32_t end = g->at, at = g->functab;

	for (uint32_t i = 0; i <= GO_FUNCTIONS; i++) {
		g->at = at + i * (g->kind >= GO_1_18 ? 8 : 16);
		if (g->kind >= GO_1_18)
			go_u32(g, go_entry(i) - GO_TEXT);
		else
			go_pointer(g, go_entry(i));
		if (i < GO_FUNCTIONS && g->kind >= GO_1_18)
			go_u32(g, g->function[i] - base);
		else if (i < GO_FUNCTIONS)
			go_u64(g, g->function[i] - base);
	}
	g->at = end;
}

static inline void go_old(struct gotable *g)
{
	uint32_t files[2], filetab;

	go_u64(g, GO_FUNCTIONS);
	g->functab = g->at;
	g->at += GO_FUNCTIONS * 16 + 8 + 8;
	go_names(g, GO_TABLE);
	files[0] = g->at - GO_TABLE;
	go_put(g, "/src/a.go", 10);
	files[1] = g->at - GO_TABLE;
	go_put(g, "/src/b.go", 10);
	g->at = (g->at + 3) & ~3u;
	filetab = g->at;
	go_u32(g, 3);
	go_u32(g, files[0]);
	go_u32(g, files[1]);
	go_pctab(g);
	for (uint32_t i = 0; i < GO_FUNCTIONS; i++)
		go_function(g, i);
	go_functab(g, GO_TABLE);
	g->at = g->functab + GO_FUNCTIONS * 16 + 8;
	go_u32(g, filetab - GO_TABLE);
}

static inline void go_new(struct gotable *g)
{
	uint32_t offsets[5], header = g->at, files[2];

	g->at = GO_TABLE + (g->kind >= GO_1_18 ? 72 : 64);
	offsets[0] = g->at;
	go_names(g, g->at);
	g->at = (g->at + 7) & ~7u;
	offsets[1] = g->at;
	g->at += 12;
	offsets[2] = g->at;
	files[0] = 0;
	go_put(g, "/src/a.go", 10);
	files[1] = g->at - offsets[2];
	go_put(g, "/src/b.go", 10);
	memset(g->bytes + offsets[1], 0xff, 4);
	memcpy(g->bytes + offsets[1] + 4, files, 8);
	g->at = (g->at + 7) & ~7u;
	offsets[3] = g->at;
	go_pctab(g);
	g->at = (g->at + 7) & ~7u;
	offsets[4] = g->functab = g->at;
	g->at += (GO_FUNCTIONS + 1) * (g->kind >= GO_1_18 ? 8 : 16);
	for (uint32_t i = 0; i < GO_FUNCTIONS; i++)
		go_function(g, i);
	go_functab(g, g->functab);
	g->at = header;
	go_u64(g, GO_FUNCTIONS);
	go_u64(g, 2);
	if (g->kind >= GO_1_18)
		go_pointer(g, g->kind >= GO_1_26 ? 0 : GO_TEXT);
	for (int i = 0; i < 5; i++)
		go_u64(g, offsets[i] - GO_TABLE);
	if (g->kind < GO_1_18)
		return;
	g->at = GO_MODULE;
	go_pointer(g, GO_BASE + GO_TABLE);
	for (int i = 0; i < 6; i++) {
		uint64_t count = i == 5 ? GO_FUNCTIONS + 1 : 8;

		go_pointer(g, GO_BASE + offsets[i < 5 ? i : 4]);
		go_u64(g, count);
		go_u64(g, count);
	}
	go_u64(g, 0);
	go_pointer(g, go_entry(0));
	go_pointer(g, go_entry(GO_FUNCTIONS));
	go_pointer(g, GO_TEXT);
	g->at = GO_MODULE + 8 * (g->kind == GO_1_18 ? 38 : 40);
	go_pointer(g, GO_BASE + GO_TREE);
}

static inline int go_rela_cmp(const void *a, const void *b)
{
	const Elf64_Rela *x = a, *y = b;

	return (x->r_offset > y->r_offset) - (x->r_offset < y->r_offset);
}

static inline void go_headers(struct gotable *g)
{
	const char *name = g->section ? g->section : ".gopclntab";
	Elf64_Ehdr e = { .e_type = g->relocated ? ET_DYN : ET_EXEC,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_phoff = 0x40,
			 .e_ehsize = sizeof(e),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 5,
			 .e_shoff = g->no_sections ? 0 : 0x300,
			 .e_shentsize = sizeof(Elf64_Shdr),
			 .e_shnum = g->no_sections ? 0 : 4,
			 .e_shstrndx = g->no_sections ? 0 : 3 };
	Elf64_Phdr p[5] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = 0x1000 },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_offset = 0x1000,
		  .p_filesz = 0x1000 },
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_offset = 0x2000, .p_filesz = 0x1000 },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_W,
		  .p_offset = 0x3000,
		  .p_filesz = 0x1000 },
		{ .p_type = PT_DYNAMIC,
		  .p_flags = PF_R,
		  .p_offset = 0x700,
		  .p_filesz = 4 * sizeof(Elf64_Dyn) }
	};
	Elf64_Shdr s[4] = { { .sh_type = SHT_NULL },
			    { .sh_name = 1,
			      .sh_type = SHT_PROGBITS,
			      .sh_flags = SHF_ALLOC,
			      .sh_addr = GO_BASE + GO_TABLE,
			      .sh_offset = GO_TABLE,
			      .sh_size = 0x1000 },
			    { .sh_name = 32,
			      .sh_type = SHT_PROGBITS,
			      .sh_flags = SHF_ALLOC,
			      .sh_addr = GO_BASE,
			      .sh_size = 8 },
			    { .sh_type = SHT_STRTAB, .sh_offset = 0x600, .sh_size = 0x40 } };
	Elf64_Dyn d[4] = { { .d_tag = DT_RELA, .d_un.d_ptr = GO_BASE + 0x800 },
			   { .d_tag = DT_RELASZ,
			     .d_un.d_val = g->relocations * sizeof(Elf64_Rela) },
			   { .d_tag = DT_RELACOUNT, .d_un.d_val = g->relocations } };

	for (int i = 0; i < 5; i++)
		p[i].p_vaddr = GO_BASE + p[i].p_offset;
	memcpy(e.e_ident, ELFMAG, SELFMAG);
	e.e_ident[EI_CLASS] = ELFCLASS64;
	e.e_ident[EI_DATA] = ELFDATA2LSB;
	e.e_ident[EI_VERSION] = EV_CURRENT;
	memcpy(g->bytes, &e, sizeof(e));
	memcpy(g->bytes + 0x40, p, sizeof(p));
	if (!g->no_sections) {
		memcpy(g->bytes + 0x300, s, sizeof(s));
		memcpy(g->bytes + 0x601, name, strlen(name) + 1);
		memcpy(g->bytes + 0x620, ".go.buildinfo", 14);
	}
	memcpy(g->bytes + 0x700, d, sizeof(d));
	qsort(g->bytes + 0x800, g->relocations, sizeof(Elf64_Rela), go_rela_cmp);
}

/* Fills in g->bytes. The caller sets the fields above `relocations`. */
static inline void gotable_make(struct gotable *g)
{
	static const uint32_t magics[GO_KINDS] = { 0xfffffffb, 0xfffffffb, 0xfffffffb, 0xfffffffb,
						   0xfffffffa, 0xfffffff0, 0xfffffff1, 0xfffffff1 };

	memset(g->bytes, 0, sizeof(g->bytes));
	g->relocations = 0;
	g->at = GO_TABLE;
	go_u32(g, magics[g->kind]);
	go_put(g, (const uint8_t[]){ 0, 0, 1, 8 }, 4);
	if (g->kind < GO_1_16)
		go_old(g);
	else
		go_new(g);
	if (g->kind >= GO_1_9)
		go_tree(g);
	go_headers(g);
}

#endif
