/* SPDX-License-Identifier: Apache-2.0 */
/* What identifies a file for backends. test_otlp_live.py compares it with others' tools. */
#include <criterion/criterion.h>
#include <fcntl.h>
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
				      { .go_len = FILEID_GO + 1 },
				      { .htlhash_len = FILEID_HTLHASH + 1 },
				      { .segment_count = FILEID_SEGMENTS + 1 } };

	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		cr_expect(!fileid_is_sane(&ids[i]));
}
