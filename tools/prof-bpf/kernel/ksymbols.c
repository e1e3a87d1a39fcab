/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/kernel/ksymbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"

/* Initial sizes; small in a fuzz target, so that it reaches the boundaries. */
#ifndef KSYMBOLS_FIRST
#define KSYMBOLS_FIRST (96u << 10)
#define KSYMBOLS_FIRST_POOL (2u << 20)
#endif
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

#define GROUP 32u	/* symbols that share the position of a name */
#define COUNTED_EACH 8u /* one in so many names is counted to choose digrams */
#define LENGTH_BITS 10	/* of an encoded name; padding has the bits above */
#define LENGTH_MASK ((1u << LENGTH_BITS) - 1)

/* A run of symbols of one module. */
struct ksymbols_run {
	uint32_t first; /* index of the symbol */
	uint32_t module;
};

struct ksymbols_bpf {
	uint64_t start, length; /* length 0: unknown */
	char *name;
};

/* Frees what is needed only until the table is finished. */
static void drop_unfinished(struct ksymbols *t)
{
	free(t->at);
	free(t->pool);
	t->at = NULL;
	t->pool = NULL;
	t->cap = t->pool_len = t->pool_cap = 0;
}

void ksymbols_done(struct ksymbols *t)
{
	for (unsigned i = 0; i < t->module_count; i++)
		free(t->modules[i]);
	for (size_t i = 0; i < t->dynamic_len; i++)
		free(t->dynamic[i].name);
	free(t->modules);
	free(t->dynamic);
	free(t->offsets);
	free(t->lengths);
	free(t->groups);
	free(t->runs);
	free(t->names);
	drop_unfinished(t);
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

/* Replaces bytes that digram coding uses for itself. */
static void ascii(char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		text[i] = text[i] & 0x80 ? '?' : text[i];
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
	ascii(t->pool + t->pool_len + sizeof(len), len);
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
	if (name.len > KSYMBOLS_NAME_MAX)
		name.len = KSYMBOLS_NAME_MAX;
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
			if (by > UINT32_MAX || t->at[i].offset > UINT32_MAX - by)
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

/* Sorts the symbols, and keeps the plainest name of each address. */
static void sort(struct ksymbols *t)
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
}

static size_t count_runs(const struct ksymbols *t)
{
	size_t n = 1;

	for (size_t i = 1; i < t->len; i++)
		n += t->at[i].module != t->at[i - 1].module;
	return n;
}

/* Fills the arrays of the finished table. */
static void fill(struct ksymbols *t, const struct digrams_encoder *e)
{
	for (size_t i = 0; i < t->len; i++) {
		const struct ksymbol *s = &t->at[i];

		if (i % GROUP == 0)
			t->groups[i / GROUP] = (uint32_t)t->names_len;
		if (!i || s->module != s[-1].module)
			t->runs[t->run_count++] = (struct ksymbols_run){ .first = (uint32_t)i,
									 .module = s->module };
		const size_t len = digrams_encode(e, pool_get(t, s->name), t->names + t->names_len);

		t->names_len += len;
		t->offsets[i] = s->offset;
		t->lengths[i] = (uint16_t)(len | (uint32_t)s->padding << LENGTH_BITS);
	}
}

int ksymbols_finish(struct ksymbols *t)
{
	struct digrams_encoder *e = t->len ? calloc(1, sizeof(*e)) : NULL;

	if (!t->len)
		return 0;
	sort(t);
	t->offsets = calloc(t->len, sizeof(*t->offsets));
	t->lengths = calloc(t->len, sizeof(*t->lengths));
	t->groups = calloc((t->len + GROUP - 1) / GROUP, sizeof(*t->groups));
	t->runs = calloc(count_runs(t), sizeof(*t->runs));
	t->names = malloc(t->pool_len);
	if (!e || !t->offsets || !t->lengths || !t->groups || !t->runs || !t->names) {
		free(e);
		return -ENOMEM;
	}
	for (size_t i = 0; i < t->len; i += COUNTED_EACH)
		digrams_count(e, pool_get(t, t->at[i].name));
	digrams_choose(e, &t->digrams);
	fill(t, e);
	free(e);

	char *fit = realloc(t->names, t->names_len + 1);

	if (fit)
		t->names = fit;
	drop_unfinished(t);
	return 0;
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

/* Finds the symbol at an offset. Returns t->len if there is none. */
static size_t find_symbol(const struct ksymbols *t, uint32_t offset)
{
	size_t lo = 0, hi = t->len;

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (t->offsets[mid] > offset)
			hi = mid;
		else
			lo = mid + 1;
	}
	/* It may be in the padding of the next function. */
	if (lo < t->len && t->offsets[lo] - offset <= t->lengths[lo] >> LENGTH_BITS)
		return lo;
	return lo && offset - t->offsets[lo - 1] < REACH ? lo - 1 : t->len;
}

/* Decodes the name of symbol i. Borrowed until the next call. */
static struct str name_of(struct ksymbols *t, size_t i)
{
	size_t at = t->groups[i / GROUP];
	struct str coded = { .len = t->lengths[i] & LENGTH_MASK };

	for (size_t k = i / GROUP * GROUP; k < i; k++)
		at += t->lengths[k] & LENGTH_MASK;
	coded.data = t->names + at;
	return (struct str){ .data = t->name,
			     .len = (uint32_t)digrams_decode(&t->digrams, coded, t->name) };
}

static uint32_t module_of(const struct ksymbols *t, size_t i)
{
	size_t lo = 0, hi = t->run_count;

	while (lo < hi) {
		const size_t mid = lo + (hi - lo) / 2;

		if (t->runs[mid].first > i)
			hi = mid;
		else
			lo = mid + 1;
	}
	return t->runs[lo - 1].module; /* the first run begins with the first symbol */
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
	if (addr < t->base || addr - t->base > UINT32_MAX)
		return false;
	i = find_symbol(t, (uint32_t)(addr - t->base));
	if (i == t->len)
		return false;
	const uint32_t module = module_of(t, i);

	*ret_name = name_of(t, i);
	*ret_module = module ? str_from(t->modules[module - 1])
			     : (struct str){ .data = "", .len = 0 };
	*ret_start = t->base + t->offsets[i];
	return ret_name->len != 0;
}

size_t ksymbols_bytes(const struct ksymbols *t)
{
	return t->len * (sizeof(*t->offsets) + sizeof(*t->lengths)) +
	       (t->len + GROUP - 1) / GROUP * sizeof(*t->groups) + t->run_count * sizeof(*t->runs) +
	       t->names_len + t->dynamic_cap * sizeof(*t->dynamic);
}
