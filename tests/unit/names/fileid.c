/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of files for backends. test_otlp_live.py compares them with those of other tools. */
#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/names/elf/fileid.h"

static struct fileid read_file(const char *path, struct symfile **ret_file)
{
	struct fileid id;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	cr_assert_eq(symfile_open(fd, ret_file), 0);
	fileid_read(*ret_file, &id);
	cr_assert(fileid_is_sane(&id));
	return id;
}

Test(fileid, offsets_get_the_addresses_that_the_program_headers_say)
{
	struct symfile *f;
	const struct fileid id = read_file("tests/data/cfi/ordinary", &f);
	unsigned known = 0;

	cr_assert_gt(id.segment_count, 0);
	for (uint64_t offset = 0; offset < symfile_size(f); offset += 7) {
		uint64_t address = 0, expected = 1;

		if (!fileid_address(&id, offset, &address))
			continue;
		known++;
		cr_assert_eq(symfile_address(f, offset, &expected), 0);
		cr_assert_eq(address, expected);
	}
	cr_expect_gt(known, 10);
	cr_expect(!fileid_address(&id, UINT64_MAX, &(uint64_t){ 0 }));
	symfile_free(f);
}

Test(fileid, the_hash_is_of_head_tail_and_length)
{
	static const uint8_t expected[FILEID_HTLHASH] = { 0x03, 0x2b, 0x1e, 0x90, 0xe1, 0x96,
							  0x3c, 0x92, 0xb0, 0x2d, 0x01, 0xf7,
							  0x37, 0x1d, 0xf0, 0x78 };
	struct symfile *f;
	const struct fileid id = read_file("tests/data/cfi/ordinary", &f);

	cr_assert_eq(id.htlhash_len, FILEID_HTLHASH);
	cr_expect_arr_eq(id.htlhash, expected, sizeof(expected));
	cr_expect_eq(id.go_len, 0);
	symfile_free(f);
}

Test(fileid, of_a_short_file_head_and_tail_are_the_whole)
{
	/* An ELF header alone: its hash is that of the header, twice, and the length. */
	static uint8_t bytes[64] = { 0x7f, 'E', 'L', 'F', 2, 1, 1, [16] = 3, [18] = 62 };
	static const uint8_t expected[FILEID_HTLHASH] = { 0x79, 0xc9, 0x2e, 0x57, 0xc5, 0xab,
							  0xef, 0x3c, 0x0c, 0xf9, 0x42, 0x69,
							  0x5b, 0xb8, 0xe6, 0x6a };
	struct symfile *f;
	struct fileid id;

	cr_assert_eq(symfile_open_bytes((struct span){ .data = bytes, .len = sizeof(bytes) }, &f),
		     0);
	fileid_read(f, &id);
	cr_assert_eq(id.htlhash_len, FILEID_HTLHASH);
	cr_expect_arr_eq(id.htlhash, expected, sizeof(expected));
	cr_expect_eq(id.gnu_len + id.go_len + id.segment_count, 0);
	symfile_free(f);
}

Test(fileid, lengths_beyond_the_arrays_are_refused)
{
	const struct fileid ids[] = { { .gnu_len = SYMFILE_BUILD_ID + 1 },
				      { .go_len = SYMFILE_GO_BUILD_ID + 1 },
				      { .htlhash_len = FILEID_HTLHASH - 1 },
				      { .segment_count = FILEID_SEGMENTS + 1 } };

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		cr_expect(!fileid_is_sane(&ids[i]));
}

#define SIZE 10000u

/* An ELF file of this size with this many executable segments, whose last byte is 1. */
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

static struct fileid id_of(size_t size, unsigned segments, size_t changed)
{
	static uint8_t bytes[SIZE];
	struct fileid l;

	memset(bytes, 0, sizeof(bytes));
	bytes[changed] = 1;
	struct symfile *f = file_of(bytes, size, segments);

	fileid_read(f, &l);
	symfile_free(f);
	cr_assert(fileid_is_sane(&l));
	return l;
}

static bool same_hash(size_t size, size_t changed)
{
	const struct fileid a = id_of(size, 0, size - 1), b = id_of(size, 0, changed);

	cr_assert(a.htlhash_len == FILEID_HTLHASH && b.htlhash_len == FILEID_HTLHASH);
	return memcmp(a.htlhash, b.htlhash, sizeof(a.htlhash)) == 0;
}

Test(fileid, the_hash_covers_both_ends_and_the_length)
{
	cr_expect(!same_hash(SIZE, 4095));
	cr_expect(same_hash(SIZE, 4096));
	cr_expect(same_hash(SIZE, SIZE - 4097));
	cr_expect(!same_hash(SIZE, SIZE - 4096));
	cr_expect(!same_hash(100, 70), "a file that is smaller than either end");

	const struct fileid a = id_of(9000, 0, 8999), b = id_of(9001, 0, 9000);

	cr_expect(memcmp(a.htlhash, b.htlhash, sizeof(a.htlhash)), "both have the same ends");
	cr_expect(a.size == 9000 && b.size == 9001);
}

Test(fileid, executable_segments_are_told_and_there_are_not_too_many)
{
	struct fileid l = id_of(SIZE, 5, SIZE - 1);

	cr_assert_eq(l.segment_count, 3);
	cr_expect_arr_eq(&l.segments[3], ((uint64_t[]){ 2, 16, 0x2000 }), 3 * sizeof(uint64_t));
	l = id_of(SIZE, 4 * FILEID_SEGMENTS, SIZE - 1);
	cr_assert_eq(l.segment_count, FILEID_SEGMENTS);
}

Test(fileid, a_file_that_cannot_be_read_has_no_hash)
{
	static uint8_t bytes[SIZE];
	FILE *t = tmpfile();
	struct fileid l;
	struct symfile *f = file_of(bytes, SIZE, 1);

	symfile_free(f);
	cr_assert(t && fwrite(bytes, SIZE, 1, t) == 1 && fflush(t) == 0);
	cr_assert_eq(symfile_open(dup(fileno(t)), &f), 0);
	cr_assert_eq(ftruncate(fileno(t), SIZE / 2), 0);
	fileid_read(f, &l);
	cr_assert(l.htlhash_len == 0 && l.segment_count == 1);
	symfile_free(f);
	fclose(t);
}
