/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/elf/starts.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/base/files/fd.h"
#include "common/rows/elf/elf.h"
#include "common/wire/msg.h"

#define CHUNK_SYMBOLS 2048
#define STOP_SYMBOLS 256 /* Each may need a read of its name. */
#define CHUNK_NAMES 4096 /* Names may lie in any order, so one read covers only a few. */
#define MAX_DYNAMIC 512
#define MAX_ARRAY 4096 /* functions of DT_INIT_ARRAY */

struct reader {
	const struct starts_search *search;
	uint64_t left; /* symbols that may still be read, of all tables */
	Elf64_Sym symbol[CHUNK_SYMBOLS];
	uint64_t array[MAX_ARRAY];
	/* A window of names, from offset names_at of the file on. */
	uint64_t names_at;
	int64_t names_len;
	char names[CHUNK_NAMES];
};

static Elf64_Shdr *read_sections(int fd, unsigned *ret_n)
{
	Elf64_Ehdr h;
	Elf64_Shdr *s;
	int64_t n;

	*ret_n = 0;
	if (fd_pread_all(fd, &h, sizeof(h), 0) != sizeof(h) ||
	    h.e_shentsize != sizeof(Elf64_Shdr) || !h.e_shoff || h.e_shoff > INT64_MAX ||
	    !h.e_shnum || h.e_shnum > STARTS_MAX_SECTIONS)
		return NULL;
	s = malloc(h.e_shnum * sizeof(*s));
	if (!s)
		return NULL;
	n = fd_pread_all(fd, s, h.e_shnum * sizeof(*s), h.e_shoff);
	*ret_n = n > 0 ? (unsigned)((uint64_t)n / sizeof(*s)) : 0;
	return s;
}

static int by_start(const void *a, const void *b)
{
	const struct starts_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int starts_ranges(int fd, struct rows *rows, struct starts *s)
{
	unsigned n, kept = 0;
	Elf64_Shdr *section = read_sections(fd, &n);

	s->ranges = 0;
	for (unsigned i = 0; i < n && s->ranges < STARTS_MAX_RANGES; i++) {
		const Elf64_Shdr *h = &section[i];
		uint32_t at;
		uint64_t left;

		if (h->sh_type != SHT_PROGBITS || !(h->sh_flags & SHF_EXECINSTR) ||
		    !(h->sh_flags & SHF_ALLOC) || !h->sh_size ||
		    !rows_locate(rows, h->sh_addr, &at, &left))
			continue;
		if (h->sh_size < left)
			left = h->sh_size;
		s->range[s->ranges++] = (struct starts_range){ .start = at,
							       .end = at + (uint32_t)left };
	}
	free(section);
	for (unsigned i = 0; !s->ranges && i < rows->segments && i < STARTS_MAX_RANGES; i++) {
		uint32_t at;
		uint64_t left;

		if (rows_locate(rows, rows->segment[i].vaddr, &at, &left))
			s->range[kept++] = (struct starts_range){ .start = at,
								  .end = at + (uint32_t)left,
								  .blind = true };
	}
	if (kept)
		s->ranges = kept;
	qsort(s->range, s->ranges, sizeof(s->range[0]), by_start);
	kept = 0;
	for (unsigned i = 0; i < s->ranges; i++) {
		struct starts_range r = s->range[i];

		if (kept && r.start < s->range[kept - 1].end)
			r.start = s->range[kept - 1].end;
		if (r.start < r.end)
			s->range[kept++] = r;
	}
	s->ranges = kept;
	return 0;
}

int starts_add(struct starts *s, uint32_t at, uint32_t size, bool taken)
{
	if (s->functions == STARTS_MAX)
		return 0;
	if (s->functions == s->cap) {
		uint32_t cap = s->cap ? s->cap * 2 : 256;
		struct starts_function *p = realloc(s->function, cap * sizeof(*p));

		if (!p)
			return -ENOMEM;
		s->function = p;
		s->cap = cap;
	}
	s->function[s->functions++] =
		(struct starts_function){ .at = at, .size = size & INT32_MAX, .taken = taken };
	return 0;
}

bool starts_wants(const struct starts_search *s, uint64_t vaddr, uint32_t *ret_at,
		  uint64_t *ret_left)
{
	return rows_locate(s->rows, vaddr, ret_at, ret_left) && s->wanted(s->ctx, *ret_at);
}

static int add(struct reader *r, uint64_t vaddr, uint64_t size)
{
	uint32_t at;
	uint64_t left;

	if (!starts_wants(r->search, vaddr, &at, &left))
		return 0;
	return starts_add(r->search->found, at, (uint32_t)(size < left ? size : left), false);
}

/* Whether a symbol is not a function of its own. Compilers move pieces out of a function (".cold"),
 * and these are entered by jumps with the function's frame. Go's linker gives all functions of a C
 * object one symbol, "runtime/cgo(.text)". */
static bool is_piece(struct reader *r, uint64_t names, uint64_t names_size, uint64_t name)
{
	char text[512];
	uint64_t at = names + name;

	if (name >= names_size || names_size > INT64_MAX || names > INT64_MAX - names_size)
		return false;
	if (at < r->names_at || at - r->names_at + sizeof(text) > (uint64_t)r->names_len) {
		r->names_at = at;
		r->names_len = fd_pread_all(r->search->fd, r->names, sizeof(r->names), at);
		if (r->names_len < 0)
			r->names_len = 0;
	}

	uint64_t have = (uint64_t)r->names_len - (at - r->names_at);

	if (have > sizeof(text) - 1)
		have = sizeof(text) - 1;
	memcpy(text, r->names + (at - r->names_at), have);
	text[have] = 0;
	return strstr(text, ".cold") || strstr(text, "(.text") || strchr(text, '.') == text;
}

static int read_symbols(struct reader *r, uint64_t offset, uint64_t count, uint64_t names,
			uint64_t names_size)
{
	uint64_t done = 0;

	count = numbers_smaller(count, r->left);
	if (offset > INT64_MAX - STARTS_MAX_SYMBOLS)
		return 0;
	r->left -= count;
	while (done < count && r->search->found->functions < STARTS_MAX) {
		uint64_t want = numbers_smaller(count - done, CHUNK_SYMBOLS);
		int64_t n = fd_pread_all(r->search->fd, r->symbol, want * sizeof(Elf64_Sym),
					 offset + done * sizeof(Elf64_Sym));

		if (n < (int64_t)sizeof(Elf64_Sym))
			return 0;
		n /= (int64_t)sizeof(Elf64_Sym);
		for (int64_t i = 0; i < n; i++) {
			const Elf64_Sym *y = &r->symbol[i];

			if (i % STOP_SYMBOLS == 0 && rows_stopped(r->search->rows))
				return MSG_ROWS_LATER;
			unsigned type = ELF64_ST_TYPE(y->st_info);
			uint32_t at;
			uint64_t left;
			int e;

			if (y->st_shndx == SHN_UNDEF || y->st_shndx == SHN_ABS || !y->st_value)
				continue;
			/* Local symbols without a type are labels inside a function (nasm). */
			if (type != STT_FUNC && type != STT_GNU_IFUNC &&
			    (type != STT_NOTYPE || ELF64_ST_BIND(y->st_info) == STB_LOCAL))
				continue;
			if (!starts_wants(r->search, y->st_value, &at, &left) ||
			    is_piece(r, names, names_size, y->st_name))
				continue;
			e = add(r, y->st_value, y->st_size);
			if (e)
				return e;
		}
		done += (uint64_t)n;
	}
	return 0;
}

/* The file offset of an ELF address. */
static bool locate(const Elf64_Phdr *p, unsigned n, uint64_t vaddr, uint64_t *ret)
{
	for (unsigned i = 0; i < n; i++) {
		if (p[i].p_type != PT_LOAD || vaddr < p[i].p_vaddr ||
		    vaddr - p[i].p_vaddr >= p[i].p_filesz)
			continue;
		*ret = vaddr - p[i].p_vaddr + p[i].p_offset;
		return true;
	}
	return false;
}

static int read_dynamic(struct reader *r, bool symbols)
{
	Elf64_Ehdr h;
	Elf64_Phdr p[ELF_MAX_LOADS];
	Elf64_Dyn d[MAX_DYNAMIC];
	uint64_t value[40] = { 0 }, offset;
	int64_t n = fd_pread_all(r->search->fd, &h, sizeof(h), 0);
	unsigned loads, entries = 0;

	if (n != sizeof(h) || h.e_phentsize != sizeof(p[0]))
		return 0;
	loads = (unsigned)numbers_smaller(h.e_phnum, ELF_MAX_LOADS);
	n = fd_pread_all(r->search->fd, p, loads * sizeof(p[0]), h.e_phoff);
	loads = n > 0 ? (unsigned)((uint64_t)n / sizeof(p[0])) : 0;
	for (unsigned i = 0; i < loads; i++) {
		uint64_t size = numbers_smaller(p[i].p_filesz, sizeof(d));

		if (p[i].p_type != PT_DYNAMIC)
			continue;
		n = fd_pread_all(r->search->fd, d, size, p[i].p_offset);
		entries = n > 0 ? (unsigned)((uint64_t)n / sizeof(d[0])) : 0;
	}
	for (unsigned i = 0; i < entries && d[i].d_tag != DT_NULL; i++) {
		if (d[i].d_tag > 0 && d[i].d_tag < 40)
			value[d[i].d_tag] = d[i].d_un.d_val;
	}
	for (unsigned i = 0; i < 2; i++) {
		uint64_t at = value[i ? DT_FINI : DT_INIT];
		int e = at ? add(r, at, 0) : 0;

		if (e)
			return e;
	}
	for (unsigned i = 0; i < 2; i++) {
		uint64_t at = value[i ? DT_FINI_ARRAY : DT_INIT_ARRAY];
		uint64_t size = value[i ? DT_FINI_ARRAYSZ : DT_INIT_ARRAYSZ] / 8;

		if (!at || !locate(p, loads, at, &offset))
			continue;
		n = fd_pread_all(r->search->fd, r->array, numbers_smaller(size, MAX_ARRAY) * 8,
				 offset);
		for (int64_t k = 0; k < n / 8; k++) {
			int e = r->array[k] ? add(r, r->array[k], 0) : 0;

			if (e)
				return e;
		}
	}
	/* Without section headers the table's end is unknown, but the names follow it. */
	if (symbols && value[DT_STRTAB] > value[DT_SYMTAB] &&
	    locate(p, loads, value[DT_SYMTAB], &offset)) {
		uint64_t names;

		if (locate(p, loads, value[DT_STRTAB], &names))
			return read_symbols(r, offset,
					    (value[DT_STRTAB] - value[DT_SYMTAB]) /
						    sizeof(Elf64_Sym),
					    names, value[DT_STRSZ]);
	}
	return 0;
}

static int by_at(const void *a, const void *b)
{
	const struct starts_function *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->taken != y->taken)
		return x->taken ? 1 : -1;
	return x->size > y->size ? -1 : x->size < y->size;
}

void starts_sort(struct starts *s)
{
	uint32_t kept = 0;

	if (s->functions)
		qsort(s->function, s->functions, sizeof(*s->function), by_at);
	for (uint32_t i = 0; i < s->functions; i++) {
		if (!kept || s->function[kept - 1].at != s->function[i].at)
			s->function[kept++] = s->function[i];
	}
	s->functions = kept;
}

int starts_functions(const struct starts_search *s)
{
	struct reader *r = malloc(sizeof(*r)); /* large: malloc avoids clearing the unused parts */
	Elf64_Shdr *section = NULL;
	unsigned n = 0;
	int e = 0;

	if (!r)
		return -ENOMEM;
	r->search = s;
	r->left = STARTS_MAX_SYMBOLS / sizeof(Elf64_Sym);
	r->names_at = 0;
	r->names_len = 0;
	section = read_sections(s->fd, &n);
	for (unsigned i = 0; i < n && !e; i++) {
		const Elf64_Shdr *h = &section[i];

		if ((h->sh_type == SHT_SYMTAB || h->sh_type == SHT_DYNSYM) && h->sh_link < n)
			e = read_symbols(r, h->sh_offset, h->sh_size / sizeof(Elf64_Sym),
					 section[h->sh_link].sh_offset,
					 section[h->sh_link].sh_size);
	}
	if (!e)
		e = read_dynamic(r, !n);
	free(section);
	free(r);
	return e;
}

void starts_done(struct starts *s)
{
	free(s->function);
	s->function = NULL;
	s->functions = s->cap = 0;
}
