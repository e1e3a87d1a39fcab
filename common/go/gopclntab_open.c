/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the table of a Go program. It is in the section of that name. The file is searched for a
 * header if it has no section headers, or if something else shows that it is a Go program.
 *
 * The start of text, if the header lacks it, and go:func.* are only in the module data
 * (runtime.moduledata). Its first words identify it: the header's address, then slices of all
 * tables.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/go/gopclntab_internal.h"

#define MAX_SEGMENTS 1024u
#define MAX_SECTIONS 65535u
#define MAX_NOTES 4096u
#define MAX_DYNAMIC 512u
#define MAX_FUNCTIONS (1u << 24)
#define MAX_TRIES 256u /* candidates for a header, or for module data */
#define MAX_TEXT_TRIES 8u
#define MAX_LOOKED 16384u     /* functions that are examined to distinguish Go 1.11 from 1.12 */
#define MAX_SCAN (1ull << 30) /* bytes searched in total: a file with holes may be huge */
#define CHUNK (64u << 10)

#define MAGIC_1_2 0xfffffffbu
#define MAGIC_1_16 0xfffffffau
#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u

/* Word indices in runtime.moduledata from Go 1.18 on. */
enum {
	MODULE_HEADER = 0,
	MODULE_NAMES = 1,
	MODULE_CUTAB = 4,
	MODULE_FILES = 7,
	MODULE_PCTAB = 10,
	MODULE_FUNCS = 13,
	MODULE_FTAB = 16,
	MODULE_MIN_PC = 20,
	MODULE_TEXT = 22,
	MODULE_AFTER = 24,
};

/* --- the table --- */

static int sets_up(struct gopclntab *t, const uint64_t words[9])
{
	unsigned first = t->format == GOPCLNTAB_1_16 ? 2 : 3; /* index of the first offset */
	uint64_t header = 8 + (first + 5) * 8ull;
	struct gopclntab_region *const regions[] = { &t->names, &t->cutab, &t->files, &t->pctab,
						     &t->funcs };

	for (unsigned i = 0; i < 5; i++) {
		uint64_t start = words[first + i], end = i < 4 ? words[first + i + 1] : t->size;

		if (start < header || start > end || end > t->size)
			return GOPCLNTAB_MALFORMED;
		*regions[i] = (struct gopclntab_region){ .offset = t->offset + start,
							 .size = end - start };
	}
	if (words[0] == 0 || words[0] > MAX_FUNCTIONS ||
	    words[0] * gopclntab_entry_size(t) + gopclntab_entry_size(t) / 2 > t->funcs.size)
		return GOPCLNTAB_MALFORMED;
	t->count = (uint32_t)words[0];
	return 0;
}

static int sets_up_1_2(struct gopclntab *t, uint64_t count)
{
	struct gopclntab_region table = { .offset = t->offset, .size = t->size };
	uint64_t functab;
	uint32_t at, files;
	int r;

	if (count == 0 || count > MAX_FUNCTIONS)
		return GOPCLNTAB_MALFORMED;
	functab = count * 16 + 8;
	r = gopclntab_fetch_in(t, table, 16 + functab, &at, 4);
	if (r == 0)
		r = gopclntab_fetch_in(t, table, at, &files, 4);
	if (r)
		return r;
	if ((uint64_t)files * 4 > t->size - at)
		return GOPCLNTAB_MALFORMED;
	t->count = (uint32_t)count;
	t->names = t->pctab = table;
	t->funcs = (struct gopclntab_region){ .offset = t->offset + 16, .size = functab };
	t->files = (struct gopclntab_region){ .offset = t->offset + at,
					      .size = (uint64_t)files * 4 };
	return 0;
}

/* Before Go 1.12, nfuncdata took four bytes, of which only the first is nonzero. Later it took one,
 * after three others. */
static void tell_late(struct gopclntab *t)
{
	for (uint32_t i = 0; i < t->count && i < MAX_LOOKED && !t->late; i++) {
		uint64_t offset;
		uint8_t last;

		if (gopclntab_description(t, i, &offset) == 0 &&
		    gopclntab_fetch(t, offset + 39, &last, 1) == 0)
			t->late = last != 0;
	}
}

/* Whether the place that points to the header is module data. If so, stores its words. */
static bool is_module(struct gopclntab *t, uint64_t vaddr)
{
	const struct {
		unsigned word;
		const struct gopclntab_region *region;
	} slices[] = { { MODULE_NAMES, &t->names }, { MODULE_CUTAB, &t->cutab },
		       { MODULE_FILES, &t->files }, { MODULE_PCTAB, &t->pctab },
		       { MODULE_FUNCS, &t->funcs }, { MODULE_FTAB, &t->funcs } };
	uint64_t words[GOPCLNTAB_MODULE_WORDS], offset, left;
	unsigned count;

	if (!gopclntab_locate(t, vaddr, &offset, &left))
		return false;
	count = left / 8 < GOPCLNTAB_MODULE_WORDS ? (unsigned)(left / 8) : GOPCLNTAB_MODULE_WORDS;
	if (count < MODULE_AFTER)
		return false;
	for (unsigned i = 0; i < count; i++)
		if (gopclntab_fetch_word(t, vaddr + i * 8ull, offset + i * 8ull, &words[i]) != 0)
			return false;
	if (words[MODULE_HEADER] != t->vaddr || words[MODULE_FTAB + 1] != t->count + 1ull)
		return false;
	for (size_t i = 0; i < sizeof(slices) / sizeof(slices[0]); i++)
		if (words[slices[i].word] != t->vaddr + (slices[i].region->offset - t->offset))
			return false;
	memcpy(t->module, words, sizeof(words[0]) * count);
	t->module_words = count;
	return true;
}

/* Calls `found` for each 8-aligned word of a region that equals a wanted one; stops when `found`
 * returns true. Returns 0, -errno or -ENOMEM. */
struct scan {
	const uint64_t *wanted;
	unsigned count;
	uint64_t mask;
	bool (*found)(struct gopclntab *t, uint64_t offset, uint64_t vaddr);
	unsigned tries;
};

static int scan(struct gopclntab *t, struct scan *s, const struct gopclntab_load *l,
		bool *ret_found)
{
	uint64_t *buf = malloc(CHUNK);
	uint64_t skip = -l->vaddr % 8;
	int r = 0;

	if (!buf)
		return -ENOMEM;
	for (uint64_t at = skip;
	     at < l->filesz && s->tries < MAX_TRIES && t->scan_left && !*ret_found;) {
		uint64_t left = l->filesz - at;
		int64_t n = t->reader.read(t->reader.ctx, l->offset + at, buf,
					   left < CHUNK ? (size_t)left : CHUNK);

		if (n < 8) {
			r = n < 0 ? (int)n : 0;
			break;
		}
		for (size_t i = 0; i < (size_t)n / 8 && !*ret_found; i++) {
			uint64_t word = buf[i] & s->mask;

			for (unsigned k = 0; k < s->count; k++)
				if (word == s->wanted[k] && s->tries++ < MAX_TRIES)
					*ret_found = s->found(t, l->offset + at + i * 8,
							      l->vaddr + at + i * 8);
		}
		at += (uint64_t)n / 8 * 8;
		t->scan_left -= (uint64_t)n < t->scan_left ? (uint64_t)n : t->scan_left;
	}
	free(buf);
	return r;
}

static bool module_found(struct gopclntab *t, uint64_t offset, uint64_t vaddr)
{
	return is_module(t, vaddr);
}

/* Like find_module, for files whose pointers are only in relocations. */
static int find_module_relocated(struct gopclntab *t)
{
	uint64_t count = t->rela.size / sizeof(Elf64_Rela);
	unsigned tries = 0;

	for (uint64_t i = 0; i < count && tries < MAX_TRIES && t->scan_left > sizeof(Elf64_Rela);
	     i++) {
		Elf64_Rela e;
		int r = gopclntab_fetch(t, t->rela.offset + i * sizeof(e), &e, sizeof(e));

		t->scan_left -= sizeof(e);
		if (r)
			return r < 0 ? r : 0;
		if (e.r_info == R_X86_64_RELATIVE && (uint64_t)e.r_addend == t->vaddr) {
			tries++;
			if (is_module(t, e.r_offset))
				break;
		}
	}
	return 0;
}

static int find_module(struct gopclntab *t)
{
	struct scan s = {
		.wanted = &t->vaddr, .count = 1, .mask = UINT64_MAX, .found = module_found
	};
	bool found = false;
	int r = 0;

	/* Module data is normally writable; try other segments last. */
	for (int write = 1; write >= 0; write--)
		for (unsigned i = 0; i < t->load_count && r == 0 && !found; i++)
			if (!t->loads[i].exec && t->loads[i].write == (bool)write)
				r = scan(t, &s, &t->loads[i], &found);
	return r || found ? r : find_module_relocated(t);
}

/* Whether the functions lie in code if text starts at `text`. The header's value may be 0; in
 * module data, 0 means damaged data. */
static bool text_fits(struct gopclntab *t, uint64_t text)
{
	t->text = text;
	return text && gopclntab_entry(t, 0, &t->low) == 0 &&
	       gopclntab_entry(t, t->count, &t->high) == 0 && t->low < t->high &&
	       gopclntab_is_code(t, t->low, t->high);
}

/* Reads the table at a place, if it is one. Returns 0, GOPCLNTAB_MALFORMED or -errno. */
static int try_table(struct gopclntab *t, uint64_t offset, uint64_t vaddr, uint64_t size)
{
	uint64_t words[9] = { 0 }, entry = 0, end = 0, description;
	uint8_t head[8];
	uint32_t magic, relative = 0;
	int r;

	if (offset > t->reader.size)
		return GOPCLNTAB_MALFORMED;
	t->offset = offset;
	t->vaddr = vaddr;
	t->size = size < t->reader.size - offset ? size : t->reader.size - offset;
	if (t->size < 8 + sizeof(words))
		return GOPCLNTAB_MALFORMED;
	r = gopclntab_fetch(t, offset, head, sizeof(head));
	if (r == 0)
		r = gopclntab_fetch(t, offset + 8, words, sizeof(words));
	if (r)
		return r;
	memcpy(&magic, head, 4);
	if (head[4] || head[5] || head[6] != 1 || head[7] != 8)
		return GOPCLNTAB_MALFORMED;
	switch (magic) {
	case MAGIC_1_2:
		t->format = GOPCLNTAB_1_2;
		break;
	case MAGIC_1_16:
		t->format = GOPCLNTAB_1_16;
		break;
	case MAGIC_1_18:
		t->format = GOPCLNTAB_1_18;
		break;
	case MAGIC_1_20:
		t->format = GOPCLNTAB_1_20;
		break;
	default:
		return GOPCLNTAB_MALFORMED;
	}
	r = t->format == GOPCLNTAB_1_2 ? sets_up_1_2(t, words[0]) : sets_up(t, words);
	if (r == 0)
		r = gopclntab_description(t, 0, &description);
	if (r)
		return r;
	if (t->format < GOPCLNTAB_1_18) {
		r = gopclntab_word(t, description, &entry);
		if (r)
			return r;
		t->late = false;
		if (t->format == GOPCLNTAB_1_2)
			tell_late(t);
		return text_fits(t, 1) && entry == t->low ? 0 : GOPCLNTAB_MALFORMED;
	}
	/* The description and the first entry both give the distance of the first function from the
	 * start of text. */
	t->text = 0;
	r = gopclntab_fetch(t, description, &relative, 4);
	if (r == 0)
		r = gopclntab_entry(t, 0, &entry);
	if (r == 0)
		r = gopclntab_entry(t, t->count, &end);
	return r ? r : entry == relative && entry < end ? 0 : GOPCLNTAB_MALFORMED;
}

/* Finds the start of text, if it is only in relocations or module data. */
static int find_text(struct gopclntab *t)
{
	uint64_t start = 0;
	int r;

	if (t->format < GOPCLNTAB_1_18)
		return 0;
	t->module_words = 0;
	r = find_module(t);
	if (r)
		return r;
	if (t->module_words && text_fits(t, t->module[MODULE_TEXT]) &&
	    t->low == t->module[MODULE_MIN_PC])
		return 0;
	r = gopclntab_word(t, t->offset + 24, &start);
	if (r)
		return r;
	return text_fits(t, start) ? 0 : GOPCLNTAB_MALFORMED;
}

static bool table_found(struct gopclntab *t, uint64_t offset, uint64_t vaddr)
{
	uint64_t in, left;

	/* Limited, because each search for the start of text reads the whole file. */
	return gopclntab_locate(t, vaddr, &in, &left) && in == offset &&
	       try_table(t, offset, vaddr, left) == 0 && t->text_tries++ < MAX_TEXT_TRIES &&
	       find_text(t) == 0;
}

static int scan_tables(struct gopclntab *t, bool *ret_found)
{
	static const uint64_t heads[] = {
		0x0801000000000000ull | MAGIC_1_2,
		0x0801000000000000ull | MAGIC_1_16,
		0x0801000000000000ull | MAGIC_1_18,
		0x0801000000000000ull | MAGIC_1_20,
	};
	struct scan s = { .wanted = heads, .count = 4, .mask = UINT64_MAX, .found = table_found };
	int r = 0;

	for (int exec = 0; exec <= 1; exec++)
		for (unsigned i = 0; i < t->load_count && r == 0 && !*ret_found; i++)
			if (t->loads[i].exec == (bool)exec)
				r = scan(t, &s, &t->loads[i], ret_found);
	return r;
}

/* --- the ELF file --- */

struct elf {
	struct gopclntab_region dynamic;
	bool has_sections;
	bool is_go; /* something else shows that this is a Go program */
	uint64_t vaddr;
	struct gopclntab_region section; /* the table's; size 0: none */
};

/* Whether the notes contain Go's build id. */
static bool is_go_note(struct gopclntab *t, struct gopclntab_region in)
{
	uint64_t at = 0;

	while (at + sizeof(Elf64_Nhdr) + 4 <= in.size && at < MAX_NOTES) {
		Elf64_Nhdr n;
		char name[4];

		if (gopclntab_fetch_in(t, in, at, &n, sizeof(n)) != 0 ||
		    gopclntab_fetch_in(t, in, at + sizeof(n), name, 4) != 0)
			return false;
		if (n.n_namesz == 4 && memcmp(name, "Go\0", 4) == 0)
			return true;
		at += sizeof(n) + (((uint64_t)n.n_namesz + 3) & ~3ull) +
		      (((uint64_t)n.n_descsz + 3) & ~3ull);
	}
	return false;
}

static int read_segments(struct gopclntab *t, const Elf64_Ehdr *h, struct elf *e)
{
	if (h->e_phnum > MAX_SEGMENTS || (h->e_phnum && h->e_phentsize != sizeof(Elf64_Phdr)))
		return GOPCLNTAB_NONE;
	for (unsigned i = 0; i < h->e_phnum; i++) {
		uint64_t at;
		Elf64_Phdr p;
		int r;

		if (__builtin_add_overflow(h->e_phoff, (uint64_t)i * sizeof(p), &at))
			return GOPCLNTAB_NONE;
		r = gopclntab_fetch(t, at, &p, sizeof(p));
		if (r)
			return r < 0 ? r : GOPCLNTAB_NONE;
		if (p.p_offset > t->reader.size)
			continue;
		if (p.p_filesz > t->reader.size - p.p_offset)
			p.p_filesz = t->reader.size - p.p_offset;
		if (p.p_vaddr > UINT64_MAX - p.p_filesz)
			continue;
		if (p.p_type == PT_LOAD && t->load_count < GOPCLNTAB_LOADS)
			t->loads[t->load_count++] =
				(struct gopclntab_load){ .vaddr = p.p_vaddr,
							 .offset = p.p_offset,
							 .filesz = p.p_filesz,
							 .exec = p.p_flags & PF_X,
							 .write = p.p_flags & PF_W };
		else if (p.p_type == PT_DYNAMIC)
			e->dynamic = (struct gopclntab_region){ .offset = p.p_offset,
								.size = p.p_filesz };
		else if (p.p_type == PT_NOTE && !e->is_go)
			e->is_go = is_go_note(t, (struct gopclntab_region){ .offset = p.p_offset,
									    .size = p.p_filesz });
	}
	return 0;
}

static int read_sections(struct gopclntab *t, const Elf64_Ehdr *h, struct elf *e)
{
	Elf64_Shdr s, names;
	uint64_t count = h->e_shnum, index = h->e_shstrndx;
	int r;

	if (!h->e_shoff || h->e_shentsize != sizeof(s) || h->e_shoff > t->reader.size)
		return 0;
	r = gopclntab_fetch(t, h->e_shoff, &s, sizeof(s));
	if (r)
		return r < 0 ? r : 0;
	count = count ? count : s.sh_size;
	index = index == SHN_XINDEX ? s.sh_link : index;
	if (count > MAX_SECTIONS || index == 0 || index >= count)
		return 0;
	r = gopclntab_fetch(t, h->e_shoff + index * sizeof(s), &names, sizeof(names));
	if (r)
		return r < 0 ? r : 0;
	for (uint64_t i = 1; i < count; i++) {
		char name[32] = "";

		r = gopclntab_fetch(t, h->e_shoff + i * sizeof(s), &s, sizeof(s));
		if (r)
			return r < 0 ? r : 0;
		e->has_sections = true;
		if (!(s.sh_flags & SHF_ALLOC) || s.sh_type == SHT_NOBITS ||
		    s.sh_name >= names.sh_size)
			continue;
		r = gopclntab_fetch_string(t,
					   (struct gopclntab_region){ .offset = names.sh_offset,
								      .size = names.sh_size },
					   s.sh_name, name, sizeof(name));
		if (r < 0)
			return r;
		if (strncmp(name, ".go", 3) == 0 && name[3] != 't') /* not .got */
			e->is_go = true;
		if (strcmp(name, ".note.go.buildid") == 0)
			e->is_go = true;
		if (strstr(name, "gopclntab") && e->section.size == 0) {
			e->section = (struct gopclntab_region){ .offset = s.sh_offset,
								.size = s.sh_size };
			e->vaddr = s.sh_addr;
			e->is_go = true;
		}
	}
	return 0;
}

static int read_dynamic(struct gopclntab *t, const struct elf *e)
{
	uint64_t rela = 0, size = 0, count = UINT64_MAX, offset, left;

	for (uint64_t i = 0; i < MAX_DYNAMIC; i++) {
		Elf64_Dyn d;
		int r = gopclntab_fetch_in(t, e->dynamic, i * sizeof(d), &d, sizeof(d));

		if (r < 0)
			return r;
		if (r || d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_RELA)
			rela = d.d_un.d_ptr;
		else if (d.d_tag == DT_RELASZ)
			size = d.d_un.d_val;
		else if (d.d_tag == DT_RELACOUNT)
			count = d.d_un.d_val;
	}
	if (!size || !gopclntab_locate(t, rela, &offset, &left))
		return 0;
	size = size < left ? size : left;
	if (count < size / sizeof(Elf64_Rela))
		size = count * sizeof(Elf64_Rela);
	t->rela = (struct gopclntab_region){ .offset = offset, .size = size };
	return 0;
}

static int find_table(struct gopclntab *t)
{
	struct elf e = { 0 };
	Elf64_Ehdr h;
	bool found = false;
	int r;

	t->scan_left = MAX_SCAN;
	r = gopclntab_fetch(t, 0, &h, sizeof(h));
	if (r)
		return r < 0 ? r : GOPCLNTAB_NONE;
	if (memcmp(h.e_ident, ELFMAG, SELFMAG) != 0)
		return GOPCLNTAB_NONE;
	if (h.e_ident[EI_CLASS] != ELFCLASS64 || h.e_ident[EI_DATA] != ELFDATA2LSB ||
	    h.e_machine != EM_X86_64)
		return GOPCLNTAB_UNSUPPORTED;
	if (h.e_type != ET_EXEC && h.e_type != ET_DYN)
		return GOPCLNTAB_NONE;
	r = read_segments(t, &h, &e);
	if (r == 0)
		r = read_sections(t, &h, &e);
	if (r == 0)
		r = read_dynamic(t, &e);
	if (r)
		return r;
	if (e.section.size) {
		r = try_table(t, e.section.offset, e.vaddr, e.section.size);
		if (r == 0)
			r = find_text(t);
		if (r < 0)
			return r;
		found = r == 0;
	}
	/* Do not search each word of a large file that is not a Go program. */
	if (!found && (e.is_go || !e.has_sections)) {
		r = scan_tables(t, &found);
		if (r)
			return r;
	}
	return found ? 0 : e.section.size ? GOPCLNTAB_MALFORMED : GOPCLNTAB_NONE;
}

int gopclntab_open(const struct gopclntab_reader *reader, struct gopclntab **ret)
{
	struct gopclntab *t;
	int r = gopclntab_new(reader, &t);

	if (r)
		return r;
	r = find_table(t);
	if (r) {
		gopclntab_free(t);
		return r;
	}
	*ret = t;
	return 0;
}
