/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bucket has the symbols that begin in its piece, and sized ones that reach into it. An unsized
 * symbol reaches up to the next one. So a lookup also needs the nearest bucket before and the
 * nearest one after the address in which a symbol begins.
 *
 * The table is read twice: to count, and to fill the buckets. If somebody writes to the file in
 * between, its names are wrong.
 */
#include "common/names/elf/symbuckets.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include "common/base/bytes/numbers.h"

#define PER_BUCKET 32u
#define MAX_ENTRIES (16u << 20)
/* A symbol that reaches into more buckets is wide: it is in no bucket, but in a list of its own. */
#define WIDE 256u
#define MAX_WIDE 1024u /* symbols in that list */
#define MAX_GATHERED 65536u

struct symbuckets {
	const struct symfile *file;
	struct symtable table;
	uint64_t low, high; /* the range of all code */
	unsigned shift;	    /* an address's bucket is (address - low) >> shift */
	uint32_t count;
	uint32_t *end;	  /* end of each bucket in `member`; a bucket begins where the previous one
			   * ends */
	uint8_t *begins;  /* one bit per bucket: a symbol begins there */
	uint32_t *member; /* numbers of symbols, bucket by bucket */
	uint32_t member_count, wide_count;
	uint32_t wide[MAX_WIDE];
};

static uint32_t bucket_of(const struct symbuckets *b, uint64_t address)
{
	return (uint32_t)((address - b->low) >> b->shift);
}

/* Finds the first and last bucket of a symbol. Returns false if it is wide. */
static bool reach(const struct symbuckets *b, const struct symtable_symbol *s, uint32_t *ret_first,
		  uint32_t *ret_last)
{
	const uint64_t last = s->value + (s->kind == SYMTABLE_SIZED && s->size ? s->size - 1 : 0);

	*ret_first = bucket_of(b, s->value);
	*ret_last = bucket_of(b, last);
	return *ret_last - *ret_first < WIDE;
}

static int count(void *ctx, uint32_t number, const struct symtable_symbol *s)
{
	struct symbuckets *b = ctx;
	uint32_t first, last;

	if (s->value < b->low || s->value >= b->high)
		return 0;

	const bool is_wide = !reach(b, s, &first, &last);

	b->begins[first / 8] |= (uint8_t)(1u << first % 8);
	if (is_wide) {
		if (b->wide_count == MAX_WIDE)
			return SYMFILE_TOO_LARGE;
		b->wide[b->wide_count++] = number;
		return 0;
	}
	/* In files of compilers few symbols overlap. A file beyond this limit is refused. */
	b->member_count += last - first + 1;
	if (b->member_count > 2 * (uint64_t)b->table.count + b->count)
		return SYMFILE_TOO_LARGE;
	for (uint32_t i = first; i <= last; i++)
		b->end[i]++;
	return 0;
}

static int fill_in(void *ctx, uint32_t number, const struct symtable_symbol *s)
{
	struct symbuckets *b = ctx;
	uint32_t first, last;

	if (s->value < b->low || s->value >= b->high || !reach(b, s, &first, &last))
		return 0;
	for (uint32_t i = first; i <= last; i++) {
		if (b->end[i] >= b->member_count)
			return SYMFILE_MALFORMED; /* the file's table has changed meanwhile */
		b->member[b->end[i]++] = number;
	}
	return 0;
}

/* Turns the counts in `end` into the starts of the buckets. Filling then advances them to the
 * ends. */
static void sum_up(struct symbuckets *b)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < b->count; i++) {
		const uint32_t n = b->end[i];

		b->end[i] = at;
		at += n;
	}
}

/* Finds the range of all code, and divides it into buckets. */
static int lay_out(struct symbuckets *b)
{
	const struct symfile_layout *l = symfile_layout(b->file);
	const uint64_t want = b->table.count / PER_BUCKET + 1;

	b->low = UINT64_MAX;
	for (uint32_t i = 1; i < l->section_count; i++) {
		const struct symfile_section *s = &l->sections[i];
		uint64_t end;

		if (!(s->flags & SHF_ALLOC) || !(s->flags & SHF_EXECINSTR) || !s->size)
			continue;
		if (__builtin_add_overflow(s->addr, s->size, &end))
			return SYMFILE_MALFORMED;
		b->low = numbers_smaller(s->addr, b->low);
		b->high = numbers_larger(end, b->high);
	}
	if (b->low >= b->high)
		return SYMFILE_NONE;
	while (b->shift < 63 && (b->high - 1 - b->low) >> b->shift >= want)
		b->shift++;
	b->count = bucket_of(b, b->high - 1) + 1;
	b->end = calloc(b->count, sizeof(*b->end));
	b->begins = calloc(b->count / 8 + 1, 1);
	return b->end && b->begins ? 0 : -ENOMEM;
}

int symbuckets_new(const struct symfile *f, const struct symtable *t, struct symbuckets **ret)
{
	struct symbuckets *b;
	int r;

	if (t->count > MAX_ENTRIES)
		return SYMFILE_TOO_LARGE;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->file = f;
	b->table = *t;
	r = lay_out(b);
	if (!r)
		r = symtable_each(f, t, count, b);
	if (!r) {
		b->member = malloc((b->member_count + (size_t)1) * sizeof(*b->member));
		r = b->member ? 0 : -ENOMEM;
	}
	if (!r) {
		sum_up(b);
		r = symtable_each(f, t, fill_in, b);
	}
	if (r) {
		symbuckets_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

void symbuckets_free(struct symbuckets *b)
{
	if (!b)
		return;
	free(b->end);
	free(b->begins);
	free(b->member);
	free(b);
}

/* --- gathering --- */

struct numbers {
	uint32_t *data;
	size_t len;
};

static void take(const struct symbuckets *b, uint32_t bucket, struct numbers *n)
{
	const uint32_t from = bucket ? b->end[bucket - 1] : 0;

	for (uint32_t i = from; i < b->end[bucket]; i++)
		n->data[n->len++] = b->member[i];
}

static uint32_t size_of(const struct symbuckets *b, uint32_t bucket)
{
	const uint32_t from = bucket ? b->end[bucket - 1] : 0;

	return b->end[bucket] > from ? b->end[bucket] - from : 0;
}

/* Returns the nearest bucket in a direction in which a symbol begins, or `bucket` if there is
 * none. */
static uint32_t nearest(const struct symbuckets *b, uint32_t bucket, int step)
{
	for (uint32_t i = bucket + (uint32_t)step; i < b->count; i += (uint32_t)step)
		if (b->begins[i / 8] >> i % 8 & 1)
			return i;
	return bucket;
}

static int number_cmp(const void *left, const void *right)
{
	const uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	return a < b ? -1 : a > b;
}

int symbuckets_gather(const struct symbuckets *b, uint64_t address, struct symtable_symbols *all,
		      uint64_t *ret_from, uint64_t *ret_to)
{
	if (address < b->low || address >= b->high)
		return SYMFILE_NONE;

	const uint32_t bucket = bucket_of(b, address), before = nearest(b, bucket, -1),
		       behind = nearest(b, bucket, 1);
	const uint64_t room = (uint64_t)size_of(b, bucket) + size_of(b, before) +
			      size_of(b, behind) + b->wide_count;
	struct numbers n = { 0 };
	int r;

	*ret_from = b->low + ((uint64_t)bucket << b->shift);
	*ret_to = *ret_from + (1ull << b->shift);
	if (room > MAX_GATHERED)
		return SYMFILE_TOO_LARGE;
	n.data = malloc((room + 1) * sizeof(*n.data));
	if (!n.data)
		return -ENOMEM;
	take(b, bucket, &n);
	if (before != bucket)
		take(b, before, &n);
	if (behind != bucket)
		take(b, behind, &n);
	for (uint32_t i = 0; i < b->wide_count; i++)
		n.data[n.len++] = b->wide[i];
	qsort(n.data, n.len, sizeof(*n.data), number_cmp);
	r = symtable_pick(b->file, &b->table, n.data, n.len, all);
	free(n.data);
	return r;
}

size_t symbuckets_bytes(const struct symbuckets *b)
{
	return sizeof(*b) + b->count * sizeof(*b->end) + b->count / 8 +
	       b->member_count * sizeof(*b->member);
}
