/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: the index of a DWARF package, in an ELF file with no other section. Looks up a unit by
 * each id in the table, and by one that may be missing. A lookup takes bounded time, and touches
 * only slices that units have a part of.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include "common/names/dwarf/dwarfpackage.h"
#include "tests/fuzz/must.h"

#define SLOTS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char names[] = "\0.debug_cu_index\0.shstrtab";

struct file {
	Elf64_Ehdr head;
	Elf64_Shdr sections[3];
	char names[sizeof(names)];
};

static struct span make(const uint8_t *data, size_t size)
{
	struct file *f = malloc(sizeof(*f) + size);

	must(f != NULL);
	*f = (struct file){
		.head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = ET_REL,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_shoff = offsetof(struct file, sections),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 3,
			  .e_shstrndx = 2 },
		.sections = { [1] = { .sh_name = 1,
				      .sh_type = SHT_PROGBITS,
				      .sh_offset = sizeof(*f),
				      .sh_size = size },
			      [2] = { .sh_name = 17,
				      .sh_type = SHT_STRTAB,
				      .sh_offset = offsetof(struct file, names),
				      .sh_size = sizeof(names) } },
	};
	memcpy(f->names, names, sizeof(names));
	if (size)
		memcpy(f + 1, data, size);
	return (struct span){ .data = (const uint8_t *)f, .len = sizeof(*f) + size };
}

static void find(const struct symfile *f, uint64_t id)
{
	static const bool parted[DWARFIMAGE_SECTIONS] = {
		[DWARFIMAGE_INFO] = true,     [DWARFIMAGE_ABBREV] = true,
		[DWARFIMAGE_LINE] = true,     [DWARFIMAGE_STR_OFFSETS] = true,
		[DWARFIMAGE_RNGLISTS] = true,
	};
	struct dwarfimage_slice s[DWARFIMAGE_SECTIONS];

	for (size_t i = 0; i < DWARFIMAGE_SECTIONS; i++)
		s[i] = (struct dwarfimage_slice){ .file = f, .from = 77, .size = UINT64_MAX };
	const int r = dwarfpackage_find(f, id, s);

	must(r == 0 || r == SYMFILE_NONE || r == SYMFILE_MALFORMED);
	for (size_t i = 0; i < DWARFIMAGE_SECTIONS; i++) {
		must(s[i].file == f && !s[i].split);
		if (r || !parted[i])
			must(s[i].from == 77 && s[i].size == UINT64_MAX);
		else
			must(s[i].from <= UINT32_MAX && s[i].size <= UINT32_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct span bytes = make(data, size);
	struct symfile *f;

	must(symfile_open_bytes(bytes, &f) == 0);
	/* The ids follow a header of 16 bytes. */
	for (size_t i = 0; i < SLOTS && 16 + 8 * i + 8 <= size; i++) {
		uint64_t id;

		memcpy(&id, data + 16 + 8 * i, sizeof(id));
		find(f, id);
	}
	find(f, 0x123456789);
	symfile_free(f);
	free((void *)bytes.data);
	return 0;
}
