/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/elf/filestarts.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"

#define WINDOW 4096u
#define MAX_CODE (64ull << 20) /* bytes that are searched for calls */
#define MAX_WORDS (16u << 20)  /* bytes of data that are searched for addresses of code */
#define MAX_RELAS (32u << 20)  /* bytes */
#define STATIC_BASE 0x10000    /* smaller words of data may be numbers */
/* Bytes of all gaps together; decoding them takes at most a second. */
#define MAX_FOLLOW (16ull << 20)

void filestarts_init(struct filestarts *x, const struct symfile *f)
{
	*x = (struct filestarts){ .file = f, .follow_left = MAX_FOLLOW };
}

void filestarts_done(struct filestarts *x)
{
	codestarts_done(&x->starts);
}

static bool is_code(const struct symfile_section *s)
{
	return (s->flags & SHF_ALLOC) && (s->flags & SHF_EXECINSTR) && s->type == SHT_PROGBITS &&
	       s->size;
}

const struct symfile_section *filestarts_code(const struct symfile *f, uint64_t address)
{
	const struct symfile_layout *l = symfile_layout(f);

	for (uint32_t i = 1; i < l->section_count; i++) {
		const struct symfile_section *s = &l->sections[i];

		if (is_code(s) && address >= s->addr && address - s->addr < s->size)
			return s;
	}
	return NULL;
}

/* Whether a function can begin at an address: at the start of a section, or after the end of
 * another function. */
static bool begins(void *ctx, uint64_t address)
{
	const struct filestarts *x = ctx;
	const struct symfile_section *s = filestarts_code(x->file, address);
	uint8_t before[CODESTARTS_REACH];

	if (!s)
		return false;
	const uint64_t at = address - s->addr;
	const size_t n = numbers_smaller(at, sizeof(before));

	return n == 0 || (symfile_read(x->file, s->offset + at - n, before, n) == 0 &&
			  codestarts_behind((struct span){ .data = before, .len = n }));
}

static int take_address(struct filestarts *x, uint64_t address)
{
	return address >= x->starts.low && address < x->starts.high && begins(x, address)
		       ? codestarts_add(&x->starts, address)
		       : 0;
}

static int scan_code(struct filestarts *x, const struct symfile_section *s, uint8_t *chunk,
		     uint64_t *left)
{
	for (uint64_t at = 0; at < s->size && *left;) {
		size_t n = numbers_smaller(s->size - at, WINDOW);
		int r = symfile_read(x->file, s->offset + at, chunk, n);

		if (r < 0)
			return r;
		if (r)
			return 0; /* the file is cut short */
		r = codestarts_code(&x->starts, (struct span){ .data = chunk, .len = n },
				    s->addr + at, begins, x);
		if (r)
			return r;
		if (at + n == s->size)
			break;
		/* Chunks overlap, since an instruction may cross their boundary. */
		at += n - (CODESTARTS_REACH - 1);
		*left -= *left < n ? *left : n;
	}
	return 0;
}

static int scan_words(struct filestarts *x, const struct symfile_section *s, uint8_t *chunk)
{
	const uint64_t size = numbers_smaller(s->size, MAX_WORDS);

	for (uint64_t at = 0; size - at >= 8;) {
		const size_t n = size - at < WINDOW ? (size_t)(size - at) & ~7ul : WINDOW;

		if (symfile_read(x->file, s->offset + at, chunk, n))
			break;
		for (size_t i = 0; i < n; i += 8) {
			uint64_t word;

			memcpy(&word, chunk + i, 8);
			int r = take_address(x, word);

			if (r)
				return r;
		}
		at += n;
	}
	return 0;
}

static int scan_relas(struct filestarts *x, const struct symfile_section *s, uint8_t *chunk)
{
	const uint64_t size = numbers_smaller(s->size, MAX_RELAS);

	for (uint64_t at = 0; size - at >= sizeof(Elf64_Rela);) {
		const size_t most = WINDOW / sizeof(Elf64_Rela) * sizeof(Elf64_Rela);
		const size_t n = numbers_smaller(size - at, most);

		if (symfile_read(x->file, s->offset + at, chunk, n))
			break;
		for (size_t i = 0; i + sizeof(Elf64_Rela) <= n; i += sizeof(Elf64_Rela)) {
			Elf64_Rela rela;

			memcpy(&rela, chunk + i, sizeof(rela));
			if (ELF64_R_TYPE(rela.r_info) != R_X86_64_RELATIVE &&
			    ELF64_R_TYPE(rela.r_info) != R_X86_64_IRELATIVE)
				continue;
			int r = take_address(x, (uint64_t)rela.r_addend);

			if (r)
				return r;
		}
		at += n;
	}
	return 0;
}

int filestarts_read(struct filestarts *x)
{
	const struct symfile_layout *l = symfile_layout(x->file);
	struct codestarts *starts = &x->starts;
	uint64_t left = MAX_CODE;
	uint8_t *chunk;
	int r = 0;

	if (x->tried)
		return 0;
	x->tried = true;
	starts->full = l->machine != EM_X86_64;
	if (starts->full)
		return 0;
	starts->low = UINT64_MAX;
	for (uint32_t i = 1; i < l->section_count; i++) {
		const struct symfile_section *s = &l->sections[i];
		uint64_t end;

		if (!is_code(s) || __builtin_add_overflow(s->addr, s->size, &end))
			continue;
		starts->low = numbers_smaller(s->addr, starts->low);
		starts->high = numbers_larger(end, starts->high);
	}
	if (starts->low >= starts->high || starts->high - starts->low > UINT32_MAX) {
		starts->high = starts->low;
		return 0;
	}
	chunk = malloc(WINDOW);
	if (!chunk)
		return -ENOMEM;
	if (l->entry)
		r = codestarts_add(starts, l->entry);
	for (uint32_t i = 1; !r && i < l->section_count; i++) {
		const struct symfile_section *s = &l->sections[i];

		if (is_code(s))
			r = scan_code(x, s, chunk, &left);
		else if (s->type == SHT_RELA && s->flags & SHF_ALLOC)
			r = scan_relas(x, s, chunk);
		else if ((s->type == SHT_PROGBITS || s->type == SHT_INIT_ARRAY ||
			  s->type == SHT_FINI_ARRAY) &&
			 s->flags & SHF_WRITE && starts->low >= STATIC_BASE)
			r = scan_words(x, s, chunk);
	}
	free(chunk);
	codestarts_sort(starts);
	starts->full |= !left;
	return r;
}

static size_t read_code(void *ctx, uint64_t address, uint8_t *into, size_t n)
{
	const struct filestarts *x = ctx;
	const struct symfile_section *s = filestarts_code(x->file, address);

	if (!s)
		return 0;
	if (n > s->size - (address - s->addr))
		n = (size_t)(s->size - (address - s->addr));
	return symfile_read(x->file, s->offset + (address - s->addr), into, n) ? 0 : n;
}

int filestarts_follow(struct filestarts *x, uint64_t from, uint64_t to)
{
	for (unsigned i = 0; i < x->gap_count; i++)
		if (x->gaps[i] == from)
			return 0;
	if (x->gap_count == FILESTARTS_GAPS || to - from > x->follow_left)
		return 0; /* no more gaps are decoded: only the starts that other code refers to are
			   * used */
	x->gaps[x->gap_count++] = from;
	x->follow_left -= to - from;
	return codestarts_follow(&x->starts, from, to, read_code, begins, x);
}
