/* SPDX-License-Identifier: Apache-2.0 */
/* Sources: System V gABI chapters 4 and 5; the MiniDebugInfo page of gdb's manual. */
#include "common/names/elf/symtable.h"

#include <elf.h>
#include <errno.h>
#include <lzma.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"

#define MAX_STRINGS (1u << 29) /* bytes of one string table: offsets are packed into 29 bits */
#define MAX_MINI_PACKED (32u << 20)
#define MAX_MINI (64u << 20)	    /* bytes of MiniDebugInfo, unpacked */
#define MAX_MINI_MEMORY (80u << 20) /* bytes that the decoder may use for its dictionary */
#define MAX_DYNAMIC 256u	    /* entries of PT_DYNAMIC */
#define CHUNK (16u << 10)
#define NEAR 64u /* symbols that are read at once, if some of them are needed */

int symtable_push(struct symtable_symbols *all, const struct symtable_symbol *s)
{
	if (all->len == all->cap) {
		size_t cap = all->cap ? all->cap + all->cap / 2 : 4096;
		struct symtable_symbol *data;

		if (all->len >= SYMTABLE_MAX_SYMBOLS)
			return SYMFILE_TOO_LARGE;
		data = realloc(all->data, cap * sizeof(*data));
		if (!data)
			return -ENOMEM;
		all->data = data;
		all->cap = cap;
	}
	all->data[all->len++] = *s;
	return 0;
}

/* --- a symbol --- */

static bool holds_code_at(const struct symfile_section *s, uint64_t address)
{
	return (s->flags & SHF_ALLOC) && (s->flags & SHF_EXECINSTR) && address >= s->addr &&
	       address - s->addr < s->size;
}

static const struct symfile_section *section_at(const struct symfile_layout *l, uint64_t address)
{
	for (uint32_t i = 1; i < l->section_count; i++)
		if (holds_code_at(&l->sections[i], address))
			return &l->sections[i];
	return NULL;
}

static uint32_t symbol_rank(const Elf64_Sym *s)
{
	unsigned bind = ELF64_ST_BIND(s->st_info), type = ELF64_ST_TYPE(s->st_info);
	return (bind == STB_LOCAL ? 0 : 1) + (type == STT_NOTYPE ? 0 : 2);
}

/* Converts an entry. Returns false if it is not a symbol of code. */
static bool symbol_of(const struct symfile_layout *l, const struct symtable *t, const Elf64_Sym *s,
		      struct symtable_symbol *ret)
{
	const unsigned type = ELF64_ST_TYPE(s->st_info);
	const struct symfile_section *in;

	if (s->st_shndx == SHN_UNDEF || type == STT_TLS || type == STT_FILE ||
	    s->st_shndx >= (l->bare ? SHN_LORESERVE : l->section_count))
		return false;
	in = l->bare ? NULL : &l->sections[s->st_shndx];
	/* Tools that add or remove sections do not update the section numbers in .dynsym. */
	if (!in || !holds_code_at(in, s->st_value))
		in = l->bare || (t->id == SYMTABLE_DYNSYM && s->st_size)
			     ? section_at(l, s->st_value)
			     : NULL;
	if (!in)
		return false;

	const uint64_t room = in->size - (s->st_value - in->addr);

	*ret = (struct symtable_symbol){ .value = s->st_value };
	/* Reject data objects in text, and arm64's mapping symbols. */
	if ((type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE) || s->st_name == 0 ||
	    s->st_name >= t->strings.size || (l->bare && !s->st_size) ||
	    (type == STT_NOTYPE && l->machine != EM_X86_64 &&
	     ELF64_ST_BIND(s->st_info) == STB_LOCAL))
		return true;

	uint64_t size = s->st_size ? s->st_size : room;

	size = numbers_smaller(size, room);
	ret->size = numbers_u32(size);
	ret->kind = s->st_size ? SYMTABLE_SIZED : SYMTABLE_UNSIZED;
	ret->rank = symbol_rank(s);
	ret->name = (uint32_t)t->id << SYMTABLE_NAME_SHIFT | s->st_name;
	return true;
}

int symtable_each(const struct symfile *f, const struct symtable *t,
		  int (*fn)(void *ctx, uint32_t number, const struct symtable_symbol *s), void *ctx)
{
	const struct symfile_layout *l = symfile_layout(f);
	Elf64_Sym chunk[CHUNK / sizeof(Elf64_Sym)];

	for (uint64_t at = 0; at < t->count;) {
		size_t n = t->count - at < sizeof(chunk) / sizeof(chunk[0])
				   ? (size_t)(t->count - at)
				   : sizeof(chunk) / sizeof(chunk[0]);
		int r = symfile_read(f, t->offset + at * sizeof(Elf64_Sym), chunk,
				     n * sizeof(Elf64_Sym));

		for (size_t i = 0; !r && i < n; i++) {
			struct symtable_symbol s;

			if (symbol_of(l, t, &chunk[i], &s))
				r = fn(ctx, (uint32_t)(at + i), &s);
		}
		if (r)
			return r;
		at += n;
	}
	return 0;
}

/* Returns how many of the numbers lie within NEAR of the first one. */
static size_t near(const uint32_t *numbers, size_t len)
{
	size_t n = 1;

	while (n < len && numbers[n] - numbers[0] < NEAR)
		n++;
	return n;
}

int symtable_pick(const struct symfile *f, const struct symtable *t, const uint32_t *numbers,
		  size_t len, struct symtable_symbols *all)
{
	Elf64_Sym chunk[NEAR];
	int r = 0;

	for (size_t at = 0, n; !r && at < len; at += n) {
		const uint32_t first = numbers[at];

		n = near(numbers + at, len - at);
		r = symfile_read(f, t->offset + (uint64_t)first * sizeof(chunk[0]), chunk,
				 (numbers[at + n - 1] - first + 1) * sizeof(chunk[0]));
		for (size_t i = at; !r && i < at + n; i++) {
			struct symtable_symbol s;

			if ((i == at || numbers[i] != numbers[i - 1]) &&
			    symbol_of(symfile_layout(f), t, &chunk[numbers[i] - first], &s))
				r = symtable_push(all, &s);
		}
	}
	return r;
}

static int push(void *ctx, uint32_t number, const struct symtable_symbol *s)
{
	return symtable_push(ctx, s);
}

int symtable_add(const struct symfile *f, const struct symtable *t, struct symtable_symbols *all)
{
	return symtable_each(f, t, push, all);
}

/* --- finding tables --- */

static int of_section(const struct symfile *f, enum symtable_id id,
		      const struct symfile_section *at, struct symtable *ret)
{
	const struct symfile_layout *l = symfile_layout(f);
	const struct symfile_section *s;

	if (!at || at->type == SHT_NOBITS)
		return SYMFILE_NONE;
	if (at->link == 0 || at->link >= l->section_count)
		return SYMFILE_MALFORMED;
	s = &l->sections[at->link];
	if (s->type != SHT_STRTAB || s->size >= MAX_STRINGS || s->offset > l->size ||
	    s->size > l->size - s->offset)
		return SYMFILE_MALFORMED;
	if (at->entsize != sizeof(Elf64_Sym) || at->offset > l->size ||
	    at->size > l->size - at->offset)
		return SYMFILE_MALFORMED;
	if (at->size / sizeof(Elf64_Sym) > UINT32_MAX)
		return SYMFILE_TOO_LARGE;
	*ret = (struct symtable){ .id = id,
				  .offset = at->offset,
				  .count = at->size / sizeof(Elf64_Sym),
				  .strings = { .offset = s->offset, .size = s->size } };
	return 0;
}

/* Converts an address to a file offset. */
static bool locate(const struct symfile_layout *l, uint64_t address, uint64_t *ret)
{
	for (uint32_t i = 0; i < l->segment_count; i++) {
		const struct symfile_segment *s = &l->segments[i];

		if (address >= s->vaddr && address - s->vaddr < s->filesz) {
			*ret = s->offset + (address - s->vaddr);
			return true;
		}
	}
	return false;
}

/* Finds the number of symbols that a hash table covers. DT_HASH contains it; for DT_GNU_HASH it
 * follows from the end of the last chain. */
static int count_hashed(const struct symfile *f, uint64_t address, bool gnu, uint64_t *ret)
{
	uint32_t head[4], chunk[1024], last = 0;
	uint64_t at;

	if (!locate(symfile_layout(f), address, &at))
		return SYMFILE_NONE;
	int r = symfile_read(f, at, head, gnu ? 16 : 8);

	if (r || !gnu) {
		*ret = r ? 0 : head[1];
		return r;
	}
	at += 16 + (uint64_t)head[2] * 8;
	for (uint32_t i = 0; i < head[0] && !r;) {
		uint32_t n = head[0] - i < 1024 ? head[0] - i : 1024;

		r = symfile_read(f, at, chunk, n * 4ull);
		for (uint32_t k = 0; k < n && !r; k++)
			last = chunk[k] > last ? chunk[k] : last;
		i += n;
		at += n * 4ull;
	}
	if (r || last < head[1] || last > SYMTABLE_MAX_SYMBOLS) {
		*ret = head[1];
		return r;
	}
	at += (last - head[1]) * 4ull;
	do {
		r = symfile_read(f, at, chunk, 4);
		at += 4;
	} while (!r && !(chunk[0] & 1) && last++ < SYMTABLE_MAX_SYMBOLS);
	*ret = last + 1ull;
	return r;
}

/* Finds .dynsym through PT_DYNAMIC, for files without section headers. */
static int of_dynamic(const struct symfile *f, struct symtable *ret)
{
	const struct symfile_layout *l = symfile_layout(f);
	Elf64_Dyn d[MAX_DYNAMIC];
	uint64_t value[DT_SYMENT + 1] = { 0 }, gnu = 0, offset, strings, count = 0;
	size_t n = numbers_smaller(l->dynamic_size, sizeof(d));
	int r = symfile_read(f, l->dynamic, d, n);

	if (r)
		return r;
	for (size_t i = 0; i < n / sizeof(d[0]) && d[i].d_tag != DT_NULL; i++) {
		if (d[i].d_tag > 0 && d[i].d_tag <= DT_SYMENT)
			value[d[i].d_tag] = d[i].d_un.d_val;
		else if (d[i].d_tag == DT_GNU_HASH)
			gnu = d[i].d_un.d_val;
	}
	if (!locate(l, value[DT_SYMTAB], &offset) || !locate(l, value[DT_STRTAB], &strings) ||
	    value[DT_STRSZ] >= MAX_STRINGS || strings > l->size ||
	    value[DT_STRSZ] > l->size - strings)
		return SYMFILE_NONE;
	r = count_hashed(f, value[DT_HASH] ? value[DT_HASH] : gnu, !value[DT_HASH], &count);
	if (r)
		return r;
	if (offset > l->size || count > (l->size - offset) / sizeof(Elf64_Sym))
		return SYMFILE_MALFORMED;
	if (count > UINT32_MAX)
		return SYMFILE_TOO_LARGE;
	*ret = (struct symtable){ .id = SYMTABLE_DYNSYM,
				  .offset = offset,
				  .count = count,
				  .strings = { .offset = strings, .size = value[DT_STRSZ] } };
	return 0;
}

int symtable_find(const struct symfile *f, enum symtable_id id, struct symtable *ret)
{
	if (id == SYMTABLE_DYNSYM && symfile_layout(f)->bare)
		return of_dynamic(f, ret);
	return of_section(
		f, id, symfile_section_of_type(f, id == SYMTABLE_SYMTAB ? SHT_SYMTAB : SHT_DYNSYM),
		ret);
}

/* --- MiniDebugInfo --- */

/* Unpacks .gnu_debugdata. The caller owns *ret. */
static int unpack_mini(const struct symfile *f, const struct symfile_section *s, uint8_t **ret,
		       size_t *ret_len)
{
	lzma_stream z = LZMA_STREAM_INIT;
	uint8_t *packed = NULL, *out = NULL;
	size_t cap = 0;
	int r;

	if (s->type == SHT_NOBITS || s->size == 0)
		return SYMFILE_NONE;
	if (s->size > MAX_MINI_PACKED)
		return SYMFILE_TOO_LARGE;
	if (lzma_stream_decoder(&z, MAX_MINI_MEMORY, 0) != LZMA_OK)
		return -ENOMEM;
	packed = malloc(s->size);
	r = packed ? symfile_read(f, s->offset, packed, s->size) : -ENOMEM;
	z.next_in = packed;
	z.avail_in = s->size;
	while (r == 0) {
		lzma_ret lr;

		if (z.avail_out == 0) {
			size_t grown = cap ? cap * 2 : 1u << 16;
			uint8_t *p = cap < MAX_MINI ? realloc(out, grown) : NULL;

			if (!p) {
				r = cap < MAX_MINI ? -ENOMEM : SYMFILE_TOO_LARGE;
				break;
			}
			out = p;
			z.next_out = out + cap;
			z.avail_out = grown - cap;
			cap = grown;
		}
		lr = lzma_code(&z, LZMA_FINISH);
		if (lr == LZMA_STREAM_END)
			break;
		if (lr != LZMA_OK)
			r = lr == LZMA_MEM_ERROR	? -ENOMEM
			    : lr == LZMA_MEMLIMIT_ERROR ? SYMFILE_TOO_LARGE
							: SYMFILE_MALFORMED;
	}
	if (r == 0) {
		*ret = out;
		*ret_len = cap - z.avail_out;
		out = NULL;
	}
	lzma_end(&z);
	free(packed);
	free(out);
	return r;
}

int symtable_add_mini(const struct symfile *f, struct symtable_strings *ret_strings,
		      struct symtable_symbols *all)
{
	const struct symfile_section *s;
	struct symfile *mini = NULL;
	struct symtable t;
	uint8_t *bytes = NULL;
	size_t len;
	int r = symfile_section(f, ".gnu_debugdata", &s);

	if (!r)
		r = unpack_mini(f, s, &bytes, &len);
	if (r)
		return r;
	r = symfile_open_bytes((struct span){ .data = bytes, .len = len }, &mini);
	if (!r)
		r = symtable_find(mini, SYMTABLE_SYMTAB, &t);
	if (!r) {
		t.id = SYMTABLE_MINI;
		t.strings.bytes = malloc(t.strings.size + 1);
		r = t.strings.bytes ? 0 : -ENOMEM;
	}
	if (!r) {
		memcpy(t.strings.bytes, bytes + t.strings.offset, t.strings.size);
		*ret_strings = t.strings;
		r = symtable_add(mini, &t, all);
	}
	symfile_free(mini);
	free(bytes);
	return r;
}

/* --- names --- */

int symtable_name(const struct symfile *f, const struct symtable_strings *s, uint32_t offset,
		  char into[static SYMFILE_NAME])
{
	size_t n, done = 0;

	if (offset >= s->size)
		return SYMFILE_MALFORMED;
	n = numbers_smaller(s->size - offset, SYMFILE_NAME - 1);
	into[n] = '\0';
	if (s->bytes) {
		memcpy(into, s->bytes + offset, n);
		return 0;
	}
	while (done < n) {
		size_t part = numbers_smaller(n - done, 256);
		int r = symfile_read(f, s->offset + offset + done, into + done, part);

		if (r)
			return r;
		if (memchr(into + done, '\0', part))
			return 0;
		done += part;
	}
	return 0;
}
