// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/prof-deltas/ucontext.h"

#define WINDOW (64u << 10)
#define MAX_DYNAMIC 256
#define MAX_LENGTH 64 /* bytes of the function; a hlt is its last instruction */

/* mov rsp, rbx; mov rdi, [rsp]; test rdi, rdi */
static const uint8_t start_context[] = {
	0x48, 0x89, 0xdc, 0x48, 0x8b, 0x3c, 0x24, 0x48, 0x85, 0xff
};

/* The file offset of an ELF address. */
static bool locate(const struct elf_file *f, uint64_t vaddr, uint64_t *ret)
{
	for (unsigned i = 0; i < f->loads; i++) {
		const struct elf_load *l = &f->load[i];

		if (vaddr < l->vaddr || vaddr - l->vaddr >= l->filesz)
			continue;
		*ret = l->offset + (vaddr - l->vaddr);
		return true;
	}
	return false;
}

/* Whether the file calls itself libc.so.6. 0 or 1; -errno. */
static int is_libc(int fd, const struct elf_file *f)
{
	static const char name[] = "libc.so.6";
	Elf64_Dyn dynamic[MAX_DYNAMIC];
	uint64_t names = 0, soname = 0, offset;
	char found[sizeof(name)];
	Elf64_Phdr p[ELF_MAX_LOADS];
	Elf64_Ehdr e;
	int64_t n = elf_pread(fd, &e, sizeof(e), 0);

	if (n < (int64_t)sizeof(e) || e.e_phentsize != sizeof(p[0]))
		return n < 0 ? (int)n : 0;
	n = elf_pread(fd, p, (e.e_phnum < ELF_MAX_LOADS ? e.e_phnum : ELF_MAX_LOADS) * sizeof(p[0]),
		      e.e_phoff);
	if (n < 0)
		return (int)n;

	size_t count = (size_t)n / sizeof(p[0]), i = 0;

	while (i < count && p[i].p_type != PT_DYNAMIC)
		i++;
	if (i == count)
		return 0;
	n = elf_pread(fd, dynamic,
		      p[i].p_filesz < sizeof(dynamic) ? p[i].p_filesz : sizeof(dynamic),
		      p[i].p_offset);
	if (n < 0)
		return (int)n;
	count = (size_t)n / sizeof(dynamic[0]);
	for (i = 0; i < count && dynamic[i].d_tag != DT_NULL; i++) {
		if (dynamic[i].d_tag == DT_STRTAB)
			names = dynamic[i].d_un.d_ptr;
		if (dynamic[i].d_tag == DT_SONAME)
			soname = dynamic[i].d_un.d_val;
	}
	if (!soname || !locate(f, names, &offset) || soname > f->size)
		return 0;
	n = elf_pread(fd, found, sizeof(found), offset + soname);
	if (n < 0)
		return (int)n;
	return n == (int64_t)sizeof(found) && memcmp(found, name, sizeof(name)) == 0;
}

static int add(struct rows *rows, uint64_t vaddr, const uint8_t *code, size_t left)
{
	const struct unwind_rule rule = { .cfa = UNWIND_CFA_REG,
					  .cfa_reg = UNWIND_REG_RSP,
					  .cfa_off = 8,
					  .ra = UNWIND_RA_UNDEFINED,
					  .flags = UNWIND_DERIVED };
	const uint8_t *hlt = memchr(code, 0xf4, left < MAX_LENGTH ? left : MAX_LENGTH);
	size_t length = hlt ? (size_t)(hlt + 1 - code) : sizeof(start_context);
	uint64_t room;
	uint16_t number;
	uint32_t at;
	int r;

	/* Returning to it means its first byte, and the byte before is what is looked up. */
	if (!rows_locate(rows, vaddr - 1, &at, &room) || room <= length)
		return 0;
	r = rows_open(rows, at, at + 1 + (uint32_t)length);
	if (!r)
		r = rows_rules_put(&rows->rules, &rule, &number);
	if (!r)
		r = rows_add(rows, at, number);
	if (!r)
		rows_close(rows);
	return r == ROWS_NONE ? 0 : r;
}

static int search(int fd, const struct elf_load *l, struct rows *rows, uint8_t *window)
{
	/* Windows overlap by the longest function. */
	for (uint64_t at = 0; at < l->filesz; at += WINDOW - MAX_LENGTH) {
		uint64_t want = l->filesz - at < WINDOW ? l->filesz - at : WINDOW;
		int64_t n = elf_pread(fd, window, want, l->offset + at);

		if (n < 0)
			return (int)n;

		const uint8_t *found = memmem(window, (size_t)n, start_context,
					      sizeof(start_context));

		if (found && (found - window > 0 || at > 0))
			return add(rows, l->vaddr + at + (uint64_t)(found - window), found,
				   (size_t)(window + n - found));
		if (n < (int64_t)want)
			break;
	}
	return 0;
}

int ucontext_read(int fd, const struct elf_file *f, struct rows *rows)
{
	int r = is_libc(fd, f);

	if (r <= 0)
		return r;

	uint8_t *window = malloc(WINDOW);

	if (!window)
		return -ENOMEM;
	r = 0;
	for (unsigned i = 0; i < f->loads && !r; i++) {
		if (f->load[i].exec)
			r = search(fd, &f->load[i], rows, window);
	}
	free(window);
	return r;
}
