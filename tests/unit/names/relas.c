/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/elf/relas.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

static struct relas r;
static struct symfile *file;
static int fd;

static void begin(const char *path)
{
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(symfile_open(fd, &file), 0, "%s", path);
}

static void end(void)
{
	relas_done(&r);
	symfile_free(file);
	close(fd);
}

static int count(void *ctx, const Elf64_Rela *rela)
{
	uint64_t *n = ctx;

	(void)rela;
	++*n;
	return 0;
}

static int is_it(void *ctx, const Elf64_Rela *rela)
{
	return memcmp(ctx, rela, sizeof(*rela)) == 0;
}

/* Checks that the relocations of a section are found by their addresses. Returns their number. */
static uint64_t check(Elf *e, const char *name)
{
	size_t names = 0;
	uint64_t n = 0;

	elf_getshdrstrndx(e, &names);
	for (Elf_Scn *s = NULL; (s = elf_nextscn(e, s));) {
		GElf_Shdr h;

		gelf_getshdr(s, &h);
		if (strcmp(elf_strptr(e, names, h.sh_name), name) != 0)
			continue;
		Elf_Data *d = elf_getdata(s, NULL);
		const uint64_t all = h.sh_size / h.sh_entsize;

		for (uint64_t i = 0; i < all; i += 1 + all / 2000) {
			GElf_Rela rela;

			gelf_getrela(d, (int)i, &rela);
			cr_assert_eq(relas_within(&r, file, rela.r_offset, rela.r_offset + 1, is_it,
						  &rela),
				     1, "%s %" PRIu64, name, i);
		}
		n += all;
	}
	return n;
}

static const char *const paths[] = { "/proc/self/exe", "/usr/bin/python3",
				     "/lib/x86_64-linux-gnu/libc.so.6",
				     "/lib/x86_64-linux-gnu/libstdc++.so.6" };

/* libelf is the oracle. The files have sorted relocations, then some that are not, then those of
 * the PLT. */
Test(relas, all_are_found_by_their_addresses)
{
	elf_version(EV_CURRENT);
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		uint64_t n = 0;

		begin(paths[i]);
		Elf *e = elf_begin(fd, ELF_C_READ, NULL);
		const uint64_t expected = check(e, ".rela.dyn") + check(e, ".rela.plt");

		cr_assert_eq(relas_all(&r, file, count, &n), 0);
		cr_expect_eq(n, expected, "%s: %" PRIu64 " of %" PRIu64, paths[i], n, expected);
		cr_expect_gt(n, 0u);
		cr_expect(r.sorted && r.rest_count);
		elf_end(e);
		end();
	}
}

Test(relas, between_relocations_there_is_none)
{
	uint64_t n = 0;

	begin("/lib/x86_64-linux-gnu/libc.so.6");
	cr_assert_eq(relas_within(&r, file, 0, 16, count, &n), 0);
	cr_assert_eq(relas_within(&r, file, UINT64_MAX - 8, UINT64_MAX, count, &n), 0);
	cr_expect_eq(n, 0u);
	end();
}

/* --- a file that changes --- */

#define MANY 5000u
#define STEP 16u

static struct {
	Elf64_Ehdr head;
	Elf64_Shdr sections[3];
	char names[32];
	Elf64_Rela relas[MANY];
} image;

static void make_image(void)
{
	static const char names[] = "\0.rela.dyn\0.shstrtab";

	memset(&image, 0, sizeof(image));
	memcpy(image.head.e_ident, ELFMAG, SELFMAG);
	image.head.e_ident[EI_CLASS] = ELFCLASS64;
	image.head.e_ident[EI_DATA] = ELFDATA2LSB;
	image.head.e_ident[EI_VERSION] = image.head.e_version = EV_CURRENT;
	image.head.e_type = ET_DYN;
	image.head.e_machine = EM_X86_64;
	image.head.e_ehsize = sizeof(Elf64_Ehdr);
	image.head.e_shoff = offsetof(typeof(image), sections);
	image.head.e_shentsize = sizeof(Elf64_Shdr);
	image.head.e_shnum = 3;
	image.head.e_shstrndx = 2;
	image.sections[1] = (Elf64_Shdr){ .sh_name = 1,
					  .sh_type = SHT_RELA,
					  .sh_offset = offsetof(typeof(image), relas),
					  .sh_size = sizeof(image.relas),
					  .sh_entsize = sizeof(Elf64_Rela) };
	image.sections[2] = (Elf64_Shdr){ .sh_name = 11,
					  .sh_type = SHT_STRTAB,
					  .sh_offset = offsetof(typeof(image), names),
					  .sh_size = sizeof(names) };
	memcpy(image.names, names, sizeof(names));
	for (uint64_t i = 0; i < MANY; i++)
		image.relas[i].r_offset = i * STEP;
}

struct range {
	uint64_t from, to, found;
};

static int is_inside(void *ctx, const Elf64_Rela *rela)
{
	struct range *x = ctx;

	x->found++;
	return rela->r_offset < x->from || rela->r_offset >= x->to;
}

/* Returns how many relocations there are from `from` on in `bytes` bytes, all of them inside. */
static uint64_t inside(uint64_t from, uint64_t bytes)
{
	struct range x = { .from = from, .to = from + bytes };

	cr_assert_eq(relas_within(&r, file, x.from, x.to, is_inside, &x), 0, "%" PRIu64, from);
	return x.found;
}

/* Its owner may rewrite a file after it was found to be sorted. */
Test(relas, none_is_outside_though_the_file_changes)
{
	unsigned seed = 1;

	make_image();
	cr_assert_eq(
		symfile_open_bytes(
			(struct span){ .data = (const void *)&image, .len = sizeof(image) }, &file),
		0);
	for (uint64_t i = 0; i < MANY; i += 7)
		cr_assert_eq(inside(i * STEP, 4 * STEP), MANY - i < 4 ? MANY - i : 4u);
	cr_assert_eq(r.sorted, MANY);
	for (int turn = 0; turn < 20000; turn++) {
		Elf64_Rela *x = &image.relas[(unsigned)rand_r(&seed) % MANY];

		x->r_offset = (unsigned)rand_r(&seed) % (MANY * STEP);
		(void)inside((unsigned)rand_r(&seed) % (MANY * STEP), 64u * STEP);
	}
	relas_done(&r);
	symfile_free(file);
}
