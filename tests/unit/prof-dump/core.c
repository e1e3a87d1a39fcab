/* SPDX-License-Identifier: Apache-2.0 */
/* Core files made by hand: which parts are found in them, and which files are refused. */
#include <criterion/criterion.h>
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/procfs.h>
#include <sys/user.h>
#include <unistd.h>
#include "tools/prof-dump/process/core.h"

#define CODE 0x400000ull
#define STACK 0x7ff000ull

/* Headers at 0, notes at 0x400, memory from 0x2000 on. */
static uint8_t file[0x4000];
static Elf64_Ehdr *const header = (Elf64_Ehdr *)file;
static Elf64_Phdr *const segment = (Elf64_Phdr *)(file + sizeof(Elf64_Ehdr));
static size_t notes;

static void add_segment(uint32_t type, uint64_t address, uint64_t offset, uint64_t filled,
			uint64_t size, uint32_t flags)
{
	segment[header->e_phnum++] = (Elf64_Phdr){ .p_type = type,
						   .p_vaddr = address,
						   .p_offset = offset,
						   .p_filesz = filled,
						   .p_memsz = size,
						   .p_flags = flags };
}

static void add_note(const char *name, uint32_t type, const void *content, size_t size)
{
	Elf64_Nhdr n = { .n_namesz = (uint32_t)strlen(name) + 1,
			 .n_descsz = (uint32_t)size,
			 .n_type = type };
	uint8_t *at = file + 0x400 + notes;

	memcpy(at, &n, sizeof(n));
	memcpy(at + sizeof(n), name, n.n_namesz);
	memcpy(at + sizeof(n) + ((n.n_namesz + 3) & ~3u), content, size);
	notes += sizeof(n) + ((n.n_namesz + 3) & ~3u) + ((size + 3) & ~(size_t)3);
	segment[0].p_filesz = notes;
}

static void add_thread(int tid, uint64_t pc)
{
	struct elf_prstatus st = { .pr_pid = tid };
	struct user_regs_struct r = { .rip = pc,
				      .rsp = STACK + 16,
				      .rbx = 3,
				      .r15 = 15,
				      .fs_base = 0x1234,
				      .orig_rax = tid == 1 ? ~0ull : 0 };

	memcpy(st.pr_reg, &r, sizeof(r));
	add_note("CORE", NT_PRSTATUS, &st, sizeof(st));
}

/* Makes two threads, code of a file that is not in the core, and a stack. */
static void make(void)
{
	static const uint64_t auxv[] = { AT_SYSINFO_EHDR, 0x7fff0000, AT_NULL, 0 };
	struct {
		uint64_t n[2], map[2][3];
		char paths[16];
	} files = { { 2, 4096 },
		    { { CODE, CODE + 0x1000, 0 }, { CODE + 0x1000, CODE + 0x3000, 1 } },
		    "/bin/a\0/bin/b" };

	memset(file, 0, sizeof(file));
	notes = 0;
	memcpy(header->e_ident, ELFMAG, SELFMAG);
	header->e_ident[EI_CLASS] = ELFCLASS64;
	header->e_ident[EI_DATA] = ELFDATA2LSB;
	header->e_type = ET_CORE;
	header->e_machine = EM_X86_64;
	header->e_phoff = sizeof(*header);
	header->e_phentsize = sizeof(segment[0]);
	add_segment(PT_NOTE, 0, 0x400, 0, 0, 0);
	add_segment(PT_LOAD, STACK, 0x2000, 0x1000, 0x1000, PF_R | PF_W);
	add_segment(PT_LOAD, CODE + 0x1000, 0x3000, 0, 0x2000, PF_R | PF_X);
	add_segment(PT_LOAD, CODE, 0x3000, 0x1000, 0x1000, PF_R);
	add_thread(1, CODE + 0x1004);
	add_thread(2, CODE + 0x1008);
	add_note("CORE", NT_FILE, &files, sizeof(files));
	add_note("CORE", NT_AUXV, auxv, sizeof(auxv));
}

static int opened(size_t size, struct core **ret)
{
	int fd = memfd_create("core", MFD_CLOEXEC);

	cr_assert(fd >= 0 && write(fd, file, size) == (ssize_t)size);
	int r = core_open(fd, ret);

	if (r)
		close(fd);
	return r;
}

static struct core *open_it(void)
{
	struct core *c = NULL;

	cr_assert_eq(opened(sizeof(file), &c), 0);
	return c;
}

Test(core, threads_come_in_their_order_with_their_registers)
{
	make();
	struct core *c = open_it();

	cr_assert_eq(c->thread_count, 2);
	cr_assert_eq(c->threads[0].tid, 1);
	cr_assert_eq(c->threads[0].pc, CODE + 0x1004);
	cr_assert_eq(c->threads[0].regs[7], STACK + 16);
	cr_assert_eq(c->threads[0].regs[3], 3);
	cr_assert_eq(c->threads[0].regs[15], 15);
	cr_assert_eq(c->threads[0].tls, 0x1234);
	cr_assert(!c->threads[0].in_syscall && c->threads[1].in_syscall);
	cr_assert_eq(c->vdso, 0x7fff0000);
	core_free(c);
}

Test(core, ranges_and_files_are_found_by_address)
{
	make();
	struct core *c = open_it();

	cr_assert_eq(c->range_count, 3);
	cr_assert(core_range_at(c, CODE + 0x1fff)->executable);
	cr_assert_not(core_range_at(c, CODE)->executable);
	cr_assert_null(core_range_at(c, CODE - 1));
	cr_assert_null(core_range_at(c, CODE + 0x3000));
	cr_assert_str_eq(core_file_at(c, CODE + 0x1000)->path, "/bin/b");
	cr_assert_eq(core_file_at(c, CODE + 0x1000)->offset, 0x1000);
	cr_assert_null(core_file_at(c, CODE + 0x3000));
	core_free(c);
}

Test(core, only_memory_in_the_core_is_read)
{
	uint64_t word = 0;

	make();
	memcpy(file + 0x2010, &(uint64_t){ 0xabcd }, 8);
	struct core *c = open_it();

	cr_assert_eq(core_read(c, &word, 8, STACK + 0x10), 0);
	cr_assert_eq(word, 0xabcd);
	cr_assert_neq(core_read(c, &word, 8, STACK + 0xffc), 0);
	cr_assert_neq(core_read(c, &word, 8, CODE + 0x1000), 0);
	core_free(c);
}

Test(core, a_read_may_span_adjacent_ranges)
{
	uint64_t word = 0;

	make();
	segment[2].p_filesz = 0x1000;
	segment[2].p_offset = 0x2000;
	memset(file + 0x3ffc, 1, 4);
	memset(file + 0x2000, 2, 4);
	struct core *c = open_it();

	cr_assert_eq(core_read(c, &word, 8, CODE + 0xffc), 0);
	cr_assert_eq(word, 0x0202020201010101);
	core_free(c);
}

Test(core, a_build_id_is_read_from_a_files_first_page)
{
	static const uint8_t id[4] = { 1, 2, 3, 4 };
	uint8_t got[CORE_BUILD_ID];

	make();
	Elf64_Ehdr *e = (Elf64_Ehdr *)(file + 0x3000);
	Elf64_Phdr *p = (Elf64_Phdr *)(e + 1);
	Elf64_Nhdr n = { .n_namesz = 4, .n_descsz = sizeof(id), .n_type = NT_GNU_BUILD_ID };

	memcpy(e->e_ident, ELFMAG, SELFMAG);
	e->e_phoff = sizeof(*e);
	e->e_phentsize = sizeof(*p);
	e->e_phnum = 2;
	p[0] = (Elf64_Phdr){ .p_type = PT_LOAD, .p_vaddr = 0x10000 };
	p[1] = (Elf64_Phdr){ .p_type = PT_NOTE, .p_vaddr = 0x10200, .p_filesz = 20 };
	memcpy(file + 0x3200, &n, sizeof(n));
	memcpy(file + 0x3200 + sizeof(n), "GNU", 4);
	memcpy(file + 0x3200 + sizeof(n) + 4, id, sizeof(id));
	struct core *c = open_it();

	cr_assert_eq(core_build_id(c, CODE, got), sizeof(id));
	cr_assert_arr_eq(got, id, sizeof(id));
	cr_assert_eq(core_build_id(c, STACK, got), 0);
	core_free(c);
}

Test(core, the_number_of_headers_may_stand_in_a_section)
{
	make();
	Elf64_Shdr s = { .sh_info = header->e_phnum };

	header->e_phnum = PN_XNUM;
	header->e_shoff = 0x3800;
	memcpy(file + 0x3800, &s, sizeof(s));
	struct core *c = open_it();

	cr_assert_eq(c->range_count, 3);
	core_free(c);
}

Test(core, a_truncated_core_is_detected)
{
	struct core *c = NULL;
	uint64_t word;

	make();
	cr_assert_eq(opened(0x2800, &c), 0);
	cr_assert_eq(c->size, 0x2800);
	cr_assert_eq(c->wanted_size, 0x4000);
	cr_assert_eq(core_read(c, &word, 8, STACK + 0x7f8), 0);
	cr_assert_neq(core_read(c, &word, 8, STACK + 0x800), 0);
	core_free(c);
	cr_assert_eq(opened(0x500, &c), CORE_MALFORMED);
	cr_assert_eq(opened(0x50, &c), CORE_MALFORMED);
	cr_assert_eq(opened(0x10, &c), CORE_NOT_ELF);
}

Test(core, of_ranges_that_overlap_the_lower_one_counts)
{
	make();
	segment[2].p_vaddr = CODE + 0x800;
	struct core *c = open_it();

	cr_assert_eq(c->range_count, 2);
	cr_assert_eq(core_range_at(c, CODE + 0x900)->start, CODE);
	core_free(c);
}

Test(core, unsupported_and_malformed_cores_are_refused)
{
	struct core *c;

	make();
	header->e_type = ET_DYN;
	cr_assert_eq(opened(sizeof(file), &c), CORE_NOT_CORE);
	make();
	header->e_machine = EM_AARCH64;
	cr_assert_eq(opened(sizeof(file), &c), CORE_UNSUPPORTED);
	make();
	header->e_ident[EI_CLASS] = ELFCLASS32;
	cr_assert_eq(opened(sizeof(file), &c), CORE_UNSUPPORTED);
	make();
	header->e_phentsize = 8;
	cr_assert_eq(opened(sizeof(file), &c), CORE_MALFORMED);
	make();
	header->e_phnum = 1;
	segment[0].p_filesz = 0;
	cr_assert_eq(opened(sizeof(file), &c), CORE_NO_THREADS);
	make();
	segment[0].p_filesz = CORE_MAX_NOTES + 1;
	cr_assert_eq(opened(sizeof(file), &c), CORE_TOO_LARGE);
	make();
	segment[1].p_offset = UINT64_MAX - 8;
	cr_assert_eq(opened(sizeof(file), &c), CORE_MALFORMED);
}

Test(core, a_false_list_of_files_is_refused)
{
	const uint64_t lies[] = { UINT64_MAX / 24, 4096, 0, 0 };
	struct core *c;

	make();
	notes = 0;
	add_thread(1, CODE);
	add_note("CORE", NT_FILE, lies, sizeof(lies));
	cr_assert_eq(opened(sizeof(file), &c), CORE_MALFORMED);
}
