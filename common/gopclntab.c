/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts, all little-endian, u the size of a pointer (8):
 *
 *   header 1.2   magic4 0 0 minLC ptrsize nfunc_u, functab, then offset4 of the file table; all
 *                offsets are from the header
 *          1.16  magic4 0 0 minLC ptrsize nfunc_u nfiles_u, then from the header the offsets_u of
 *                names, cutab, files, pctab, functab
 *          1.18  the same with textstart_u before the offsets (0 from Go 1.26 on)
 *   functab      entry and offset of each function, then the last one's end: _u each, from 1.18 on
 *                4 bytes each and the entry relative to the start of text
 *   function     entry (_u; 4 bytes from 1.18 on), name4 args4 deferreturn4 pcsp4 pcfile4 pcln4
 *                npcdata4, cu4 (1.16 on), startline4 (1.20 on), id1 flags1 pad1 nfuncdata1; before
 *                Go 1.12 nfuncdata4 instead of the last four. Then pcdata (4 each), then funcdata:
 *                addresses_u, from 1.18 on 4 bytes each, relative to go:func.*
 *
 * Only the module data (runtime.moduledata) says where text starts, in files whose header does not,
 * and where go:func.* is. It is found by what it starts with: the address of the header, and slices
 * of all the tables.
 *
 * The layout of inlined calls, and which pcdata and funcdata they are, changed within formats. All
 * that ever was is tried on some functions of the file at hand, and taken when everything in them
 * makes sense. So a later Go that moves them once more costs nothing but them.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/gopclntab.h"

#define MAX_LOADS 128u
#define MAX_SEGMENTS 1024u
#define MAX_SECTIONS 65535u
#define MAX_NOTES 4096u
#define MAX_DYNAMIC 512u
#define MAX_FUNCTIONS (1u << 24)
#define MAX_TRIES 256u /* of places that look like a header, or like module data */
#define MAX_TEXT_TRIES 8u
#define MAX_DEPTH 256u /* of inlined calls in one another */
#define PAGE 4096u
#define DEFAULT_CACHE (64u << 10)
#define MAX_CACHE (64u << 20)
#define CHUNK (64u << 10)
#define LAYOUT_FUNCTIONS 16u /* whose inlined calls must make sense */
#define LAYOUT_LOOKED 16384u /* functions that are looked at to find them */
#define LAYOUT_CALLS 64u     /* of one function */
#define LAYOUT_STEPS (8u << 20)
#define CALL_STEPS (2u << 20) /* through tables of values, for the calls of one address */

#define MAGIC_1_2 0xfffffffbu
#define MAGIC_1_16 0xfffffffau
#define MAGIC_1_18 0xfffffff0u
#define MAGIC_1_20 0xfffffff1u

/* Words of runtime.moduledata from Go 1.18 on, in units of 8 bytes. */
#define MODULE_WORDS 72u
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

/* All or part of a table, in file offsets. */
struct region {
	uint64_t offset, size;
};

struct load {
	uint64_t vaddr, offset, filesz;
	bool exec;
};

/* How inlined calls are stored. */
enum inline_kind {
	INLINE_1_9,  /* parent4 file4 line4 name4 */
	INLINE_1_12, /* parent2 id1 0 file4 line4 name4, offset4 of an instruction at the call */
	INLINE_1_20, /* id1 0 0 0 name4, offset4 of an instruction at the call, startline4 */
};
struct inline_layout {
	enum inline_kind kind;
	uint8_t pcdata, funcdata;
};

struct gopclntab {
	struct gopclntab_reader reader;
	struct load loads[MAX_LOADS];
	unsigned load_count;
	struct region rela; /* .rela.dyn: those of the type RELATIVE, by rising offsets */

	enum gopclntab_format format;
	uint64_t vaddr, offset, size; /* of the header, and how far the table may reach */
	uint32_t count;
	struct region names, cutab, files, pctab, funcs; /* files: of 1.2, its array of offsets */
	uint64_t text;
	unsigned text_tries;
	bool late; /* of 1.2: Go 1.12 or later */
	uint64_t low, high;
	uint64_t module[MODULE_WORDS];
	unsigned module_words;

	bool inline_tried, inline_known;
	struct inline_layout inlined;
	uint64_t gofunc;

	/* Direct mapped. */
	uint32_t slots; /* a power of two */
	uint64_t *tags; /* page + 1 */
	uint32_t *lens;
	uint8_t *pages;
};

/* --- reading --- */

/* The bytes at an offset, up to its page's end; valid until the next call. */
static int peek(struct gopclntab *t, uint64_t offset, const uint8_t **ret, size_t *ret_len)
{
	uint64_t number = offset / PAGE;
	uint32_t slot = (uint32_t)number & (t->slots - 1), in = (uint32_t)(offset % PAGE);
	uint8_t *bytes = t->pages + (size_t)slot * PAGE;

	if (offset >= t->reader.size)
		return GOPCLNTAB_MALFORMED;
	if (t->tags[slot] != number + 1) {
		int64_t n = t->reader.read(t->reader.ctx, number * PAGE, bytes, PAGE);

		t->tags[slot] = 0;
		if (n < 0)
			return (int)n;
		t->tags[slot] = number + 1;
		t->lens[slot] = n < (int64_t)PAGE ? (uint32_t)n : PAGE;
	}
	if (in >= t->lens[slot])
		return GOPCLNTAB_MALFORMED; /* it shrank */
	*ret = bytes + in;
	*ret_len = t->lens[slot] - in;
	return 0;
}

static int fetch(struct gopclntab *t, uint64_t offset, void *into, size_t n)
{
	while (n > 0) {
		const uint8_t *p;
		size_t len;
		int r = peek(t, offset, &p, &len);

		if (r)
			return r;
		len = len < n ? len : n;
		memcpy(into, p, len);
		into = (uint8_t *)into + len;
		offset += len;
		n -= len;
	}
	return 0;
}

/* n bytes at an offset into a region. */
static int fetch_in(struct gopclntab *t, struct region in, uint64_t at, void *into, size_t n)
{
	if (at > in.size || n > in.size - at)
		return GOPCLNTAB_MALFORMED;
	return fetch(t, in.offset + at, into, n);
}

static bool locate(const struct gopclntab *t, uint64_t vaddr, uint64_t *ret_offset,
		   uint64_t *ret_left)
{
	for (unsigned i = 0; i < t->load_count; i++) {
		const struct load *l = &t->loads[i];

		if (vaddr < l->vaddr || vaddr - l->vaddr >= l->filesz)
			continue;
		*ret_offset = l->offset + (vaddr - l->vaddr);
		*ret_left = l->filesz - (vaddr - l->vaddr);
		return true;
	}
	return false;
}

/* What the loader puts at an address; false where it has no relocation. */
static bool relocated(struct gopclntab *t, uint64_t vaddr, uint64_t *ret)
{
	uint64_t low = 0, high = t->rela.size / sizeof(Elf64_Rela);
	Elf64_Rela r;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (fetch(t, t->rela.offset + mid * sizeof(r), &r, sizeof(r)) != 0)
			return false;
		if (r.r_offset == vaddr) {
			*ret = (uint64_t)r.r_addend;
			return r.r_info == R_X86_64_RELATIVE;
		}
		if (r.r_offset < vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return false;
}

/* A pointer at an address whose file offset is known too. */
static int fetch_word(struct gopclntab *t, uint64_t vaddr, uint64_t offset, uint64_t *ret)
{
	if (relocated(t, vaddr, ret))
		return 0;
	return fetch(t, offset, ret, sizeof(*ret));
}

/* A pointer inside the table. */
static int table_word(struct gopclntab *t, uint64_t offset, uint64_t *ret)
{
	if (offset < t->offset || offset - t->offset > t->size ||
	    t->size - (offset - t->offset) < sizeof(*ret))
		return GOPCLNTAB_MALFORMED;
	return fetch_word(t, t->vaddr + (offset - t->offset), offset, ret);
}

static bool is_code(const struct gopclntab *t, uint64_t low, uint64_t high)
{
	for (unsigned i = 0; i < t->load_count; i++) {
		const struct load *l = &t->loads[i];

		if (l->exec && low >= l->vaddr && low <= high && high - l->vaddr <= l->filesz)
			return true;
	}
	return false;
}

/* --- functions --- */

static size_t functab_entry(const struct gopclntab *t)
{
	return t->format >= GOPCLNTAB_1_18 ? 8 : 16;
}

static size_t function_size(const struct gopclntab *t)
{
	return t->format == GOPCLNTAB_1_16 || t->format == GOPCLNTAB_1_20 ? 44 : 40;
}

/* The entry of function `index`, or where the last one ends. */
static int entry_of(struct gopclntab *t, uint32_t index, uint64_t *ret)
{
	uint64_t at = (uint64_t)index * functab_entry(t);
	uint32_t offset;
	int r;

	if (t->format < GOPCLNTAB_1_18)
		return table_word(t, t->funcs.offset + at, ret);
	r = fetch_in(t, t->funcs, at, &offset, sizeof(offset));
	if (r == 0)
		*ret = t->text + offset;
	return r;
}

/* Where its description is, in the file. */
static int description_of(struct gopclntab *t, uint32_t index, uint64_t *ret)
{
	size_t half = functab_entry(t) / 2;
	uint64_t at = 0, base = t->format == GOPCLNTAB_1_2 ? t->offset : t->funcs.offset,
		 size = t->format == GOPCLNTAB_1_2 ? t->size : t->funcs.size;
	int r = fetch_in(t, t->funcs, (uint64_t)index * 2 * half + half, &at, half);

	if (r)
		return r;
	if (at > size || function_size(t) > size - at)
		return GOPCLNTAB_MALFORMED;
	*ret = base + at;
	return 0;
}

int gopclntab_func(struct gopclntab *t, uint32_t index, struct gopclntab_func *ret)
{
	struct gopclntab_func f = { 0 };
	size_t fixed = function_size(t), at = t->format >= GOPCLNTAB_1_18 ? 4 : 8;
	uint8_t bytes[44];
	uint64_t offset;
	int r;

	if (index >= t->count)
		return GOPCLNTAB_MALFORMED;
	r = entry_of(t, index, &f.entry);
	if (r == 0)
		r = entry_of(t, index + 1, &f.end);
	if (r == 0)
		r = description_of(t, index, &offset);
	if (r == 0)
		r = fetch(t, offset, bytes, fixed);
	if (r)
		return r;
	if (f.entry > f.end || !is_code(t, f.entry, f.end))
		return GOPCLNTAB_MALFORMED;

	uint32_t *const fields[] = {
		&f.name, (uint32_t *)&f.args, &f.defer_return, &f.pcsp,	     &f.pcfile,
		&f.pcln, &f.npcdata,	      &f.cu,	       &f.start_line
	};
	size_t count = t->format == GOPCLNTAB_1_2 ? 7 : t->format < GOPCLNTAB_1_20 ? 8 : 9;

	for (size_t i = 0; i < count; i++, at += 4)
		memcpy(fields[i], bytes + at, 4);
	if (t->format == GOPCLNTAB_1_2 && !t->late) {
		f.defer_return = 0;
		memcpy(&f.nfuncdata, bytes + at, 4);
	} else {
		f.id = bytes[at];
		f.flags = bytes[at + 1];
		f.nfuncdata = bytes[at + 3];
	}
	f.data = offset + fixed;
	*ret = f;
	return 0;
}

int gopclntab_find(struct gopclntab *t, uint64_t address, uint32_t *ret)
{
	uint32_t low = 0, high = t->count;

	if (address < t->low || address >= t->high)
		return GOPCLNTAB_NONE;
	while (low < high) {
		uint32_t mid = low + (high - low) / 2;
		uint64_t entry;
		int r = entry_of(t, mid, &entry);

		if (r)
			return r < 0 ? r : GOPCLNTAB_NONE;
		if (entry <= address)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0)
		return GOPCLNTAB_NONE;
	*ret = low - 1;
	return 0;
}

/* --- strings --- */

static int fetch_string(struct gopclntab *t, struct region in, uint64_t at, char *into, size_t cap)
{
	size_t done = 0;

	if (at >= in.size)
		return GOPCLNTAB_MALFORMED;
	while (done + 1 < cap) {
		uint64_t left = in.size - at;
		const uint8_t *p, *end;
		size_t len;
		int r;

		if (left == 0)
			return GOPCLNTAB_MALFORMED; /* it does not end */
		r = peek(t, in.offset + at, &p, &len);
		if (r)
			return r;
		len = len < left ? len : (size_t)left;
		len = len < cap - 1 - done ? len : cap - 1 - done;
		end = memchr(p, '\0', len);
		memcpy(into + done, p, end ? (size_t)(end - p) : len);
		done += end ? (size_t)(end - p) : len;
		at += len;
		if (end)
			break;
	}
	into[done] = '\0';
	return done ? 0 : GOPCLNTAB_NONE;
}

int gopclntab_name(struct gopclntab *t, uint32_t name, char *into, size_t cap)
{
	into[0] = '\0';
	/* Before 1.16 an offset of 0 is the header; later on there is a first name. */
	return fetch_string(t, t->names, name, into, cap);
}

int gopclntab_file(struct gopclntab *t, const struct gopclntab_func *f, int32_t file, char *into,
		   size_t cap)
{
	bool old = t->format == GOPCLNTAB_1_2;
	uint32_t at;
	int r;

	into[0] = '\0';
	if (file < (old ? 1 : 0))
		return GOPCLNTAB_NONE;
	r = old ? fetch_in(t, t->files, (uint64_t)file * 4, &at, 4)
		: fetch_in(t, t->cutab, ((uint64_t)f->cu + (uint32_t)file) * 4, &at, 4);
	if (r)
		return r;
	if (at == UINT32_MAX)
		return GOPCLNTAB_NONE;
	return fetch_string(t, old ? t->names : t->files, at, into, cap);
}

/* --- values --- */

void gopclntab_values(struct gopclntab *t, const struct gopclntab_func *f, uint32_t table,
		      struct gopclntab_values *ret)
{
	*ret = (struct gopclntab_values){ .t = t,
					  .at = table,
					  .pc = f->entry,
					  .end = f->end,
					  .value = -1,
					  .first = true,
					  .over = table == 0 };
}

static int varint(struct gopclntab *t, uint64_t *at, uint32_t *ret)
{
	uint32_t value = 0;

	for (unsigned shift = 0; shift < 35; shift += 7) {
		const uint8_t *p;
		size_t len;
		int r;

		if (*at >= t->pctab.size)
			return GOPCLNTAB_MALFORMED;
		r = peek(t, t->pctab.offset + *at, &p, &len);
		if (r)
			return r;
		++*at;
		value |= (uint32_t)(*p & 0x7f) << shift;
		if (!(*p & 0x80)) {
			*ret = value;
			return 0;
		}
	}
	return GOPCLNTAB_MALFORMED;
}

int gopclntab_next(struct gopclntab_values *v, uint64_t *ret_start, uint64_t *ret_end,
		   int32_t *ret_value)
{
	uint32_t delta, step;
	int r;

	if (v->over || v->pc >= v->end)
		return GOPCLNTAB_NONE;
	r = varint(v->t, &v->at, &delta);
	if (r == 0 && delta == 0 && !v->first) {
		v->over = true;
		return GOPCLNTAB_NONE;
	}
	if (r == 0)
		r = varint(v->t, &v->at, &step);
	if (r == 0 && step == 0)
		r = GOPCLNTAB_MALFORMED; /* so that each step is one on */
	if (r) {
		v->over = true;
		return r;
	}
	v->value = (int32_t)((uint32_t)v->value + (delta & 1 ? ~(delta >> 1) : delta >> 1));
	v->first = false;
	*ret_start = v->pc;
	v->pc = step < v->end - v->pc ? v->pc + step : v->end;
	*ret_end = v->pc;
	*ret_value = v->value;
	return 0;
}

/* In at most *steps steps. */
static int value_at(struct gopclntab *t, const struct gopclntab_func *f, uint32_t table,
		    uint64_t address, uint32_t *steps, int32_t *ret)
{
	struct gopclntab_values v;
	uint64_t start, end;
	int32_t value;
	int r;

	gopclntab_values(t, f, table, &v);
	do {
		if (*steps == 0)
			return GOPCLNTAB_MALFORMED;
		--*steps;
		r = gopclntab_next(&v, &start, &end, &value);
		if (r)
			return r;
	} while (address >= end);
	if (address < start)
		return GOPCLNTAB_NONE;
	*ret = value;
	return 0;
}

int gopclntab_value(struct gopclntab *t, const struct gopclntab_func *f, uint32_t table,
		    uint64_t address, int32_t *ret)
{
	uint32_t steps = UINT32_MAX;

	return value_at(t, f, table, address, &steps, ret);
}

int gopclntab_pcdata(struct gopclntab *t, const struct gopclntab_func *f, uint32_t index,
		     uint32_t *ret)
{
	struct region table = { .offset = t->offset, .size = t->size };

	*ret = 0;
	if (index >= f->npcdata)
		return 0;
	return fetch_in(t, table, f->data - t->offset + (uint64_t)index * 4, ret, 4);
}

/* The address of funcdata `index`. 0, GOPCLNTAB_NONE. */
static int funcdata_of(struct gopclntab *t, const struct gopclntab_func *f, uint32_t index,
		       uint64_t *ret)
{
	uint64_t at = f->data + (uint64_t)f->npcdata * 4;
	struct region table = { .offset = t->offset, .size = t->size };
	uint32_t offset;
	int r;

	if (index >= f->nfuncdata)
		return GOPCLNTAB_NONE;
	if (t->format < GOPCLNTAB_1_18) {
		uint64_t in = at - t->offset; /* aligned as an address, which the header is too */

		in = (in + 7) & ~7ull;
		r = table_word(t, t->offset + in + (uint64_t)index * 8, ret);
		return r ? r : *ret ? 0 : GOPCLNTAB_NONE;
	}
	r = fetch_in(t, table, at - t->offset + (uint64_t)index * 4, &offset, 4);
	if (r)
		return r;
	if (offset == UINT32_MAX)
		return GOPCLNTAB_NONE;
	*ret = t->gofunc + offset;
	return 0;
}

/* --- inlined calls --- */

struct inlined {
	int32_t parent; /* before 1.20 */
	int32_t file, line;
	uint32_t name, start_line;
	uint32_t at; /* from 1.12 on: the offset of an instruction at the call */
};

static size_t inlined_size(const struct inline_layout *l)
{
	return l->kind == INLINE_1_12 ? 20 : 16;
}

static int fetch_inlined(struct gopclntab *t, const struct inline_layout *l, uint64_t tree,
			 uint32_t index, struct inlined *ret)
{
	uint64_t offset, left, vaddr;
	uint8_t bytes[20];
	size_t size = inlined_size(l);
	struct inlined c = { 0 };
	int16_t parent;
	int r;

	if (__builtin_add_overflow(tree, (uint64_t)index * size, &vaddr) ||
	    !locate(t, vaddr, &offset, &left) || left < size)
		return GOPCLNTAB_MALFORMED;
	r = fetch(t, offset, bytes, size);
	if (r)
		return r;
	if (l->kind == INLINE_1_20) {
		memcpy(&c.name, bytes + 4, 4);
		memcpy(&c.at, bytes + 8, 4);
		memcpy(&c.start_line, bytes + 12, 4);
	} else {
		memcpy(&parent, bytes, 2);
		c.parent = parent;
		memcpy(&c.file, bytes + 4, 4);
		memcpy(&c.line, bytes + 8, 4);
		memcpy(&c.name, bytes + 12, 4);
		if (l->kind == INLINE_1_12)
			memcpy(&c.at, bytes + 16, 4);
	}
	*ret = c;
	return 0;
}

/* A name's first byte, and the end of the one before it. */
static bool is_name(struct gopclntab *t, uint32_t name)
{
	uint8_t bytes[2];

	return name > 0 && fetch_in(t, t->names, name - 1, bytes, 2) == 0 && bytes[0] == 0 &&
	       bytes[1] > ' ' && bytes[1] != 0x7f;
}

static bool makes_sense(struct gopclntab *t, const struct inline_layout *l,
			const struct gopclntab_func *f, const struct inlined *c, uint32_t index)
{
	char path[2];
	int r;

	/* The first name of all has offset 0 from 1.16 on. */
	if (!is_name(t, c->name) && (c->name != 0 || t->format == GOPCLNTAB_1_2))
		return false;
	if (l->kind != INLINE_1_9 && c->at >= f->end - f->entry)
		return false;
	if (l->kind == INLINE_1_20)
		return c->start_line < 1u << 24;
	if (c->parent < -1 || c->parent == (int32_t)index || c->line < 0 || c->line >= 1 << 24)
		return false;
	r = gopclntab_file(t, f, c->file, path, sizeof(path));
	return r == 0;
}

/* The most that a table of values has; below -1 nothing makes sense. */
static int highest(struct gopclntab *t, const struct gopclntab_func *f, uint32_t table,
		   uint32_t *steps, int32_t *ret)
{
	struct gopclntab_values v;
	uint64_t start, end;
	int32_t value;
	int r;

	*ret = -1;
	gopclntab_values(t, f, table, &v);
	while ((r = gopclntab_next(&v, &start, &end, &value)) == 0) {
		if (value < -1 || *steps == 0)
			return GOPCLNTAB_MALFORMED;
		--*steps;
		*ret = value > *ret ? value : *ret;
	}
	return r == GOPCLNTAB_NONE ? 0 : r;
}

/* Do the functions of this file have inlined calls in this layout? */
static bool layout_fits(struct gopclntab *t, const struct inline_layout *l, uint32_t *steps)
{
	unsigned good = 0;

	for (uint32_t i = 0; i < t->count && i < LAYOUT_LOOKED && good < LAYOUT_FUNCTIONS; i++) {
		struct gopclntab_func f;
		uint64_t tree;
		uint32_t table;
		int32_t most;

		if (gopclntab_func(t, i, &f) != 0 || funcdata_of(t, &f, l->funcdata, &tree) != 0 ||
		    gopclntab_pcdata(t, &f, l->pcdata, &table) != 0 || table == 0)
			continue;
		if (highest(t, &f, table, steps, &most) != 0)
			return false;
		if (most < 0)
			continue;
		for (int32_t k = 0; k <= most && k < (int32_t)LAYOUT_CALLS; k++) {
			struct inlined c;

			if (fetch_inlined(t, l, tree, (uint32_t)k, &c) != 0 ||
			    !makes_sense(t, l, &f, &c, (uint32_t)k))
				return false;
		}
		good++;
	}
	return good > 0;
}

/* Where go:func.* may be: the word of the module data that usually says so, then any. */
static bool gofunc_fits(struct gopclntab *t, const struct inline_layout *l, uint32_t *steps)
{
	unsigned usual = t->format == GOPCLNTAB_1_18 ? 38 : 40;

	if (t->module_words == 0)
		return false;
	for (unsigned i = MODULE_AFTER - 1; i < t->module_words; i++) {
		unsigned word = i < MODULE_AFTER ? usual : i;
		uint64_t offset, left;

		if (word >= t->module_words || !locate(t, t->module[word], &offset, &left))
			continue;
		t->gofunc = t->module[word];
		if (layout_fits(t, l, steps))
			return true;
	}
	return false;
}

static void find_inlined(struct gopclntab *t)
{
	/* Go 1.13 to 1.15, 1.12, 1.9 to 1.11. */
	static const struct inline_layout old[] = {
		{ INLINE_1_12, 2, 4 },
		{ INLINE_1_12, 1, 2 },
		{ INLINE_1_9, 1, 2 },
	};
	static const struct inline_layout middle = { INLINE_1_12, 2, 3 };
	static const struct inline_layout latest = { INLINE_1_20, 2, 3 };
	uint32_t steps = LAYOUT_STEPS;

	t->inline_tried = true;
	switch (t->format) {
	case GOPCLNTAB_1_2:
		for (size_t i = 0; i < sizeof(old) / sizeof(old[0]) && !t->inline_known; i++) {
			t->inlined = old[i];
			t->inline_known = layout_fits(t, &old[i], &steps);
		}
		break;
	case GOPCLNTAB_1_16:
		t->inlined = middle;
		t->inline_known = layout_fits(t, &middle, &steps);
		break;
	case GOPCLNTAB_1_18:
	case GOPCLNTAB_1_20:
		t->inlined = t->format == GOPCLNTAB_1_18 ? middle : latest;
		t->inline_known = gofunc_fits(t, &t->inlined, &steps);
		break;
	}
}

static void position(struct gopclntab *t, const struct gopclntab_func *f, uint64_t address,
		     uint32_t *steps, struct gopclntab_call *c)
{
	int32_t value;

	c->file = value_at(t, f, f->pcfile, address, steps, &value) == 0 ? value : -1;
	c->line = value_at(t, f, f->pcln, address, steps, &value) == 0 && value > 0
			  ? (uint32_t)value
			  : 0;
}

int gopclntab_calls(struct gopclntab *t, const struct gopclntab_func *f, uint64_t address,
		    struct gopclntab_call *calls, unsigned max)
{
	struct gopclntab_call at = { 0 };
	unsigned count = 0;
	uint64_t tree = 0;
	uint32_t table = 0, steps = CALL_STEPS;
	int32_t index;
	bool has;

	if (max == 0)
		return -EINVAL;
	position(t, f, address, &steps, &at);
	if (!t->inline_tried)
		find_inlined(t);
	has = t->inline_known && gopclntab_pcdata(t, f, t->inlined.pcdata, &table) == 0 && table &&
	      funcdata_of(t, f, t->inlined.funcdata, &tree) == 0 &&
	      value_at(t, f, table, address, &steps, &index) == 0;
	for (unsigned depth = 0; has && index >= 0 && depth < MAX_DEPTH; depth++) {
		struct inlined c;

		if (fetch_inlined(t, &t->inlined, tree, (uint32_t)index, &c) != 0)
			break;
		at.name = c.name;
		at.start_line = c.start_line;
		if (count == max - 1 && count > 0)
			memmove(calls, calls + 1, --count * sizeof(*calls));
		if (count < max - 1)
			calls[count++] = at;
		at.start_line = 0;
		if (t->inlined.kind == INLINE_1_20) {
			/* Damage would say "at itself" again and again, until MAX_DEPTH. */
			if (c.at >= f->end - f->entry)
				break;
			position(t, f, f->entry + c.at, &steps, &at);
			if (value_at(t, f, table, f->entry + c.at, &steps, &index) != 0)
				break;
		} else {
			at.file = c.file;
			at.line = c.line > 0 ? (uint32_t)c.line : 0;
			index = c.parent;
		}
	}
	at.name = f->name;
	at.start_line = f->start_line;
	calls[count++] = at;
	return (int)count;
}

/* --- finding the table --- */

static int sets_up(struct gopclntab *t, const uint64_t words[9])
{
	unsigned first = t->format == GOPCLNTAB_1_16 ? 2 : 3; /* of the offsets */
	uint64_t header = 8 + (first + 5) * 8ull;
	struct region *const regions[] = { &t->names, &t->cutab, &t->files, &t->pctab, &t->funcs };

	for (unsigned i = 0; i < 5; i++) {
		uint64_t start = words[first + i], end = i < 4 ? words[first + i + 1] : t->size;

		if (start < header || start > end || end > t->size)
			return GOPCLNTAB_MALFORMED;
		*regions[i] = (struct region){ .offset = t->offset + start, .size = end - start };
	}
	if (words[0] == 0 || words[0] > MAX_FUNCTIONS ||
	    words[0] * functab_entry(t) + functab_entry(t) / 2 > t->funcs.size)
		return GOPCLNTAB_MALFORMED;
	t->count = (uint32_t)words[0];
	return 0;
}

static int sets_up_1_2(struct gopclntab *t, uint64_t count)
{
	struct region table = { .offset = t->offset, .size = t->size };
	uint64_t functab;
	uint32_t at, files;
	int r;

	if (count == 0 || count > MAX_FUNCTIONS)
		return GOPCLNTAB_MALFORMED;
	functab = count * 16 + 8;
	r = fetch_in(t, table, 16 + functab, &at, 4);
	if (r == 0)
		r = fetch_in(t, table, at, &files, 4);
	if (r)
		return r;
	if ((uint64_t)files * 4 > t->size - at)
		return GOPCLNTAB_MALFORMED;
	t->count = (uint32_t)count;
	t->names = t->pctab = table;
	t->funcs = (struct region){ .offset = t->offset + 16, .size = functab };
	t->files = (struct region){ .offset = t->offset + at, .size = (uint64_t)files * 4 };
	return 0;
}

/* nfuncdata took four bytes before Go 1.12, where it is small; then one, behind three others. */
static void tell_late(struct gopclntab *t)
{
	for (uint32_t i = 0; i < t->count && i < LAYOUT_LOOKED && !t->late; i++) {
		uint64_t offset;
		uint8_t last;

		if (description_of(t, i, &offset) == 0 && fetch(t, offset + 39, &last, 1) == 0)
			t->late = last != 0;
	}
}

/* Is a place that points to the header module data? Its words are kept then. */
static bool is_module(struct gopclntab *t, uint64_t vaddr)
{
	const struct {
		unsigned word;
		const struct region *region;
	} slices[] = { { MODULE_NAMES, &t->names }, { MODULE_CUTAB, &t->cutab },
		       { MODULE_FILES, &t->files }, { MODULE_PCTAB, &t->pctab },
		       { MODULE_FUNCS, &t->funcs }, { MODULE_FTAB, &t->funcs } };
	uint64_t words[MODULE_WORDS], offset, left;
	unsigned count;

	if (!locate(t, vaddr, &offset, &left))
		return false;
	count = left / 8 < MODULE_WORDS ? (unsigned)(left / 8) : MODULE_WORDS;
	if (count < MODULE_AFTER)
		return false;
	for (unsigned i = 0; i < count; i++)
		if (fetch_word(t, vaddr + i * 8ull, offset + i * 8ull, &words[i]) != 0)
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

/* Calls `found` for each 8-aligned word of a region that is one of the wanted; stops when it says
 * so. 0, -errno, -ENOMEM. */
struct scan {
	const uint64_t *wanted;
	unsigned count;
	uint64_t mask;
	bool (*found)(struct gopclntab *t, uint64_t offset, uint64_t vaddr);
	unsigned tries;
};

static int scan(struct gopclntab *t, struct scan *s, const struct load *l, bool *ret_found)
{
	uint64_t *buf = malloc(CHUNK);
	uint64_t skip = -l->vaddr % 8;
	int r = 0;

	if (!buf)
		return -ENOMEM;
	for (uint64_t at = skip; at < l->filesz && s->tries < MAX_TRIES && !*ret_found;) {
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
	}
	free(buf);
	return r;
}

static bool module_found(struct gopclntab *t, uint64_t offset, uint64_t vaddr)
{
	return is_module(t, vaddr);
}

/* Files whose pointers are in the relocations only. */
static int find_module_relocated(struct gopclntab *t)
{
	uint64_t count = t->rela.size / sizeof(Elf64_Rela);
	unsigned tries = 0;

	for (uint64_t i = 0; i < count && tries < MAX_TRIES; i++) {
		Elf64_Rela e;
		int r = fetch(t, t->rela.offset + i * sizeof(e), &e, sizeof(e));

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

	for (unsigned i = 0; i < t->load_count && r == 0 && !found; i++)
		if (!t->loads[i].exec)
			r = scan(t, &s, &t->loads[i], &found);
	return r || found ? r : find_module_relocated(t);
}

/* Is the text where the functions are? Its start may be 0 in the header, and in the module data of
 * nothing but damage. */
static bool text_fits(struct gopclntab *t, uint64_t text)
{
	t->text = text;
	return text && entry_of(t, 0, &t->low) == 0 && entry_of(t, t->count, &t->high) == 0 &&
	       t->low < t->high && is_code(t, t->low, t->high);
}

/* Takes the table at a place, if it is one. 0, GOPCLNTAB_MALFORMED, -errno. */
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
	r = fetch(t, offset, head, sizeof(head));
	if (r == 0)
		r = fetch(t, offset + 8, words, sizeof(words));
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
		r = description_of(t, 0, &description);
	if (r)
		return r;
	if (t->format < GOPCLNTAB_1_18) {
		r = table_word(t, description, &entry);
		if (r)
			return r;
		t->late = false;
		if (t->format == GOPCLNTAB_1_2)
			tell_late(t);
		return text_fits(t, 1) && entry == t->low ? 0 : GOPCLNTAB_MALFORMED;
	}
	/* Both say how far the first function is from the start of text. */
	t->text = 0;
	r = fetch(t, description, &relative, 4);
	if (r == 0)
		r = entry_of(t, 0, &entry);
	if (r == 0)
		r = entry_of(t, t->count, &end);
	return r ? r : entry == relative && entry < end ? 0 : GOPCLNTAB_MALFORMED;
}

/* What only the relocations or the module data say. */
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
	r = table_word(t, t->offset + 24, &start);
	if (r)
		return r;
	return text_fits(t, start) ? 0 : GOPCLNTAB_MALFORMED;
}

static bool table_found(struct gopclntab *t, uint64_t offset, uint64_t vaddr)
{
	uint64_t in, left;

	/* Looking for where text starts is a pass over the file. */
	return locate(t, vaddr, &in, &left) && in == offset &&
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
	struct region dynamic;
	bool has_sections;
	bool is_go; /* something else says so */
	uint64_t vaddr;
	struct region section; /* the table's; size 0: none */
};

/* Go's build id note. */
static bool is_go_note(struct gopclntab *t, struct region in)
{
	uint64_t at = 0;

	while (at + sizeof(Elf64_Nhdr) + 4 <= in.size && at < MAX_NOTES) {
		Elf64_Nhdr n;
		char name[4];

		if (fetch_in(t, in, at, &n, sizeof(n)) != 0 ||
		    fetch_in(t, in, at + sizeof(n), name, 4) != 0)
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
		r = fetch(t, at, &p, sizeof(p));
		if (r)
			return r < 0 ? r : GOPCLNTAB_NONE;
		if (p.p_offset > t->reader.size)
			continue;
		if (p.p_filesz > t->reader.size - p.p_offset)
			p.p_filesz = t->reader.size - p.p_offset;
		if (p.p_vaddr > UINT64_MAX - p.p_filesz)
			continue;
		if (p.p_type == PT_LOAD && t->load_count < MAX_LOADS)
			t->loads[t->load_count++] = (struct load){ .vaddr = p.p_vaddr,
								   .offset = p.p_offset,
								   .filesz = p.p_filesz,
								   .exec = p.p_flags & PF_X };
		else if (p.p_type == PT_DYNAMIC)
			e->dynamic = (struct region){ .offset = p.p_offset, .size = p.p_filesz };
		else if (p.p_type == PT_NOTE && !e->is_go)
			e->is_go = is_go_note(
				t, (struct region){ .offset = p.p_offset, .size = p.p_filesz });
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
	r = fetch(t, h->e_shoff, &s, sizeof(s));
	if (r)
		return r < 0 ? r : 0;
	count = count ? count : s.sh_size;
	index = index == SHN_XINDEX ? s.sh_link : index;
	if (count > MAX_SECTIONS || index == 0 || index >= count)
		return 0;
	r = fetch(t, h->e_shoff + index * sizeof(s), &names, sizeof(names));
	if (r)
		return r < 0 ? r : 0;
	for (uint64_t i = 1; i < count; i++) {
		char name[32] = "";

		r = fetch(t, h->e_shoff + i * sizeof(s), &s, sizeof(s));
		if (r)
			return r < 0 ? r : 0;
		e->has_sections = true;
		if (!(s.sh_flags & SHF_ALLOC) || s.sh_type == SHT_NOBITS ||
		    s.sh_name >= names.sh_size)
			continue;
		r = fetch_string(
			t, (struct region){ .offset = names.sh_offset, .size = names.sh_size },
			s.sh_name, name, sizeof(name));
		if (r < 0)
			return r;
		if (strncmp(name, ".go", 3) == 0 && name[3] != 't') /* not .got */
			e->is_go = true;
		if (strcmp(name, ".note.go.buildid") == 0)
			e->is_go = true;
		if (strstr(name, "gopclntab") && e->section.size == 0) {
			e->section = (struct region){ .offset = s.sh_offset, .size = s.sh_size };
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
		int r = fetch_in(t, e->dynamic, i * sizeof(d), &d, sizeof(d));

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
	if (!size || !locate(t, rela, &offset, &left))
		return 0;
	size = size < left ? size : left;
	if (count < size / sizeof(Elf64_Rela))
		size = count * sizeof(Elf64_Rela);
	t->rela = (struct region){ .offset = offset, .size = size };
	return 0;
}

static int open_file(struct gopclntab *t)
{
	struct elf e = { 0 };
	Elf64_Ehdr h;
	bool found = false;
	int r;

	r = fetch(t, 0, &h, sizeof(h));
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
	/* Large files that are not Go's are not worth a look at every word. */
	if (!found && (e.is_go || !e.has_sections)) {
		r = scan_tables(t, &found);
		if (r)
			return r;
	}
	return found ? 0 : e.section.size ? GOPCLNTAB_MALFORMED : GOPCLNTAB_NONE;
}

int gopclntab_open(const struct gopclntab_reader *reader, struct gopclntab **ret)
{
	size_t cache = reader->cache_size ? reader->cache_size : DEFAULT_CACHE;
	struct gopclntab *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return -ENOMEM;
	t->reader = *reader;
	t->slots = 1;
	while ((size_t)t->slots * 2 * PAGE <= cache && (size_t)t->slots * PAGE < MAX_CACHE)
		t->slots *= 2;
	t->tags = calloc(t->slots, sizeof(*t->tags));
	t->lens = calloc(t->slots, sizeof(*t->lens));
	t->pages = malloc((size_t)t->slots * PAGE);
	r = t->tags && t->lens && t->pages ? open_file(t) : -ENOMEM;
	if (r) {
		gopclntab_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

void gopclntab_free(struct gopclntab *t)
{
	if (!t)
		return;
	free(t->tags);
	free(t->lens);
	free(t->pages);
	free(t);
}

enum gopclntab_format gopclntab_format(const struct gopclntab *t)
{
	return t->format;
}

uint32_t gopclntab_count(const struct gopclntab *t)
{
	return t->count;
}

void gopclntab_range(const struct gopclntab *t, uint64_t *ret_low, uint64_t *ret_high)
{
	*ret_low = t->low;
	*ret_high = t->high;
}

size_t gopclntab_bytes(const struct gopclntab *t)
{
	return sizeof(*t) + t->slots * (PAGE + sizeof(*t->tags) + sizeof(*t->lens));
}
