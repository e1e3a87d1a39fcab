/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small handmade program with builtins like V8's (common/names/runtime/v8/builtins.h).
 * Addresses are file offsets plus V8BLOB_BASE.
 *
 *   0x0000 headers; 0x1000 the code; 0x6000 constants: names, then the layout; 0xa000 the metadata
 *
 * Builtin 0 is DeoptimizationEntry_Eager, V8BLOB_ENTRY the interpreter's entry, and those from
 * V8BLOB_HANDLERS on are handlers. Others are called Name<number>. Each has 40 bytes.
 */
#ifndef TESTS_UNIT_V8BLOB_H
#define TESTS_UNIT_V8BLOB_H

#include <elf.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define V8BLOB_BASE 0x400000u
#define V8BLOB_COUNT 260u
#define V8BLOB_ENTRY 7u
#define V8BLOB_HANDLERS 250u
#define V8BLOB_SIZE 0xc000u
#define V8BLOB_CODE 0x1040u
#define V8BLOB_NAMES 0x6000u
#define V8BLOB_LAYOUT 0x7800u /* and 24 bytes of hashes before it */
#define V8BLOB_METADATA 0xa040u
#define V8BLOB_ROOM 64u /* from one builtin to the next */
#define V8BLOB_BYTES 40u

struct v8blob {
	uint8_t bytes[V8BLOB_SIZE];
	uint32_t name[V8BLOB_COUNT + 1]; /* file offsets */
};

static inline void v8blob_put(struct v8blob *b, uint32_t at, uint64_t v, unsigned bytes)
{
	memcpy(b->bytes + at, &v, bytes);
}

static inline void v8blob_names(struct v8blob *b)
{
	uint32_t at = V8BLOB_NAMES + 1;

	for (uint32_t i = 0; i < V8BLOB_COUNT; i++) {
		char name[64];
		const unsigned handler = i - V8BLOB_HANDLERS;

		snprintf(name, sizeof(name), "Name%u", i);
		if (i >= V8BLOB_HANDLERS)
			snprintf(name, sizeof(name), handler ? "Op%uHandler" : "WideHandler",
				 handler);
		if (i == 0)
			strcpy(name, "DeoptimizationEntry_Eager");
		if (i == V8BLOB_ENTRY)
			strcpy(name, "InterpreterEntryTrampoline");
		b->name[i] = at;
		strcpy((char *)b->bytes + at, name);
		at += (uint32_t)strlen(name) + 1;
	}
	b->name[V8BLOB_COUNT] = at; /* of no builtin */
	strcpy((char *)b->bytes + at, "other");
}

static inline void v8blob_entry(struct v8blob *b, uint32_t i, uint64_t name, uint64_t kind)
{
	const uint32_t at = V8BLOB_METADATA + i * 24;

	v8blob_put(b, at, name, 8);
	v8blob_put(b, at + 8, kind, 8);
	v8blob_put(b, at + 16, 0, 8);
}

static inline void v8blob_section(struct v8blob *b, uint32_t i, const char *name, uint32_t type,
				  uint64_t flags, uint32_t from, uint32_t to)
{
	Elf64_Ehdr *e = (Elf64_Ehdr *)b->bytes;
	Elf64_Shdr *s = (Elf64_Shdr *)(b->bytes + e->e_shoff) + i;
	const uint32_t at = 0x800 + i * 16;

	strcpy((char *)b->bytes + at, name);
	*s = (Elf64_Shdr){ .sh_name = at - 0x800,
			   .sh_type = type,
			   .sh_flags = flags,
			   .sh_addr = type == SHT_STRTAB ? 0 : V8BLOB_BASE + from,
			   .sh_offset = from,
			   .sh_size = to - from,
			   .sh_addralign = 8 };
}

/* stride: bytes of an entry of the layout. */
static inline void v8blob_make(struct v8blob *b, uint32_t stride)
{
	memset(b, 0, sizeof(*b));

	Elf64_Ehdr *e = (Elf64_Ehdr *)b->bytes;
	Elf64_Phdr *p = (Elf64_Phdr *)(b->bytes + sizeof(*e));

	*e = (Elf64_Ehdr){ .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
					EV_CURRENT },
			   .e_type = ET_EXEC,
			   .e_machine = EM_X86_64,
			   .e_version = EV_CURRENT,
			   .e_phoff = sizeof(*e),
			   .e_shoff = 0x400,
			   .e_ehsize = sizeof(*e),
			   .e_phentsize = sizeof(*p),
			   .e_phnum = 1,
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 5,
			   .e_shstrndx = 4 };
	*p = (Elf64_Phdr){ .p_type = PT_LOAD,
			   .p_flags = PF_R | PF_X,
			   .p_vaddr = V8BLOB_BASE,
			   .p_filesz = V8BLOB_SIZE,
			   .p_memsz = V8BLOB_SIZE };
	v8blob_section(b, 1, ".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1000,
		       V8BLOB_NAMES);
	v8blob_section(b, 2, ".rodata", SHT_PROGBITS, SHF_ALLOC, V8BLOB_NAMES, 0xa000);
	v8blob_section(b, 3, ".data.rel.ro", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0xa000,
		       V8BLOB_SIZE);
	v8blob_section(b, 4, ".shstrtab", SHT_STRTAB, 0, 0x800, 0x900);

	memset(b->bytes + V8BLOB_CODE, 0xcc, V8BLOB_COUNT * V8BLOB_ROOM);
	v8blob_names(b);
	for (uint32_t i = 0; i < V8BLOB_COUNT; i++) {
		memset(b->bytes + V8BLOB_CODE + i * V8BLOB_ROOM, 0x90, V8BLOB_BYTES);
		v8blob_put(b, V8BLOB_LAYOUT + i * stride, i * V8BLOB_ROOM, 4);
		v8blob_put(b, V8BLOB_LAYOUT + i * stride + 4, V8BLOB_BYTES, 4);
		v8blob_entry(b, i, V8BLOB_BASE + b->name[i], i % 7);
	}
	/* No builtin can begin here. */
	v8blob_put(b, V8BLOB_LAYOUT + V8BLOB_COUNT * stride, 1, 4);
}

#endif
