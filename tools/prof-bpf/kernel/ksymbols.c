/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/kernel/ksymbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "common/base/bytes/numbers.h"

/* Initial sizes; small in a fuzz target, so that it reaches the boundaries. */
#ifndef KSYMBOLS_FIRST
#define KSYMBOLS_FIRST (96u << 10)
#define KSYMBOLS_FIRST_POOL (2u << 20)
#endif
#define NAME_MAX_BYTES 1023u
#define MODULES_MAX 4096u
#define DYNAMIC_MAX 65536u
/* The largest size of a function; an address beyond it has no symbol. */
#define REACH (2u << 20)

struct ksymbol {
	uint32_t offset; /* distance from base */
	uint32_t name;	 /* offset in the pool, which has a length of two bytes, then the name */
	uint16_t module; /* 0: the kernel proper */
	uint8_t rank;	 /* lower: the name is plainer */
	uint8_t padding; /* bytes before it that belong to it, at most PADDING_MAX */
};

/* Half of the symbols of a kernel since 6.2 begin so. They name the padding before the function of
 * the same name, which a mitigation may fill with code. */
#define PADDING "__pfx_"
#define PADDING_MAX 63u

#define PACK_SYMBOLS 32u
#define PACK_EACH 8u
/* Parameters of zlib, which suit packs of 1 KiB. Codes of their own would make packs 13 % smaller,
 * but unpacking one would take twice the time. */
#define PACK_LEVEL 1
#define PACK_WINDOW 11
#define PACK_MEMORY 4
#define PACK_STRATEGY Z_FIXED
#define PACK_SPARE 258 /* zlib is faster while it has room for its longest match */
#define PACK_RATIO 2   /* the names of a kernel shrink by about this factor */

/* A pack of symbols: the distance of each from the previous one (4 bytes), then modules and lengths
 * of names (2 bytes each), then the names. Padding stands in the bits of a length above NAME_BITS.
 */
#define NAME_BITS 10
struct ksymbols_pack {
	uint32_t offset; /* of the first symbol, as in struct ksymbol, less its padding */
	uint32_t at;	 /* its place in `packed` */
	uint32_t plain;	 /* bytes unpacked */
};

/* A table that is being packed. All packs share a stream, since a new one for each costs more. */
struct ksymbols_packing {
	z_stream z;
	size_t count, next; /* packs in all; the one to pack next */
	size_t at, cap;	    /* bytes of `packed` that are used, and allocated */
};

struct ksymbols_bpf {
	uint64_t start, length; /* length 0: unknown */
	char *name;
};

static void drop_packs(struct ksymbols *t)
{
	free(t->packs);
	free(t->packed);
	free(t->unpacked);
	t->packs = NULL;
	t->packed = t->unpacked = NULL;
	t->pack_count = 0;
	t->unpacked_bytes = 0;
	if (t->packing)
		deflateEnd(&t->packing->z);
	free(t->packing);
	t->packing = NULL;
	if (t->unpacking)
		inflateEnd(t->unpacking);
	free(t->unpacking);
	t->unpacking = NULL;
}

void ksymbols_done(struct ksymbols *t)
{
	for (unsigned i = 0; i < t->module_count; i++)
		free(t->modules[i]);
	for (size_t i = 0; i < t->dynamic_len; i++)
		free(t->dynamic[i].name);
	free(t->modules);
	free(t->dynamic);
	free(t->at);
	free(t->pool);
	drop_packs(t);
	*t = (struct ksymbols){ 0 };
}

/* --- symbols of BPF --- */

/* Returns the index of the first symbol with a start above addr. */
static size_t dynamic_search(const struct ksymbols *t, uint64_t addr)
{
	size_t lo = 0, hi = t->dynamic_len;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->dynamic[mid].start > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

void ksymbols_remove_bpf(struct ksymbols *t, uint64_t start)
{
	size_t i = dynamic_search(t, start);

	if (!i || t->dynamic[i - 1].start != start)
		return;
	free(t->dynamic[i - 1].name);
	memmove(&t->dynamic[i - 1], &t->dynamic[i], (t->dynamic_len - i) * sizeof(*t->dynamic));
	t->dynamic_len--;
}

int ksymbols_add_bpf(struct ksymbols *t, uint64_t start, uint64_t length, struct str name)
{
	/* The name is stored as a string, and an empty one is useless. */
	name.len = (uint32_t)strnlen(name.data, name.len);
	if (!start || !name.len || t->dynamic_len >= DYNAMIC_MAX)
		return 0;
	ksymbols_remove_bpf(t, start);
	if (t->dynamic_len == t->dynamic_cap) {
		size_t cap = t->dynamic_cap ? t->dynamic_cap * 2 : 64;
		struct ksymbols_bpf *p = reallocarray(t->dynamic, cap, sizeof(*p));

		if (!p)
			return -ENOMEM;
		t->dynamic = p;
		t->dynamic_cap = cap;
	}
	char *copy = strndup(name.data, name.len);
	if (!copy)
		return -ENOMEM;
	size_t i = dynamic_search(t, start);
	memmove(&t->dynamic[i + 1], &t->dynamic[i], (t->dynamic_len - i) * sizeof(*t->dynamic));
	t->dynamic[i] = (struct ksymbols_bpf){ .start = start, .length = length, .name = copy };
	t->dynamic_len++;
	t->any = true;
	return 0;
}

/* --- filling the table --- */

static bool is_dynamic(struct str module)
{
	return str_eq(module, STR_LIT("bpf")) ||
	       (module.len > 9 && memcmp(module.data, "__builtin", 9) == 0);
}

/* Gives the module's number; 0 for the kernel proper, and if there are too many. */
static int module_number(struct ksymbols *t, struct str module, uint16_t *ret)
{
	*ret = 0;
	if (!module.len)
		return 0;
	/* A module's symbols are adjacent, so search from the end. */
	for (unsigned i = t->module_count; i-- > 0;) {
		if (str_eq(str_from(t->modules[i]), module)) {
			*ret = (uint16_t)(i + 1);
			return 0;
		}
	}
	if (t->module_count >= MODULES_MAX)
		return 0;
	if (!(t->module_count & 63)) {
		char **p = reallocarray(t->modules, t->module_count + 64, sizeof(*p));

		if (!p)
			return -ENOMEM;
		t->modules = p;
	}
	t->modules[t->module_count] = strndup(module.data, module.len);
	if (!t->modules[t->module_count])
		return -ENOMEM;
	*ret = (uint16_t)++t->module_count;
	return 0;
}

static int pool_add(struct ksymbols *t, struct str name, uint32_t *ret)
{
	uint16_t len = (uint16_t)name.len;

	if (t->pool_cap - t->pool_len < sizeof(len) + len) {
		size_t cap = t->pool_cap ? t->pool_cap + t->pool_cap / 4 : KSYMBOLS_FIRST_POOL;
		char *p = cap <= UINT32_MAX ? realloc(t->pool, cap) : NULL;

		if (!p)
			return -ENOMEM;
		t->pool = p;
		t->pool_cap = cap;
	}
	*ret = (uint32_t)t->pool_len;
	memcpy(t->pool + t->pool_len, &len, sizeof(len));
	memcpy(t->pool + t->pool_len + sizeof(len), name.data, len);
	t->pool_len += sizeof(len) + len;
	return 0;
}

static struct str pool_get(const struct ksymbols *t, uint32_t at)
{
	uint16_t len;

	memcpy(&len, t->pool + at, sizeof(len));
	return (struct str){ .data = t->pool + at + sizeof(len), .len = len };
}

/* Whether text ends at this symbol: addresses after it belong to no function. */
static bool is_end(struct str name)
{
	return str_eq(name, STR_LIT("_etext")) || str_eq(name, STR_LIT("_einittext")) ||
	       str_eq(name, STR_LIT("__end_rodata"));
}

static uint8_t rank_of(char type, struct str name)
{
	uint8_t underscores = 0;

	while (underscores < name.len && underscores < 31 && name.data[underscores] == '_')
		underscores++;
	return (uint8_t)(underscores * 4 + (type == 'T' ? 0 : type == 't' ? 1 : 2));
}

int ksymbols_add(struct ksymbols *t, uint64_t address, char type, struct str name,
		 struct str module)
{
	struct ksymbol s = { .rank = rank_of(type, name) };

	if (!address || !name.len || (type != 'T' && type != 't' && type != 'W' && type != 'w'))
		return 0;
	if (name.len > NAME_MAX_BYTES)
		name.len = NAME_MAX_BYTES;
	if (is_dynamic(module))
		return ksymbols_add_bpf(t, address, 0, name);
	/* A module's symbols are not sorted. */
	if (!module.len && str_starts(name, PADDING)) {
		t->padded = address;
		return 0;
	}
	if (!module.len && address > t->padded && address - t->padded <= PADDING_MAX &&
	    !(t->len && t->base + t->at[t->len - 1].offset >= t->padded))
		s.padding = (uint8_t)(address - t->padded);
	if (!t->any || !t->len)
		t->base = address;
	t->any = true;
	if (address < t->base) {
		/* The first symbol is not always the lowest: move the base, which happens once or
		 * twice. */
		uint64_t by = t->base - address;

		for (size_t i = 0; i < t->len; i++) {
			if (t->at[i].offset > UINT32_MAX - by)
				return 0;
		}
		for (size_t i = 0; i < t->len; i++)
			t->at[i].offset += (uint32_t)by;
		t->base = address;
	}
	if (address - t->base > UINT32_MAX || t->len >= KSYMBOLS_MAX)
		return 0;
	s.offset = (uint32_t)(address - t->base);
	if (t->len == t->cap) {
		size_t cap = t->cap ? t->cap + t->cap / 4 : KSYMBOLS_FIRST;
		struct ksymbol *p = reallocarray(t->at, cap, sizeof(*p));

		if (!p)
			return -ENOMEM;
		t->at = p;
		t->cap = cap;
	}
	/* The file is sorted by address except for modules, so most duplicates are neighbours. */
	struct ksymbol *last = t->len ? &t->at[t->len - 1] : NULL;
	if (last && last->offset == s.offset && last->rank <= s.rank)
		return 0;
	int r = module_number(t, module, &s.module);
	if (!r)
		r = pool_add(t, is_end(name) ? (struct str){ .data = "", .len = 0 } : name,
			     &s.name);
	if (r)
		return r;
	if (last && last->offset == s.offset) {
		s.padding = last->padding;
		*last = s;
	} else {
		t->at[t->len++] = s;
	}
	return 0;
}

static int symbol_order(const void *a, const void *b)
{
	const struct ksymbol *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* Writes symbols [from, to) in the form to be packed to `into`, unless that is NULL. Returns the
 * bytes. */
static uint32_t gather(const struct ksymbols *t, size_t from, size_t to, char *into)
{
	size_t count = to - from, at = count * PACK_EACH;

	for (size_t i = 0; i < count; i++) {
		const struct ksymbol *s = &t->at[from + i];
		struct str name = pool_get(t, s->name);
		uint32_t distance = i ? s->offset - s[-1].offset : s->padding;
		uint16_t len = (uint16_t)(name.len | (uint32_t)s->padding << NAME_BITS);

		if (into) {
			memcpy(into + i * 4, &distance, 4);
			memcpy(into + count * 4 + i * 2, &s->module, 2);
			memcpy(into + count * 6 + i * 2, &len, 2);
			memcpy(into + at, name.data, name.len);
		}
		at += name.len;
	}
	return (uint32_t)at;
}

/* Makes space in t->packed and t->unpacked for a pack of `plain` bytes unpacked. */
static int grow_packed(struct ksymbols *t, struct ksymbols_packing *p, uint32_t plain)
{
	const size_t more = deflateBound(&p->z, plain);

	if (plain + PACK_SPARE > t->unpacked_bytes) {
		char *unpacked = realloc(t->unpacked, plain + PACK_SPARE);

		if (!unpacked)
			return -ENOMEM;
		t->unpacked = unpacked;
		t->unpacked_bytes = plain + PACK_SPARE;
	}
	if (p->cap - p->at >= more)
		return 0;
	const size_t want = numbers_larger(p->cap + p->cap / 4, p->at + more);
	char *packed = want <= UINT32_MAX ? realloc(t->packed, want) : NULL;

	if (!packed)
		return -ENOMEM;
	t->packed = packed;
	p->cap = want;
	return 0;
}

static int begin_packing(struct ksymbols *t)
{
	struct ksymbols_packing *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->count = (t->len + PACK_SYMBOLS - 1) / PACK_SYMBOLS;
	p->cap = (t->pool_len + t->len * PACK_EACH) / PACK_RATIO + 1;
	if (deflateInit2(&p->z, PACK_LEVEL, Z_DEFLATED, PACK_WINDOW, PACK_MEMORY, PACK_STRATEGY) !=
	    Z_OK) {
		free(p);
		return -ENOMEM;
	}
	t->packing = p;
	t->packs = calloc(p->count + 1, sizeof(*t->packs));
	t->packed = malloc(p->cap);
	return t->packs && t->packed ? 0 : -ENOMEM;
}

static int pack_next(struct ksymbols *t, struct ksymbols_packing *p)
{
	struct ksymbols_pack *pack = &t->packs[p->next];
	const size_t from = p->next * PACK_SYMBOLS;
	const size_t to = numbers_smaller(from + PACK_SYMBOLS, t->len);

	pack->offset = t->at[from].offset - t->at[from].padding;
	pack->plain = gather(t, from, to, NULL);
	if (grow_packed(t, p, pack->plain))
		return -ENOMEM;
	gather(t, from, to, t->unpacked);
	p->z.next_in = (Bytef *)t->unpacked;
	p->z.avail_in = pack->plain;
	p->z.next_out = (Bytef *)t->packed + p->at;
	p->z.avail_out = (uInt)(p->cap - p->at);
	if (deflate(&p->z, Z_FINISH) != Z_STREAM_END)
		return -ENOMEM;
	pack->at = (uint32_t)p->at;
	p->at = p->cap - p->z.avail_out;
	p->next++;
	deflateReset(&p->z);
	return 0;
}

/* Replaces the symbols by their packs. */
static void end_packing(struct ksymbols *t)
{
	struct ksymbols_packing *p = t->packing;
	char *fit = realloc(t->packed, p->at + 1);

	if (fit)
		t->packed = fit;
	t->packs[p->count].at = (uint32_t)p->at;
	t->pack_count = p->count;
	t->shown = SIZE_MAX;
	deflateEnd(&p->z);
	free(p);
	t->packing = NULL;
	free(t->at);
	free(t->pool);
	t->at = NULL;
	t->pool = NULL;
	t->cap = t->pool_cap = 0;
}

int ksymbols_pack(struct ksymbols *t, size_t most)
{
	int r = 0;

	if (!t->at)
		return 0;
	if (!t->packing)
		r = begin_packing(t);
	for (; !r && most && t->packing->next < t->packing->count; most--)
		r = pack_next(t, t->packing);
	if (r)
		drop_packs(t);
	else if (t->packing->next < t->packing->count)
		return -EAGAIN;
	else
		end_packing(t);
	return r;
}

/* Shrinks the arrays to what the symbols need. */
static void fit(struct ksymbols *t)
{
	void *at = t->len ? realloc(t->at, t->len * sizeof(*t->at)) : NULL;
	void *pool = t->pool_len ? realloc(t->pool, t->pool_len) : NULL;

	if (at) {
		t->at = at;
		t->cap = t->len;
	}
	if (pool) {
		t->pool = pool;
		t->pool_cap = t->pool_len;
	}
}

void ksymbols_finish(struct ksymbols *t)
{
	bool sorted = true;
	size_t to = 0;

	for (size_t i = 1; i < t->len && sorted; i++)
		sorted = t->at[i - 1].offset < t->at[i].offset;
	if (!sorted) {
		qsort(t->at, t->len, sizeof(*t->at), symbol_order);
		for (size_t i = 0; i < t->len; i++) {
			if (!to || t->at[to - 1].offset != t->at[i].offset)
				t->at[to++] = t->at[i];
		}
		t->len = to;
	}
	if (t->len)
		t->at[0].padding = 0; /* it would lie below the base */
	fit(t);
}

/* Unpacks pack i. All share a stream, since a new one for each costs more. */
static bool unpack_one(struct ksymbols *t, size_t i)
{
	z_stream *z = t->unpacking;

	t->shown = SIZE_MAX;
	if (!z) {
		z = calloc(1, sizeof(*z));
		if (!z || inflateInit2(z, PACK_WINDOW) != Z_OK) {
			free(z);
			return false;
		}
		t->unpacking = z;
	}
	z->next_in = (Bytef *)t->packed + t->packs[i].at;
	z->avail_in = t->packs[i + 1].at - t->packs[i].at;
	z->next_out = (Bytef *)t->unpacked;
	z->avail_out = t->packs[i].plain + PACK_SPARE;
	const bool whole = inflate(z, Z_FINISH) == Z_STREAM_END && z->avail_out == PACK_SPARE;

	inflateReset(z);
	if (whole)
		t->shown = i;
	return whole;
}

/* Unpacks the symbols around an offset. Returns their number, 0 without memory. */
static size_t unpack(struct ksymbols *t, uint32_t offset, uint32_t *ret_first)
{
	size_t lo = 0, hi = t->pack_count;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->packs[mid].offset > offset)
			hi = mid;
		else
			lo = mid + 1;
	}
	/* The base is the lowest symbol's address, so such a pack exists. */
	size_t i = lo - 1;
	if (i != t->shown && !unpack_one(t, i))
		return 0;
	*ret_first = t->packs[i].offset;
	return i + 1 < t->pack_count ? PACK_SYMBOLS : t->len - i * PACK_SYMBOLS;
}

/* --- finding --- */

void ksymbols_keep_lengths(struct ksymbols *t, const struct ksymbols *before)
{
	for (size_t i = 0; i < t->dynamic_len; i++) {
		const size_t old = dynamic_search(before, t->dynamic[i].start);

		if (old && before->dynamic[old - 1].start == t->dynamic[i].start)
			t->dynamic[i].length = before->dynamic[old - 1].length;
	}
}

/* Finds the symbol at an offset in the unpacked table. Returns false if there is none. */
static bool find_read(const struct ksymbols *t, uint32_t offset, struct str *ret_name,
		      uint16_t *ret_module, uint32_t *ret_start)
{
	size_t lo = 0, hi = t->len;

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (t->at[mid].offset > offset)
			hi = mid;
		else
			lo = mid + 1;
	}
	/* It may be in the padding of the next function. */
	if (lo < t->len && t->at[lo].offset - offset <= t->at[lo].padding)
		lo++;
	if (!lo)
		return false;
	const struct ksymbol *s = &t->at[lo - 1];

	*ret_name = pool_get(t, s->name);
	*ret_module = s->module;
	*ret_start = s->offset;
	return ret_name->len && (offset < s->offset || offset - s->offset < REACH);
}

/* Like find_read, in the packs. */
static bool find_packed(struct ksymbols *t, uint32_t offset, struct str *ret_name,
			uint16_t *ret_module, uint32_t *ret_start)
{
	uint32_t start = 0;
	size_t count = unpack(t, offset, &start), name = count * PACK_EACH;
	uint16_t len = 0;

	for (size_t j = 0; j < count; j++) {
		uint32_t distance;
		uint16_t both;

		memcpy(&distance, t->unpacked + j * 4, 4);
		memcpy(&both, t->unpacked + count * 6 + j * 2, 2);
		if (offset < start || distance > offset - start + (both >> NAME_BITS))
			break;
		start += distance;
		name += len;
		memcpy(ret_module, t->unpacked + count * 4 + j * 2, 2);
		len = both & ((1u << NAME_BITS) - 1);
	}
	*ret_name = (struct str){ .data = t->unpacked + name, .len = len };
	*ret_start = start;
	return len && (offset < start || offset - start < REACH);
}

bool ksymbols_find(struct ksymbols *t, uint64_t addr, struct str *ret_name, struct str *ret_module,
		   uint64_t *ret_start)
{
	size_t i = dynamic_search(t, addr);

	if (i) {
		const struct ksymbols_bpf *d = &t->dynamic[i - 1];

		/* If the length is unknown, assume a page, which is more than most have. */
		if (d->length ? addr - d->start < d->length : addr - d->start < 4096) {
			*ret_name = str_from(d->name);
			*ret_module = STR_LIT("bpf");
			*ret_start = d->start;
			return true;
		}
	}
	if (!t->len || addr < t->base || addr - t->base > UINT32_MAX)
		return false;
	const uint32_t offset = (uint32_t)(addr - t->base);
	uint32_t start = 0;
	uint16_t module = 0;

	if (t->at ? !find_read(t, offset, ret_name, &module, &start)
		  : !find_packed(t, offset, ret_name, &module, &start))
		return false;
	*ret_module = module ? str_from(t->modules[module - 1])
			     : (struct str){ .data = "", .len = 0 };
	*ret_start = t->base + start;
	return true;
}

size_t ksymbols_bytes(const struct ksymbols *t)
{
	const size_t packed = t->pack_count ? (t->pack_count + 1) * sizeof(*t->packs) +
						      t->packs[t->pack_count].at + t->unpacked_bytes
			      : t->packing ? t->packing->cap + t->unpacked_bytes
					   : 0;

	return t->cap * sizeof(*t->at) + t->pool_cap + packed +
	       t->dynamic_cap * sizeof(*t->dynamic);
}
