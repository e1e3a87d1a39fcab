/* SPDX-License-Identifier: Apache-2.0 */
/* Labels of files. tests/e2e/test_labels.py compares those of real programs with other readers. */
#include <criterion/criterion.h>
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/names/elf/filelabels.h"

#define SIZE 10000u

/* An ELF file of this size with so many executable segments, whose last byte is 1. */
static struct symfile *file_of(uint8_t bytes[static SIZE], size_t size, unsigned segments)
{
	Elf64_Ehdr e = { .e_type = ET_DYN,
			 .e_machine = EM_X86_64,
			 .e_phoff = sizeof(e),
			 .e_phnum = (Elf64_Half)segments,
			 .e_phentsize = sizeof(Elf64_Phdr) };
	struct symfile *f;

	memcpy(e.e_ident, ELFMAG, SELFMAG);
	e.e_ident[EI_CLASS] = ELFCLASS64;
	e.e_ident[EI_DATA] = ELFDATA2LSB;
	memcpy(bytes, &e, sizeof(e));
	for (unsigned i = 0; i < segments; i++) {
		const Elf64_Phdr p = { .p_type = PT_LOAD,
				       .p_flags = i % 2 ? PF_R : PF_R | PF_X,
				       .p_offset = i,
				       .p_vaddr = 0x1000ull * i,
				       .p_filesz = 16 };

		memcpy(bytes + sizeof(e) + i * sizeof(p), &p, sizeof(p));
	}
	bytes[size - 1] = 1;
	cr_assert_eq(symfile_open_bytes((struct span){ .data = bytes, .len = size }, &f), 0);
	return f;
}

static struct filelabels labels_of(size_t size, unsigned segments, size_t changed)
{
	static uint8_t bytes[SIZE];
	struct filelabels l;

	memset(bytes, 0, sizeof(bytes));
	bytes[changed] = 1;
	struct symfile *f = file_of(bytes, size, segments);

	filelabels_read(f, &l);
	symfile_free(f);
	cr_assert(filelabels_are_sane(&l));
	return l;
}

static bool same_hash(size_t size, size_t changed)
{
	const struct filelabels a = labels_of(size, 0, size - 1), b = labels_of(size, 0, changed);

	cr_assert(a.hash_len == FILELABELS_HASH && b.hash_len == FILELABELS_HASH);
	return memcmp(a.hash, b.hash, sizeof(a.hash)) == 0;
}

Test(filelabels, the_hash_covers_both_ends_and_the_length)
{
	cr_expect(!same_hash(SIZE, 4095));
	cr_expect(same_hash(SIZE, 4096));
	cr_expect(same_hash(SIZE, SIZE - 4097));
	cr_expect(!same_hash(SIZE, SIZE - 4096));
	cr_expect(!same_hash(100, 70), "a file that is smaller than either end");

	const struct filelabels a = labels_of(9000, 0, 8999), b = labels_of(9001, 0, 9000);

	cr_expect(memcmp(a.hash, b.hash, sizeof(a.hash)), "both have the same ends");
	cr_expect(a.size == 9000 && b.size == 9001);
}

Test(filelabels, executable_segments_are_told_and_there_are_not_too_many)
{
	struct filelabels l = labels_of(SIZE, 5, SIZE - 1);

	cr_assert_eq(l.segment_count, 3);
	cr_assert(l.segments[1].offset == 2 && l.segments[1].size == 16 &&
		  l.segments[1].address == 0x2000);
	l = labels_of(SIZE, 4 * FILELABELS_SEGMENTS, SIZE - 1);
	cr_assert_eq(l.segment_count, FILELABELS_SEGMENTS);
}

Test(filelabels, a_file_that_cannot_be_read_has_no_hash)
{
	static uint8_t bytes[SIZE];
	FILE *t = tmpfile();
	struct filelabels l;
	struct symfile *f = file_of(bytes, SIZE, 1);

	symfile_free(f);
	cr_assert(t && fwrite(bytes, SIZE, 1, t) == 1 && fflush(t) == 0);
	cr_assert_eq(symfile_open(dup(fileno(t)), &f), 0);
	cr_assert_eq(ftruncate(fileno(t), SIZE / 2), 0);
	filelabels_read(f, &l);
	cr_assert(l.hash_len == 0 && l.segment_count == 1);
	symfile_free(f);
	fclose(t);
}
