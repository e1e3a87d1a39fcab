/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The index is an array of disjoint ranges, 16 bytes each, made by one sweep over the sorted
 * symbols. Names stay in the file; a lookup reads them.
 *
 * Finding the end of a symbol without a size takes long (limit_unsized), and few addresses are in
 * one. So such a symbol first covers everything up to the next one. When a lookup finds an address
 * there, the ranges are made again.
 *
 * Making the index takes 60 bytes per symbol. So for a large .symtab the index only has the symbols
 * around one address (symbuckets.h), and is made again for an address elsewhere.
 */
#include "common/names/elf/symindex.h"

#include <assert.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "common/base/bytes/numbers.h"
#include "common/names/demangle.h"
#include "common/names/elf/symbuckets.h"
#include "common/names/elf/symreach.h"
#include "common/names/elf/symtable.h"

#define MAX_ALIASES 64u /* compared in one lookup */
#define CHUNK (64u << 10)
#define MAX_SCAN (64ull << 20) /* bytes of code that are searched for calls */
#define SMALL_GAP 64u	       /* bytes; _init and _fini do not justify a search */

/* If NAME_ALIASES is set in a range's name, the low bits are an index into `aliases`. NAME_LAST
 * marks the last name of a list of aliases. */
#define NAME_ALIASES SYMTABLE_NAME_FLAG
#define NAME_LAST SYMTABLE_NAME_FLAG

/* Sorted and disjoint. */
struct symindex_range {
	uint64_t start;
	uint32_t size;
	uint32_t name;
};
static_assert(sizeof(struct symindex_range) == 16 && sizeof(struct symtable_symbol) == 24,
	      "compact");

struct symindex {
	const struct symfile *file;
	uint64_t large;
	bool built;
	int verdict; /* result of build */
	struct symtable_strings strings[SYMTABLES];
	struct symindex_range *ranges;
	uint8_t *unsized; /* one bit per range: set if its symbol has no size; NULL: all symbols
			   * have one */
	bool limited;	  /* the reach of symbols without a size is known */
	size_t range_count;
	uint32_t *aliases;
	size_t alias_count;
	struct symbuckets *buckets; /* NULL: the ranges have all symbols */
	uint64_t from, to;	    /* otherwise the addresses that the ranges cover; to 0: none */
};

/* Sorts by start. Of those that start together, the winner comes last. */
static int symbol_cmp(const void *left, const void *right)
{
	const struct symtable_symbol *a = left, *b = right;

	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	if (a->size != b->size)
		return a->size > b->size ? -1 : 1;
	return a->name < b->name ? -1 : a->name > b->name;
}

static bool is_alias(const struct symtable_symbol *a, const struct symtable_symbol *b)
{
	return a->value == b->value && a->kind == b->kind && a->rank == b->rank &&
	       a->size == b->size;
}

/* Collects ranges. Each symbol opens at most one range and ends at most one. */
struct sweep {
	struct symindex_range *out;
	uint8_t *unsized; /* NULL: all symbols have a size */
	size_t len, max;
};

static bool is_unsized(const uint8_t *unsized, size_t range)
{
	return unsized && unsized[range / 8] >> range % 8 & 1;
}

static void emit(struct sweep *w, uint64_t from, uint64_t to, const struct symtable_symbol *of)
{
	struct symindex_range *last = w->len ? &w->out[w->len - 1] : NULL;
	const uint32_t name = of->name;

	if (last && last->name == name && last->start + last->size == from &&
	    to - last->start <= UINT32_MAX)
		last->size = (uint32_t)(to - last->start);
	else if (w->len < w->max)
		w->out[w->len++] = (struct symindex_range){ .start = from,
							    .size = (uint32_t)(to - from),
							    .name = name };
	else
		return;
	if (w->unsized && of->kind == SYMTABLE_UNSIZED)
		w->unsized[(w->len - 1) / 8] |= (uint8_t)(1u << (w->len - 1) % 8);
}

/* Turns the sorted symbols into disjoint ranges. `open` is the stack of sized symbols that cover
 * the current position; the one that starts last is on top. */
static void sweep_groups(struct sweep *w, const struct symtable_symbol *g, size_t count,
			 uint32_t *open)
{
	const struct symtable_symbol *unsized = NULL;
	uint64_t pos = 0;
	size_t depth = 0;

	for (size_t i = 0; i <= count; i++) {
		uint64_t start = i < count ? g[i].value : UINT64_MAX;

		while (pos < start) {
			while (depth && g[open[depth - 1]].value + g[open[depth - 1]].size <= pos)
				depth--;
			const struct symtable_symbol *top = depth ? &g[open[depth - 1]] : unsized;

			if (!top || top->value + top->size <= pos)
				break;
			uint64_t end = top->value + top->size;

			end = end < start ? end : start;
			emit(w, pos, end, top);
			pos = end;
		}
		pos = start;
		if (i == count)
			break;
		if (unsized && unsized->value < start)
			unsized = NULL;
		while (depth && g[open[depth - 1]].value + g[open[depth - 1]].size <= pos)
			depth--;
		if (g[i].kind == SYMTABLE_SIZED) {
			open[depth++] = (uint32_t)i;
			unsized = NULL;
		} else if (g[i].kind == SYMTABLE_UNSIZED && depth == 0) {
			unsized = &g[i];
		}
	}
}

/* Merges aliases into one entry each, in place. */
static int fold_aliases(struct symindex *x, struct symtable_symbol *g, size_t *count)
{
	size_t kept = 0, aliases = 0;

	for (size_t i = 1; i < *count; i++)
		aliases += g[i].kind != SYMTABLE_BORDER && is_alias(&g[i - 1], &g[i]);
	x->alias_count = 0;
	if (aliases) {
		x->aliases = malloc(2 * aliases * sizeof(*x->aliases));
		if (!x->aliases)
			return -ENOMEM;
	}
	for (size_t i = 0; i < *count;) {
		size_t n = 1;

		while (i + n < *count && is_alias(&g[i], &g[i + n]))
			n++;
		if (n > 1 && g[i].kind != SYMTABLE_BORDER) {
			uint32_t first = (uint32_t)x->alias_count;

			for (size_t k = 0; k < n; k++)
				x->aliases[x->alias_count++] = g[i + k].name;
			x->aliases[x->alias_count - 1] |= NAME_LAST;
			g[i].name = first | NAME_ALIASES;
		}
		g[kept++] = g[i];
		i += n;
	}
	*count = kept;
	return 0;
}

/* Finds starts of functions without symbols in the gaps, by call frame information. calls: where
 * there is none, also uses the targets of calls. */
static int narrow(const struct symfile *f, struct symreach *gaps, size_t count, bool calls)
{
	const struct symfile_layout *l = symfile_layout(f);
	uint8_t *chunk = malloc(CHUNK), head[SYMREACH_HEADER];
	const struct symfile_section *s;
	uint64_t scanned = 0, address, header, size;
	int r = chunk ? 0 : -ENOMEM;

	if (!r && symfile_frame_header(f, &address, &header, &size) == 0 &&
	    symfile_read(f, header, head, sizeof(head)) == 0) {
		uint64_t left = (uint64_t)symreach_table(head) * SYMREACH_ENTRY,
			 at = header + sizeof(head);

		while (left) {
			size_t n = numbers_smaller(left, CHUNK);

			if (symfile_read(f, at, chunk, n))
				break;
			symreach_entries(gaps, count, (struct span){ .data = chunk, .len = n },
					 address);
			left -= n;
			at += n;
		}
	}
	for (uint32_t i = 1; !r && calls && i < l->section_count; i++) {
		s = &l->sections[i];
		if (!(s->flags & SHF_EXECINSTR) || s->type != SHT_PROGBITS)
			continue;
		for (uint64_t at = 0; at + SYMREACH_CALL <= s->size && scanned < MAX_SCAN;) {
			size_t n = numbers_smaller(s->size - at, CHUNK);

			if (symfile_read(f, s->offset + at, chunk, n))
				break;
			symreach_calls(gaps, count, (struct span){ .data = chunk, .len = n },
				       s->addr + at);
			/* Chunks overlap, since a call may cross their boundary. */
			at += n - (SYMREACH_CALL - 1);
			scanned += n;
		}
	}
	free(chunk);
	return r;
}

/* Sets the reach of unsized symbols. whole: `all` has all symbols of the table. */
static int limit_unsized(const struct symfile *f, struct symtable_symbols *all, bool whole)
{
	struct symreach *gaps = NULL;
	size_t count = 0, used = 0;
	uint64_t room = 0;

	for (size_t i = 0; i < all->len; i++)
		count += all->data[i].kind == SYMTABLE_UNSIZED;
	if (!count || !symfile_is_linked(f))
		return 0;
	gaps = malloc(count * sizeof(*gaps));
	if (!gaps)
		return -ENOMEM;
	count = 0;
	for (size_t i = all->len, next = all->len; i-- > 0;) {
		const struct symtable_symbol *s = &all->data[i];

		if (i + 1 < all->len && all->data[i + 1].value != s->value)
			next = i + 1;
		if (s->kind != SYMTABLE_UNSIZED || (count && gaps[count - 1].start == s->value))
			continue;
		uint64_t end = s->value + s->size;

		if (next < all->len && all->data[next].value < end)
			end = all->data[next].value;
		room += end - s->value;
		gaps[count++] = (struct symreach){ .start = s->value, .end = end };
	}
	for (size_t i = 0; i < count / 2; i++) {
		struct symreach other = gaps[i];

		gaps[i] = gaps[count - 1 - i];
		gaps[count - 1 - i] = other;
	}
	int r = narrow(f, gaps, count,
		       !whole && symfile_machine(f) == EM_X86_64 && room > (uint64_t)SMALL_GAP);

	for (size_t i = 0; !r && i < all->len; i++) {
		struct symtable_symbol *s = &all->data[i];

		if (s->kind != SYMTABLE_UNSIZED)
			continue;
		while (gaps[used].start < s->value)
			used++;
		s->size = (uint32_t)(gaps[used].end - s->value);
	}
	free(gaps);
	return r;
}

static bool has_unsized(const struct symtable_symbols *all)
{
	for (size_t i = 0; i < all->len; i++)
		if (all->data[i].kind == SYMTABLE_UNSIZED)
			return true;
	return false;
}

static int make_ranges(struct symindex *x, struct symtable_symbols *all, bool whole)
{
	struct sweep w = { 0 };
	uint32_t *open;
	int r = 0;

	if (all->len == 0)
		return 0;
	qsort(all->data, all->len, sizeof(*all->data), symbol_cmp);
	if (x->limited)
		r = limit_unsized(x->file, all, whole);
	const bool marks = !x->limited && has_unsized(all);

	if (!r)
		r = fold_aliases(x, all->data, &all->len);
	if (r)
		return r;
	w.max = 2 * all->len;
	w.out = malloc(w.max * sizeof(*w.out));
	w.unsized = marks ? calloc(w.max / 8 + 1, 1) : NULL;
	open = malloc(all->len * sizeof(*open));
	if (w.out && open && (w.unsized || !marks))
		sweep_groups(&w, all->data, all->len, open);
	else
		r = -ENOMEM;
	free(open);
	if (r == 0 && w.len > 0) {
		struct symindex_range *fit = realloc(w.out, w.len * sizeof(*fit));

		x->ranges = fit ? fit : w.out;
		x->unsized = w.unsized;
		x->range_count = w.len;
	} else {
		free(w.out);
		free(w.unsized);
	}
	return r;
}

static int build(struct symindex *x)
{
	const struct symfile *f = x->file;
	struct symtable_symbols all = { 0 };
	struct symtable t;
	bool whole = symfile_has_symtab(f);
	int r, mini_r = 0;

	r = symtable_find(f, whole ? SYMTABLE_SYMTAB : SYMTABLE_DYNSYM, &t);
	if (!r) {
		x->strings[t.id] = t.strings;
		if (whole && t.count >= x->large)
			return symbuckets_new(f, &t, &x->buckets);
		r = symtable_add(f, &t, &all);
	}
	if (r == SYMFILE_NONE && !whole)
		r = 0;
	if (r >= 0 && !whole) {
		mini_r = symtable_add_mini(f, &x->strings[SYMTABLE_MINI], &all);
		whole = !mini_r;
		mini_r = mini_r == SYMFILE_NONE ? 0 : mini_r;
	}
	/* If one table is damaged, the other one is still used. */
	if (r >= 0 && mini_r >= 0) {
		int made = make_ranges(x, &all, whole);

		r = made ? made : x->range_count ? 0 : r ? r : mini_r;
	} else {
		r = r < 0 ? r : mini_r;
	}
	free(all.data);
	return r;
}

int symindex_new(const struct symfile *f, uint64_t large, struct symindex **ret)
{
	struct symindex *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	x->file = f;
	x->large = large;
	*ret = x;
	return 0;
}

static void forget_ranges(struct symindex *x)
{
	free(x->ranges);
	free(x->unsized);
	free(x->aliases);
	x->ranges = NULL;
	x->unsized = NULL;
	x->aliases = NULL;
	x->range_count = x->alias_count = 0;
	x->from = x->to = 0;
}

void symindex_free(struct symindex *x)
{
	if (!x)
		return;
	for (int i = 0; i < SYMTABLES; i++)
		free(x->strings[i].bytes);
	forget_ranges(x);
	symbuckets_free(x->buckets);
	free(x);
}

/* --- looking up --- */

static int read_name(const struct symindex *x, uint32_t name, char into[static SYMFILE_NAME])
{
	return symtable_name(x->file, &x->strings[name >> SYMTABLE_NAME_SHIFT],
			     name & SYMTABLE_NAME_OFFSET, into);
}

static int read_best_alias(const struct symindex *x, uint32_t first, char best[static SYMFILE_NAME])
{
	char name[SYMFILE_NAME], shown[DEMANGLE_MAX];
	size_t best_len = SIZE_MAX, best_lead = 0;

	for (uint32_t i = 0; i < MAX_ALIASES && first + i < x->alias_count; i++) {
		int r = read_name(x, x->aliases[first + i] & ~NAME_LAST, name);
		size_t len, lead;

		if (r)
			return r;
		len = demangle(name, shown, sizeof(shown));
		lead = strspn(shown, "_");
		if (best_len == SIZE_MAX || lead < best_lead ||
		    (lead == best_lead &&
		     (len < best_len || (len == best_len && strcmp(name, best) < 0)))) {
			best_lead = lead;
			best_len = len;
			strcpy(best, name);
		}
		if (x->aliases[first + i] & NAME_LAST)
			break;
	}
	return best_len == SIZE_MAX ? SYMFILE_NONE : 0;
}
/* For a large table, makes the ranges around an address. */
static int look_around(struct symindex *x, uint64_t address)
{
	struct symtable_symbols all = { 0 };
	uint64_t from, to;

	if (address >= x->from && address < x->to)
		return 0;
	forget_ranges(x);
	int r = symbuckets_gather(x->buckets, address, &all, &from, &to);

	if (!r)
		r = make_ranges(x, &all, true);
	free(all.data);
	if (r) {
		forget_ranges(x);
		return r;
	}
	x->from = from;
	x->to = to;
	return 0;
}

/* Returns the number of ranges that begin at or before an address. */
static size_t count_up_to(const struct symindex *x, uint64_t address)
{
	size_t low = 0, high = x->range_count;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (x->ranges[mid].start <= address)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/* Makes the ranges that an address needs. */
static int have_ranges(struct symindex *x, uint64_t address)
{
	if (!x->built) {
		x->verdict = build(x);
		x->built = true;
	}
	return !x->verdict && x->buckets ? look_around(x, address) : x->verdict;
}

/* Makes all ranges again, now with the reach of symbols without a size. */
static int limit_again(struct symindex *x, uint64_t address)
{
	forget_ranges(x);
	x->limited = true;
	x->built = x->buckets;
	/* The strings are read again. */
	for (int i = 0; !x->built && i < SYMTABLES; i++) {
		free(x->strings[i].bytes);
		x->strings[i].bytes = NULL;
	}
	return have_ranges(x, address);
}

/* Finds the last range that begins at or before an address. ends: the caller also uses its end. */
static int find_range(struct symindex *x, uint64_t address, bool ends,
		      const struct symindex_range **ret)
{
	int r = have_ranges(x, address);
	size_t count = r ? 0 : count_up_to(x, address);

	if (count && is_unsized(x->unsized, count - 1) &&
	    (ends || address - x->ranges[count - 1].start < x->ranges[count - 1].size)) {
		r = limit_again(x, address);
		count = r ? 0 : count_up_to(x, address);
	}
	if (r)
		return r;
	if (!count)
		return SYMFILE_NONE;
	*ret = &x->ranges[count - 1];
	return 0;
}

uint64_t symindex_floor(struct symindex *x, uint64_t address)
{
	const struct symindex_range *at;

	return x->built && find_range(x, address, true, &at) == 0 && address - at->start >= at->size
		       ? at->start + at->size
		       : 0;
}

int symindex_lookup(struct symindex *x, uint64_t address, char ret_name[static SYMFILE_NAME])
{
	const struct symindex_range *at;
	int r = find_range(x, address, false, &at);

	if (r)
		return r;
	if (address - at->start >= at->size)
		return SYMFILE_NONE;
	if (at->name & NAME_ALIASES)
		return read_best_alias(x, at->name & SYMTABLE_NAME_OFFSET, ret_name);
	return read_name(x, at->name, ret_name);
}

size_t symindex_bytes(const struct symindex *x)
{
	size_t bytes = sizeof(*x) + x->range_count * sizeof(*x->ranges) +
		       (x->unsized ? x->range_count / 8 + 1 : 0) +
		       x->alias_count * sizeof(*x->aliases) +
		       (x->buckets ? symbuckets_bytes(x->buckets) : 0);

	for (int i = 0; i < SYMTABLES; i++)
		bytes += x->strings[i].bytes ? x->strings[i].size : 0;
	return bytes;
}
