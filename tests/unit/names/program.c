/* SPDX-License-Identifier: Apache-2.0 */
/* Names that a worker found with libdw, and the additional files that libdw wants. */
#include <elf.h>
#include <errno.h>
#include <sys/mman.h>
#include "tests/unit/program_fixture.h"

Test(program, names_are_those_that_libdw_found)
{
	struct symfile *f = self();
	struct program *d;

	start();
	cr_assert_eq(open_self(f, 2 * MAX, &d), 0);
	cr_assert_eq(program_lookup(d, NAME, &names), SYMFILE_NONE);
	cr_assert(program_dwarf_too_large(d) && !program_dwarf_lost(d));
	program_free(d);
	cr_assert_eq(open_self(f, MAX, &d), 0);
	cr_assert_eq(program_lookup(d, NOTHING, &names), SYMFILE_NONE);
	expect_names(d, "outer");
	cr_assert(program_rest(d, true) && !program_rest(d, false));
	cr_assert_eq(program_lookup(d, MANY, &names), 0);
	cr_assert_eq(names.count, NAMES_MAX);
	cr_assert_eq(names.calls[NAMES_MAX - 1].system_name.len, NAMES_TEXT);
	program_free(d);
	symfile_free(f);
}

static void expect_want(struct program *d, enum program_want want)
{
	struct span id;
	const char *name;

	cr_assert_eq(program_lookup(d, WANT, &names), VERDICT_AGAIN);
	cr_assert_eq(names.count, 0);
	cr_assert_eq(program_wants(d, &id, &name), want);
	if (want == PROGRAM_WANTS_ALT) {
		cr_assert_eq(id.len, 8);
		cr_assert_arr_eq(id.data, "\x01\x23\x45\x67\x89\xab\xcd\xef", 8);
	}
	cr_assert_str_eq(name, "/a/b.dwo");
}

/* An ELF file with a section of that name alone. */
static int file_with(const char *section)
{
	struct {
		Elf64_Ehdr head;
		Elf64_Shdr sections[2];
		char names[32];
	} f = {
		.head = { .e_ident = ELFMAG,
			  .e_type = ET_REL,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_shoff = sizeof(Elf64_Ehdr),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 2,
			  .e_shstrndx = 1 },
		.sections = { [1] = { .sh_name = 1,
				      .sh_type = SHT_STRTAB,
				      .sh_offset = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Shdr),
				      .sh_size = 32 } },
	};
	const int fd = memfd_create("file", MFD_CLOEXEC);

	f.head.e_ident[EI_CLASS] = ELFCLASS64;
	f.head.e_ident[EI_DATA] = ELFDATA2LSB;
	f.head.e_ident[EI_VERSION] = EV_CURRENT;
	snprintf(f.names + 1, sizeof(f.names) - 1, "%s", section);
	cr_assert_eq(write(fd, &f, sizeof(f)), sizeof(f));
	return fd;
}

Test(program, a_lookup_goes_on_with_the_file_that_it_wanted)
{
	struct symfile *f = self();
	struct program *d;
	struct span id;
	const char *name;

	start();
	cr_assert_eq(open_self(f, MAX, &d), 0);
	expect_want(d, PROGRAM_WANTS_ALT);
	cr_assert(!program_offer(d, -1));
	cr_assert_eq(program_wants(d, &id, &name), PROGRAM_WANTS_NOTHING);
	expect_want(d, PROGRAM_WANTS_NAME);
	cr_assert(program_offer(d, file_with(".debug_info.dwo")));
	cr_assert_eq(program_lookup(d, WANT, &names), 0);
	cr_assert(str_eq(names.calls[1].name, STR_LIT("offered")));
	program_free(d);
	symfile_free(f);
}

Test(program, a_worker_is_handed_no_other_file_than_a_split_one)
{
	struct symfile *f = self();
	struct program *d;

	start();
	cr_assert_eq(open_self(f, MAX, &d), 0);
	expect_want(d, PROGRAM_WANTS_ALT);
	cr_assert(!program_offer(d, file_with(".debug_info")));
	cr_assert(!program_offer(d, -1));
	expect_want(d, PROGRAM_WANTS_NAME);
	cr_assert(!program_offer(d, open("/etc/passwd", O_RDONLY | O_CLOEXEC)));
	cr_assert(!program_offer(d, -1));
	cr_assert_eq(program_lookup(d, WANT, &names), 0);
	cr_assert(str_eq(names.calls[1].name, STR_LIT("outer")));
	program_free(d);
	symfile_free(f);
}

Test(program, a_wrong_file_is_wanted_again_from_elsewhere)
{
	struct symfile *f = self();
	struct program *d;
	struct span id;
	const char *name;

	start();
	cr_assert_eq(open_self(f, MAX, &d), 0);
	/* Not forever. */
	expect_want(d, PROGRAM_WANTS_ALT);
	for (unsigned i = 0; program_wants(d, &id, &name) != PROGRAM_WANTS_NOTHING; i++) {
		cr_assert(i < 64);
		cr_assert(!program_offer(d, file_with(".debug_info")));
	}
	expect_want(d, PROGRAM_WANTS_NAME);
	for (unsigned wrong = 0; wrong < 3; wrong++) {
		cr_assert_eq(program_refused(d), wrong);
		cr_assert(!program_offer(d, file_with(".debug_info")));
		cr_assert_eq(program_wants(d, &id, &name), PROGRAM_WANTS_NAME);
	}
	cr_assert(program_offer(d, file_with(".debug_info.dwo")));
	cr_assert_eq(program_refused(d), 0);
	cr_assert_eq(program_lookup(d, WANT, &names), 0);
	cr_assert(str_eq(names.calls[1].name, STR_LIT("offered")));
	program_free(d);
	symfile_free(f);
}

Test(program, a_program_that_was_given_up_wants_nothing)
{
	struct symfile *f = self();
	struct program *d;

	start();
	cr_assert_eq(open_self(f, MAX, &d), 0);
	expect_want(d, PROGRAM_WANTS_ALT);
	program_give_up(d);
	cr_assert_eq(program_lookup(d, WANT, &names), 0);
	cr_assert(str_eq(names.calls[1].name, STR_LIT("outer")));
	expect_names(d, "outer");
	program_free(d);
	symfile_free(f);
}

Test(program, a_worker_with_endless_wants_loses_its_file)
{
	struct symfile *f = self();
	struct program *d;
	unsigned asked = 0;

	start();
	cr_assert_eq(open_self(f, MAX, &d), 0);
	while (program_lookup(d, WANT_NO_END, &names) == VERDICT_AGAIN) {
		cr_assert_lt(asked++, 100);
		program_offer(d, -1);
	}
	cr_assert(program_dwarf_lost(d));
	program_free(d);
	symfile_free(f);
}

Test(program, a_want_that_none_can_be_costs_its_file)
{
	costs_its_file_only(WANT_ODDLY);
}

Test(program, without_a_keeper_libdw_runs_here)
{
	struct symfile *f = self();
	struct program *d;

	cr_assert_eq(open_self(f, MAX, &d), 0);
	expect_names(d, "outer");
	program_free(d);
	symfile_free(f);
}
