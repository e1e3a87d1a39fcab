/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/elf/elfview.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include "common/base/bytes/numbers.h"

#define MAX_SYMBOLS (4u << 20)
#define MAX_STRINGS (64u << 20)
#define CHUNK_SYMBOLS 512
#define MAX_CHAIN 4096	      /* symbols of one hash bucket */
#define MAX_WORDS (64u << 20) /* bytes of a section that are searched */
#define MAX_FIND (512u << 20)
#define CHUNK_FIND (64u << 10)
#define MAX_TEXT 128 /* bytes of a string that is searched, with both NULs */
/* A result of callbacks that have what they looked for. No other result has this number. */
#define FILLED 1000

void elfview_init(struct elfview *im, const struct symfile *file)
{
	*im = (struct elfview){ .file = file };
}

void elfview_done(struct elfview *im)
{
	relas_done(&im->relas);
	funcbounds_free(im->bounds);
	*im = (struct elfview){ 0 };
}

/* --- bytes --- */

int elfview_read(const struct elfview *im, uint64_t address, void *into, size_t n)
{
	uint64_t offset, left;
	int r = symfile_offset(im->file, address, &offset, &left);

	if (r == 0 && n > left)
		r = SYMFILE_NONE;
	return r ? r : symfile_read(im->file, offset, into, n);
}

int elfview_string(const struct elfview *im, uint64_t address, char *into, size_t size)
{
	uint64_t offset, left;
	int r = symfile_offset(im->file, address, &offset, &left);

	if (r)
		return r;
	if (left < size - 1)
		size = (size_t)left + 1;
	r = symfile_read(im->file, offset, into, size - 1);
	into[r ? 0 : size - 1] = '\0';
	return r;
}

int elfview_find(const struct elfview *im, const char *section, struct span what, uint64_t from,
		 uint64_t *ret)
{
	const struct symfile_section *s;
	int r = symfile_section(im->file, section, &s);

	if (r || s->type == SHT_NOBITS || s->size > MAX_FIND || what.len > CHUNK_FIND / 2)
		return SYMFILE_NONE;

	uint64_t at = from > s->addr ? from - s->addr : 0;
	uint8_t *chunk = malloc(CHUNK_FIND);

	r = chunk ? SYMFILE_NONE : -ENOMEM;
	/* Chunks overlap, since the bytes may cross their boundary. */
	while (r == SYMFILE_NONE && at < s->size && s->size - at >= what.len) {
		const uint64_t left = s->size - at;
		const size_t n = numbers_smaller(left, CHUNK_FIND);

		r = symfile_read(im->file, s->offset + at, chunk, n);
		const uint8_t *found = r ? NULL : memmem(chunk, n, what.data, what.len);

		if (found)
			*ret = s->addr + at + (uint64_t)(found - chunk);
		else
			r = r ? r : SYMFILE_NONE;
		at += n - (what.len - 1);
	}
	free(chunk);
	return r;
}

int elfview_text(const struct elfview *im, const char *section, const char *text, uint64_t *ret)
{
	const struct symfile_section *s;
	const size_t len = strlen(text);
	char bytes[MAX_TEXT] = { 0 }, first[MAX_TEXT];
	int r = symfile_section(im->file, section, &s);

	assert(len < MAX_TEXT - 1);
	if (r)
		return r;
	if (s->type != SHT_NOBITS && elfview_string(im, s->addr, first, len + 2) == 0 &&
	    strcmp(first, text) == 0) {
		*ret = s->addr;
		return 0;
	}
	memcpy(bytes + 1, text, len);
	r = elfview_find(im, section,
			 (struct span){ .data = (const uint8_t *)bytes, .len = len + 2 }, 0, ret);
	*ret += r == 0;
	return r;
}

/* --- symbols --- */

/* A symbol table and its strings. */
struct elfview_symbols {
	const struct symfile_section *symbols, *strings;
	uint64_t count;
};

static int find_symbols(const struct elfview *im, bool dynamic, struct elfview_symbols *ret)
{
	int r = symfile_section(im->file, dynamic ? ".dynsym" : ".symtab", &ret->symbols);

	if (r == 0)
		r = symfile_section(im->file, dynamic ? ".dynstr" : ".strtab", &ret->strings);
	if (r)
		return r;
	if (ret->symbols->type == SHT_NOBITS || ret->strings->type == SHT_NOBITS)
		return SYMFILE_NONE;
	ret->count = ret->symbols->size / sizeof(Elf64_Sym);
	return ret->count > MAX_SYMBOLS ? SYMFILE_TOO_LARGE : 0;
}

static int read_symbol(const struct elfview *im, const struct elfview_symbols *t, uint64_t i,
		       Elf64_Sym *ret)
{
	if (i >= t->count)
		return SYMFILE_MALFORMED;
	return symfile_read(im->file, t->symbols->offset + i * sizeof(*ret), ret, sizeof(*ret));
}

static int read_name(const struct elfview *im, const struct elfview_symbols *t, uint32_t name,
		     char into[static ELFVIEW_NAME])
{
	uint64_t left = name < t->strings->size ? t->strings->size - name : 0;
	size_t n = numbers_smaller(left, ELFVIEW_NAME - 1);
	int r = symfile_read(im->file, t->strings->offset + name, into, n);

	into[r ? 0 : n] = '\0';
	return r;
}

static struct elfview_symbol symbol_from(const Elf64_Sym *s)
{
	return (struct elfview_symbol){ .value = s->st_value,
					.size = s->st_size,
					.type = ELF64_ST_TYPE(s->st_info) };
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (uint8_t)*name;
	return h;
}

static int read_u32(const struct elfview *im, const struct symfile_section *s, uint64_t at,
		    uint32_t *ret)
{
	if (at > s->size || s->size - at < 4)
		return SYMFILE_MALFORMED;
	return symfile_read(im->file, s->offset + at, ret, 4);
}

/* Searches .gnu.hash: four numbers, a Bloom filter, buckets, and the hashes of symbols. A hash with
 * its lowest bit set is the last one of a bucket. */
static int find_hashed(const struct elfview *im, const struct symfile_section *hash,
		       const struct elfview_symbols *t, const char *name,
		       struct elfview_symbol *ret)
{
	uint32_t head[4], h = gnu_hash(name), at, have;
	uint64_t word, buckets, chains;
	char found[ELFVIEW_NAME];
	Elf64_Sym s;
	int r;

	if (hash->size < sizeof(head))
		return SYMFILE_MALFORMED;
	r = symfile_read(im->file, hash->offset, head, sizeof(head));
	if (r)
		return r;
	buckets = sizeof(head) + (uint64_t)head[2] * 8;
	chains = buckets + (uint64_t)head[0] * 4;
	if (head[0] == 0 || head[2] == 0 || chains > hash->size)
		return SYMFILE_MALFORMED;
	r = symfile_read(im->file, hash->offset + sizeof(head) + (uint64_t)(h / 64 % head[2]) * 8,
			 &word, 8);
	if (r)
		return r;
	if (!(word >> (h % 64) & 1) || !(word >> ((h >> (head[3] & 31)) % 64) & 1))
		return SYMFILE_NONE;
	r = read_u32(im, hash, buckets + (uint64_t)(h % head[0]) * 4, &at);
	if (r)
		return r;
	if (at < head[1])
		return SYMFILE_NONE;
	for (int i = 0; i < MAX_CHAIN; i++, at++) {
		r = read_u32(im, hash, chains + (uint64_t)(at - head[1]) * 4, &have);
		if (r)
			return r;
		if ((have | 1) == (h | 1)) {
			r = read_symbol(im, t, at, &s);
			if (r == 0)
				r = read_name(im, t, s.st_name, found);
			if (r)
				return r;
			if (s.st_shndx != SHN_UNDEF && strcmp(found, name) == 0) {
				*ret = symbol_from(&s);
				return 0;
			}
		}
		if (have & 1)
			break;
	}
	return SYMFILE_NONE;
}

/* In addition to enum symfile_verdict. */
enum { FIRST_TAKEN = 100 };

static int take_first(void *ctx, const char *name, const struct elfview_symbol *s)
{
	struct {
		const char *name;
		struct elfview_symbol *ret;
	} *want = ctx;

	if (strcmp(name, want->name) != 0)
		return 0;
	*want->ret = *s;
	return FIRST_TAKEN;
}

static int find_among(const struct elfview *im, bool dynamic, const char *name,
		      struct elfview_symbol *ret)
{
	struct {
		const char *name;
		struct elfview_symbol *ret;
	} want = { name, ret };
	int r = elfview_symbols(im, dynamic, name, take_first, &want);

	return r == FIRST_TAKEN ? 0 : r ? r : SYMFILE_NONE;
}

int elfview_exported(const struct elfview *im, const char *name, struct elfview_symbol *ret)
{
	const struct symfile_section *hash;
	struct elfview_symbols t;
	int r = find_symbols(im, true, &t);

	if (r)
		return r;
	if (symfile_section(im->file, ".gnu.hash", &hash) == 0 && hash->type != SHT_NOBITS)
		return find_hashed(im, hash, &t, name, ret);
	return find_among(im, true, name, ret);
}

int elfview_local(const struct elfview *im, const char *name, struct elfview_symbol *ret)
{
	return find_among(im, false, name, ret);
}

int elfview_symbols(const struct elfview *im, bool dynamic, const char *prefix,
		    int (*each)(void *, const char *, const struct elfview_symbol *), void *ctx)
{
	size_t len = strlen(prefix);
	Elf64_Sym chunk[CHUNK_SYMBOLS];
	struct elfview_symbols t;
	char *strings;
	int r = find_symbols(im, dynamic, &t);

	if (r)
		return r;
	if (t.strings->size > MAX_STRINGS)
		return SYMFILE_TOO_LARGE;
	if (t.strings->size > symfile_size(im->file))
		return SYMFILE_MALFORMED;
	strings = malloc(t.strings->size + 1);
	if (!strings)
		return -ENOMEM;
	r = symfile_read(im->file, t.strings->offset, strings, t.strings->size);
	strings[t.strings->size] = '\0';
	for (uint64_t at = 0; r == 0 && at < t.count; at += CHUNK_SYMBOLS) {
		uint64_t n = numbers_smaller(t.count - at, CHUNK_SYMBOLS);

		r = symfile_read(im->file, t.symbols->offset + at * sizeof(chunk[0]), chunk,
				 n * sizeof(chunk[0]));
		for (uint64_t i = 0; r == 0 && i < n; i++) {
			const Elf64_Sym *s = &chunk[i];
			struct elfview_symbol found = symbol_from(s);
			char name[ELFVIEW_NAME];

			if (s->st_shndx == SHN_UNDEF || s->st_name >= t.strings->size ||
			    strncmp(strings + s->st_name, prefix, len) != 0)
				continue;
			name[0] = '\0';
			strncat(name, strings + s->st_name, sizeof(name) - 1);
			r = each(ctx, name, &found);
		}
	}
	free(strings);
	return r;
}

/* --- relocations --- */

/* Gives the value that a relocation stores. */
static int apply(const struct elfview *im, const Elf64_Rela *rela, struct elfview_value *ret)
{
	uint32_t type = ELF64_R_TYPE(rela->r_info), symbol = ELF64_R_SYM(rela->r_info);
	struct elfview_symbols t;
	Elf64_Sym s;
	int r;

	ret->kind = ELFVIEW_OTHER;
	ret->value = (uint64_t)rela->r_addend;
	if (type == R_X86_64_RELATIVE)
		ret->kind = ELFVIEW_ADDRESS;
	else if (type == R_X86_64_DTPMOD64)
		ret->kind = ELFVIEW_DTPMOD;
	else if (type == R_X86_64_TPOFF64)
		ret->kind = ELFVIEW_TPOFF;
	if (type != R_X86_64_64 && type != R_X86_64_GLOB_DAT && type != R_X86_64_JUMP_SLOT)
		return 0;
	r = find_symbols(im, true, &t);
	if (r == 0)
		r = read_symbol(im, &t, symbol, &s);
	if (r == 0)
		r = read_name(im, &t, s.st_name, ret->name);
	if (r)
		return r;
	ret->kind = s.st_shndx == SHN_UNDEF ? ELFVIEW_SYMBOL : ELFVIEW_ADDRESS;
	ret->value += s.st_value;
	return 0;
}

struct word_filling {
	const struct elfview *im;
	uint64_t address;
	uint64_t *words;
	size_t bytes; /* of the words */
	size_t left;  /* relocations that are still looked at: a file can have any number of them */
};

static int fill_word(void *ctx, const Elf64_Rela *rela)
{
	struct word_filling *x = ctx;
	struct elfview_value value = { 0 };
	const uint64_t distance = rela->r_offset - x->address;

	if (!x->left--)
		return FILLED;
	if (distance >= x->bytes || distance % sizeof(*x->words))
		return 0;
	const int r = apply(x->im, rela, &value);

	if (r == 0 && value.kind == ELFVIEW_ADDRESS)
		x->words[distance / sizeof(*x->words)] = value.value;
	return r;
}

int elfview_words(struct elfview *im, uint64_t address, uint64_t *ret, size_t n)
{
	struct word_filling x = {
		.im = im, .address = address, .words = ret, .bytes = n * sizeof(*ret), .left = 2 * n
	};
	int r = elfview_read(im, address, ret, n * sizeof(*ret));

	if (r == 0)
		r = relas_within(&im->relas, im->file, address, address + n * sizeof(*ret),
				 fill_word, &x);
	return r == FILLED ? 0 : r;
}

struct word_finding {
	const struct elfview *im;
	struct elfview_value *value;
};

static int find_word(void *ctx, const Elf64_Rela *rela)
{
	const struct word_finding *x = ctx;
	const int r = apply(x->im, rela, x->value);

	return r ? r : FILLED;
}

int elfview_word(struct elfview *im, uint64_t address, struct elfview_value *ret)
{
	struct word_finding x = { im, ret };

	*ret = (struct elfview_value){ .kind = ELFVIEW_BYTES };
	const int r = relas_within(&im->relas, im->file, address, address + 1, find_word, &x);

	if (r)
		return r == FILLED ? 0 : r;
	return elfview_read(im, address, &ret->value, sizeof(ret->value));
}

static void add_place(uint64_t address, uint64_t *at, size_t n, size_t *count)
{
	for (size_t i = 0; i < *count; i++)
		if (at[i] == address)
			return;
	if (*count < n)
		at[(*count)++] = address;
}

struct place_finding {
	uint64_t to, *at;
	size_t n, count;
};

static int find_place(void *ctx, const Elf64_Rela *rela)
{
	struct place_finding *x = ctx;

	if (ELF64_R_TYPE(rela->r_info) == R_X86_64_RELATIVE && (uint64_t)rela->r_addend == x->to)
		add_place(rela->r_offset, x->at, x->n, &x->count);
	return 0;
}

int elfview_pointers(struct elfview *im, uint64_t to, uint64_t *ret, size_t n, size_t *ret_count)
{
	static const char *const sections[] = { ".data.rel.ro", ".data", ".rodata" };
	const struct symfile_section *s;
	uint64_t words[512];
	struct place_finding x = { .to = to, .at = ret, .n = n };
	int r = relas_all(&im->relas, im->file, find_place, &x);

	for (size_t k = 0; r == 0 && k < sizeof(sections) / sizeof(sections[0]); k++) {
		if (symfile_section(im->file, sections[k], &s) != 0 || s->type == SHT_NOBITS ||
		    s->size > MAX_WORDS)
			continue;
		for (uint64_t from = 0; r == 0 && s->size - from >= 8; from += sizeof(words)) {
			uint64_t left = s->size - from;
			size_t bytes = left < sizeof(words) ? (size_t)left & ~7ull : sizeof(words);

			r = symfile_read(im->file, s->offset + from, words, bytes);
			for (size_t i = 0; r == 0 && i < bytes / 8; i++)
				if (words[i] == to)
					add_place(s->addr + from + i * 8, ret, n, &x.count);
			if (left <= sizeof(words))
				break;
		}
	}
	*ret_count = x.count;
	return r;
}

int elfview_defined(const struct elfview *im, const char *name, struct elfview_symbol *ret)
{
	int r = elfview_exported(im, name, ret);

	return r ? elfview_local(im, name, ret) : 0;
}

/* --- code ranges --- */

int elfview_function(struct elfview *im, uint64_t address, uint64_t *ret_start, uint64_t *ret_end)
{
	int r = im->bounds ? 0 : funcbounds_new(im->file, &im->bounds);

	return r ? r : funcbounds_entry(im->bounds, address, ret_start, ret_end);
}
