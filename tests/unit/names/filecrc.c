/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#include "common/names/elf/filecrc.h"

/* In the tests of this file, only filecrc.c reads with this function. */
static uint64_t bytes_read;

int __real_symfile_read(const struct symfile *f, uint64_t offset, void *into, size_t n);
int __wrap_symfile_read(const struct symfile *f, uint64_t offset, void *into, size_t n);

int __wrap_symfile_read(const struct symfile *f, uint64_t offset, void *into, size_t n)
{
	bytes_read += n;
	return __real_symfile_read(f, offset, into, n);
}

/* An ELF file of this size, with data in some places and holes elsewhere. */
static struct symfile *sparse(uint64_t size, const uint64_t *places, unsigned count)
{
	Elf64_Ehdr e = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB },
			 .e_type = ET_DYN,
			 .e_machine = EM_X86_64 };
	const int fd = memfd_create("debug", MFD_CLOEXEC);
	struct symfile *f;

	cr_assert_geq(fd, 0);
	cr_assert_eq(pwrite(fd, &e, sizeof(e), 0), (ssize_t)sizeof(e));
	for (unsigned i = 0; i < count; i++)
		cr_assert_eq(pwrite(fd, "data", 4, (off_t)places[i]), 4);
	cr_assert_eq(ftruncate(fd, (off_t)size), 0);
	cr_assert_eq(symfile_open(fd, &f), 0);
	return f;
}

static uint32_t read_whole(const struct symfile *f)
{
	static uint8_t chunk[1 << 20];
	uLong crc = crc32(0, NULL, 0);
	ssize_t n;

	for (off_t at = 0; (n = pread(symfile_fd(f), chunk, sizeof(chunk), at)) > 0; at += n)
		crc = crc32(crc, chunk, (uInt)n);
	return (uint32_t)crc;
}

Test(filecrc, is_that_of_the_whole_file_with_its_holes)
{
	const uint64_t places[] = { 100, 1 << 20, (3 << 20) + 4095, (9 << 20) + 7 };
	const uint64_t sizes[] = { 64, 65, 4096, 1000003, 10 << 20, (33 << 20) + 1 };
	uint32_t crc;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct symfile *f = sparse(sizes[i], places, sizes[i] > 9 << 20 ? 4 : 0);

		cr_assert_eq(filecrc_of(f, 1, &crc), 0);
		cr_expect_eq(crc, read_whole(f), "of %llu bytes", (unsigned long long)sizes[i]);
		symfile_free(f);
	}
}

Test(filecrc, of_one_file_is_computed_once)
{
	struct symfile *f = sparse(1 << 20, (uint64_t[]){ 4096, 9000 }, 2), *again;
	uint32_t crc, second;

	cr_assert_eq(filecrc_of(f, 1, &crc), 0);
	const uint64_t once = bytes_read;

	cr_expect_gt(once, 0);
	cr_assert_eq(symfile_open(fcntl(symfile_fd(f), F_DUPFD_CLOEXEC, 3), &again), 0);
	cr_assert_eq(filecrc_of(again, 2, &second), 0);
	cr_expect_eq(second, crc);
	cr_expect_eq(bytes_read, once);
	cr_assert_eq(pwrite(symfile_fd(f), "x", 1, 9000), 1); /* changes its ctime */
	usleep(20000);
	cr_assert_eq(pwrite(symfile_fd(f), "y", 1, 9000), 1);
	cr_assert_eq(filecrc_of(f, 1, &second), 0);
	cr_expect_neq(second, crc);
	symfile_free(again);
	symfile_free(f);
}

/* Reading a file without holes would take long. Its bytes in memory have no holes. */
Test(filecrc, an_owner_has_only_so_much_read)
{
	static uint8_t bytes[64 << 20];
	const Elf64_Ehdr e = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					    ELFDATA2LSB },
			       .e_type = ET_DYN,
			       .e_machine = EM_X86_64 };
	struct symfile *f;
	uint32_t crc;
	unsigned n = 0;

	memcpy(bytes, &e, sizeof(e));
	cr_assert_eq(symfile_open_bytes((struct span){ .data = bytes, .len = sizeof(bytes) }, &f),
		     0);
	while (n < 40 && filecrc_of(f, 1, &crc) == 0)
		n++;
	cr_expect_geq(n, FILECRC_BURST / sizeof(bytes));
	cr_expect_leq(n, FILECRC_BURST / sizeof(bytes) + 4, "it was read %u times", n);
	cr_expect_eq(filecrc_of(f, 1, &crc), SYMFILE_TOO_LARGE);
	cr_expect_eq(filecrc_of(f, 2, &crc), 0, "another owner has its own budget");
	symfile_free(f);
}

Test(filecrc, a_file_that_is_too_large_is_refused)
{
	struct symfile *f = sparse(FILECRC_SIZE + 1, NULL, 0);
	uint32_t crc;

	cr_expect_eq(filecrc_of(f, 1, &crc), SYMFILE_TOO_LARGE);
	cr_expect_eq(bytes_read, 0);
	symfile_free(f);
}
