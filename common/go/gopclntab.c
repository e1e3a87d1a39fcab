/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts. All are little-endian; u is the size of a pointer (8).
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
 */
#include "common/go/gopclntab_internal.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u
#define DEFAULT_CACHE (64u << 10)
#define MAX_CACHE (64u << 20)

/* --- reading --- */

/* Gives the bytes at a file offset, up to the end of a page, valid until the next call. Returns as
 * gopclntab_fetch does. */
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
		return GOPCLNTAB_MALFORMED; /* the file shrank */
	*ret = bytes + in;
	*ret_len = t->lens[slot] - in;
	return 0;
}

int gopclntab_fetch(struct gopclntab *t, uint64_t offset, void *into, size_t n)
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

int gopclntab_fetch_in(struct gopclntab *t, struct gopclntab_region in, uint64_t at, void *into,
		       size_t n)
{
	if (at > in.size || n > in.size - at)
		return GOPCLNTAB_MALFORMED;
	return gopclntab_fetch(t, in.offset + at, into, n);
}

bool gopclntab_locate(const struct gopclntab *t, uint64_t vaddr, uint64_t *ret_offset,
		      uint64_t *ret_left)
{
	for (unsigned i = 0; i < t->load_count; i++) {
		const struct gopclntab_load *l = &t->loads[i];

		if (vaddr < l->vaddr || vaddr - l->vaddr >= l->filesz)
			continue;
		*ret_offset = l->offset + (vaddr - l->vaddr);
		*ret_left = l->filesz - (vaddr - l->vaddr);
		return true;
	}
	return false;
}

/* Gives the word that the loader stores at an address. Returns false if it has no relocation. */
static bool relocated(struct gopclntab *t, uint64_t vaddr, uint64_t *ret)
{
	uint64_t low = 0, high = t->rela.size / sizeof(Elf64_Rela);
	Elf64_Rela r;

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (gopclntab_fetch(t, t->rela.offset + mid * sizeof(r), &r, sizeof(r)) != 0)
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

int gopclntab_fetch_word(struct gopclntab *t, uint64_t vaddr, uint64_t offset, uint64_t *ret)
{
	if (relocated(t, vaddr, ret))
		return 0;
	return gopclntab_fetch(t, offset, ret, sizeof(*ret));
}

int gopclntab_word(struct gopclntab *t, uint64_t offset, uint64_t *ret)
{
	if (offset < t->offset || offset - t->offset > t->size ||
	    t->size - (offset - t->offset) < sizeof(*ret))
		return GOPCLNTAB_MALFORMED;
	return gopclntab_fetch_word(t, t->vaddr + (offset - t->offset), offset, ret);
}

bool gopclntab_is_code(const struct gopclntab *t, uint64_t low, uint64_t high)
{
	for (unsigned i = 0; i < t->load_count; i++) {
		const struct gopclntab_load *l = &t->loads[i];

		if (l->exec && low >= l->vaddr && low <= high && high - l->vaddr <= l->filesz)
			return true;
	}
	return false;
}

/* --- functions --- */

size_t gopclntab_entry_size(const struct gopclntab *t)
{
	return t->format >= GOPCLNTAB_1_18 ? 8 : 16;
}

static size_t function_size(const struct gopclntab *t)
{
	return t->format == GOPCLNTAB_1_16 || t->format == GOPCLNTAB_1_20 ? 44 : 40;
}

int gopclntab_entry(struct gopclntab *t, uint32_t index, uint64_t *ret)
{
	uint64_t at = (uint64_t)index * gopclntab_entry_size(t);
	uint32_t offset;
	int r;

	if (t->format < GOPCLNTAB_1_18)
		return gopclntab_word(t, t->funcs.offset + at, ret);
	r = gopclntab_fetch_in(t, t->funcs, at, &offset, sizeof(offset));
	if (r == 0)
		*ret = t->text + offset;
	return r;
}

int gopclntab_description(struct gopclntab *t, uint32_t index, uint64_t *ret)
{
	size_t half = gopclntab_entry_size(t) / 2;
	uint64_t at = 0, base = t->format == GOPCLNTAB_1_2 ? t->offset : t->funcs.offset,
		 size = t->format == GOPCLNTAB_1_2 ? t->size : t->funcs.size;
	int r = gopclntab_fetch_in(t, t->funcs, (uint64_t)index * 2 * half + half, &at, half);

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
	r = gopclntab_entry(t, index, &f.entry);
	if (r == 0)
		r = gopclntab_entry(t, index + 1, &f.end);
	if (r == 0)
		r = gopclntab_description(t, index, &offset);
	if (r == 0)
		r = gopclntab_fetch(t, offset, bytes, fixed);
	if (r)
		return r;
	if (f.entry > f.end || !gopclntab_is_code(t, f.entry, f.end))
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
		int r = gopclntab_entry(t, mid, &entry);

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

int gopclntab_fetch_string(struct gopclntab *t, struct gopclntab_region in, uint64_t at, char *into,
			   size_t cap)
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
			return GOPCLNTAB_MALFORMED; /* the string has no end */
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
	/* Before 1.16, offset 0 is the header, so it means no name. Later it is the first name. */
	return gopclntab_fetch_string(t, t->names, name, into, cap);
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
	r = old ? gopclntab_fetch_in(t, t->files, (uint64_t)file * 4, &at, 4)
		: gopclntab_fetch_in(t, t->cutab, ((uint64_t)f->cu + (uint32_t)file) * 4, &at, 4);
	if (r)
		return r;
	if (at == UINT32_MAX)
		return GOPCLNTAB_NONE;
	return gopclntab_fetch_string(t, old ? t->names : t->files, at, into, cap);
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

#define VARINT 5 /* longest encoding, in bytes */

/* Reads the number at p, where `left` bytes are valid. Returns its length; 0: it has no end. */
static unsigned varint(const uint8_t *p, size_t left, uint32_t *ret)
{
	uint32_t value = 0;

	for (unsigned i = 0; i < VARINT && i < left; i++) {
		value |= (uint32_t)(p[i] & 0x7f) << 7 * i;
		if (!(p[i] & 0x80)) {
			*ret = value;
			return i + 1;
		}
	}
	return 0;
}

/* Reads two numbers at an offset, in place unless they cross a page. */
static int fetch_pair(struct gopclntab *t, uint64_t *at, uint32_t *ret_delta, uint32_t *ret_step)
{
	uint8_t copy[2 * VARINT];
	const uint8_t *p;
	size_t len;
	unsigned first, second;
	int r;

	if (*at >= t->pctab.size)
		return GOPCLNTAB_MALFORMED;

	uint64_t left = t->pctab.size - *at;

	r = peek(t, t->pctab.offset + *at, &p, &len);
	if (r)
		return r;
	if (len < sizeof(copy) && len < left) {
		len = left < sizeof(copy) ? (size_t)left : sizeof(copy);
		if (t->pctab.offset + *at + len > t->reader.size)
			len = (size_t)(t->reader.size - t->pctab.offset - *at);
		r = gopclntab_fetch(t, t->pctab.offset + *at, copy, len);
		if (r)
			return r;
		p = copy;
	}
	len = len < left ? len : (size_t)left;
	first = varint(p, len, ret_delta);
	if (first == 0)
		return GOPCLNTAB_MALFORMED;
	second = varint(p + first, len - first, ret_step);
	/* The 0 that ends a table may be the file's last byte. */
	*at += first + second;
	return second || *ret_delta == 0 ? 0 : GOPCLNTAB_MALFORMED;
}

int gopclntab_next(struct gopclntab_values *v, uint64_t *ret_start, uint64_t *ret_end,
		   int32_t *ret_value)
{
	uint32_t delta = 0, step = 0;
	int r;

	if (v->over || v->pc >= v->end)
		return GOPCLNTAB_NONE;
	r = fetch_pair(v->t, &v->at, &delta, &step);
	if (r == 0 && delta == 0 && !v->first) {
		v->over = true;
		return GOPCLNTAB_NONE;
	}
	if (r == 0 && step == 0)
		r = GOPCLNTAB_MALFORMED; /* each step must advance */
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

int gopclntab_value_within(struct gopclntab *t, const struct gopclntab_func *f, uint32_t table,
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

int gopclntab_pcdata(struct gopclntab *t, const struct gopclntab_func *f, uint32_t index,
		     uint32_t *ret)
{
	struct gopclntab_region table = { .offset = t->offset, .size = t->size };

	*ret = 0;
	if (index >= f->npcdata)
		return 0;
	return gopclntab_fetch_in(t, table, f->data - t->offset + (uint64_t)index * 4, ret, 4);
}

/* --- the object --- */

int gopclntab_new(const struct gopclntab_reader *reader, struct gopclntab **ret)
{
	size_t cache = reader->cache_size ? reader->cache_size : DEFAULT_CACHE;
	struct gopclntab *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	t->reader = *reader;
	t->slots = 1;
	while ((size_t)t->slots * 2 * PAGE <= cache && (size_t)t->slots * PAGE < MAX_CACHE)
		t->slots *= 2;
	t->tags = calloc(t->slots, sizeof(*t->tags));
	t->lens = calloc(t->slots, sizeof(*t->lens));
	t->pages = malloc((size_t)t->slots * PAGE);
	if (!t->tags || !t->lens || !t->pages) {
		gopclntab_free(t);
		return -ENOMEM;
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

size_t gopclntab_bytes(const struct gopclntab *t)
{
	return sizeof(*t) + t->slots * (PAGE + sizeof(*t->tags) + sizeof(*t->lens));
}
