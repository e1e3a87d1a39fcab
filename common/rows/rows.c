/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define GROWN_BYTES (1u << 20) /* a block grows by at most this much */

static const char *const skip_words[] = {
#define X(name, word) word,
	ROWS_SKIPS(X)
#undef X
};

const char *rows_skip_word(enum rows_skip skip)
{
	return skip < ROWS_SKIP_COUNT ? skip_words[skip] : "unknown";
}

/* --- places --- */

void rows_init(struct rows *r)
{
	*r = (struct rows){ .tracked = UNWIND_REG_RBX };
}

void rows_done(struct rows *r)
{
	rows_rules_done(&r->rules);
	free(r->code);
	free(r->function);
	*r = (struct rows){ .tracked = UNWIND_REG_RBX };
}

void rows_reset(struct rows *r)
{
	const struct rows keep = { .tracked = r->tracked, .stopped = r->stopped };

	rows_done(r);
	*r = keep;
}

int rows_segment_add(struct rows *r, uint64_t vaddr, uint64_t offset, uint64_t size)
{
	if (r->segments == ROWS_MAX_SEGMENTS)
		return MSG_ROWS_UNSUPPORTED;
	r->segment[r->segments++] =
		(struct rows_segment){ .vaddr = vaddr, .offset = offset, .size = size };
	return 0;
}

int rows_layout(struct rows *r)
{
	uint64_t low = UINT64_MAX, high = 0;

	if (!r->segments)
		return MSG_ROWS_NONE;
	for (unsigned i = 0; i < r->segments; i++) {
		const struct rows_segment *s = &r->segment[i];

		if (s->offset < low)
			low = s->offset;
		if (s->offset + s->size > high)
			high = s->offset + s->size;
	}
	low &= ~(uint64_t)4095;
	if (high - low > UNWIND_MAX_SPAN)
		return MSG_ROWS_TOO_LARGE;
	r->base = low;
	r->span = high - low;

	/* The gap gets number 0, before any function adds rules. */
	struct unwind_rule gap = { .cfa = UNWIND_CFA_END, .cfa_add = UNWIND_END_GAP };
	uint16_t number;

	return rows_rules_put(&r->rules, &gap, &number);
}

bool rows_locate(struct rows *r, uint64_t vaddr, uint32_t *ret_at, uint64_t *ret_left)
{
	for (unsigned n = 0; n < r->segments; n++) {
		unsigned i = r->last_segment + n < r->segments ? r->last_segment + n
							       : r->last_segment + n - r->segments;
		const struct rows_segment *s = &r->segment[i];

		if (vaddr < s->vaddr || vaddr - s->vaddr >= s->size)
			continue;
		r->last_segment = i;
		*ret_at = (uint32_t)(s->offset - r->base + (vaddr - s->vaddr));
		*ret_left = s->size - (vaddr - s->vaddr);
		return true;
	}
	return false;
}

uint64_t rows_address(const struct rows *r, uint32_t at)
{
	uint64_t offset = r->base + at, end = offset;

	for (unsigned i = 0; i < r->segments; i++) {
		const struct rows_segment *s = &r->segment[i];

		if (offset >= s->offset && offset - s->offset < s->size)
			return s->vaddr + (offset - s->offset);
		if (offset == s->offset + s->size)
			end = s->vaddr + s->size;
	}
	return end;
}

/* --- stored functions --- */

static const uint8_t *decode_rule(const uint8_t *p, uint32_t *ret)
{
	uint16_t wide;

	if (*p < 0xe0) {
		*ret = *p;
		return p + 1;
	}
	if (*p < 0xff) {
		*ret = (uint32_t)(p[0] - 0xe0) << 8 | p[1];
		return p + 2;
	}
	memcpy(&wide, p + 1, 2);
	*ret = wide;
	return p + 3;
}

static const uint8_t *decode_advance(const uint8_t *p, uint32_t *ret)
{
	uint16_t wide;

	if (*p == 0) {
		memcpy(&wide, p + 1, 2);
		*ret = wide;
		return p + 3;
	}
	if (*p == 255) {
		memcpy(ret, p + 1, 4);
		return p + 5;
	}
	*ret = *p;
	return p + 1;
}

static uint8_t *code_uleb(uint8_t *p, uint32_t value)
{
	for (; value >= 0x80; value >>= 7)
		*p++ = (uint8_t)(value | 0x80);
	*p++ = (uint8_t)value;
	return p;
}

static const uint8_t *decode_uleb(const uint8_t *p, uint32_t *ret)
{
	uint32_t value = *p & 0x7f;

	for (unsigned shift = 7; *p++ & 0x80; shift += 7)
		value |= (uint32_t)(*p & 0x7f) << shift;
	*ret = value;
	return p;
}

struct function {
	uint32_t start, end; /* relative to base */
	uint32_t n;	     /* rows; at least one */
	uint32_t last;	     /* rule of the last row */
	uint32_t bytes;
	const uint8_t *p; /* the first row */
};

static struct function function_at(const struct rows *r, size_t i)
{
	const uint8_t *head = r->code + (uint32_t)r->function[i], *p;
	struct function f = { .start = (uint32_t)(r->function[i] >> 32) };
	uint32_t size;

	p = decode_uleb(head, &size);
	p = decode_uleb(p, &f.n);
	p = decode_uleb(p, &f.bytes);
	decode_rule(p, &f.last);
	f.end = f.start + size;
	f.p = head - f.bytes;
	return f;
}

/* --- collecting --- */

static void charge(struct rows *r)
{
	uint64_t bytes = r->code_len + r->functions * sizeof(*r->function);

	if (bytes > r->peak_bytes)
		r->peak_bytes = bytes;
}

static int grow(void **array, size_t *cap, size_t least, size_t item)
{
	/* realloc can mostly extend a large block in place, so growth needs no copy. The unused
	 * part also counts as memory. */
	const size_t half = *cap / 2, some = GROWN_BYTES / item;
	size_t n = *cap + (half < some ? half : some);

	if (n < 4096)
		n = 4096;
	if (n < least)
		n = least;
	if (n > ROWS_MAX_BYTES / item)
		n = ROWS_MAX_BYTES / item;
	if (n < least)
		return MSG_ROWS_TOO_LARGE;

	void *p = realloc(*array, n * item);

	if (!p)
		return -ENOMEM;
	*array = p;
	*cap = n;
	return 0;
}

/* The first settled function that ends after `at`. */
static size_t settled_after(const struct rows *r, uint32_t at)
{
	size_t low = 0, high = r->settled;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		uint32_t start, end;

		rows_extent(r, mid, &start, &end);
		if (end <= at)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

int rows_open(struct rows *r, uint32_t start, uint32_t end)
{
	if (start >= end) {
		r->skipped[ROWS_SKIP_DISCARDED]++;
		return MSG_ROWS_NONE;
	}
	if (r->filling) {
		size_t i = settled_after(r, start);
		uint32_t next = i < r->settled ? (uint32_t)(r->function[i] >> 32) : UINT32_MAX;

		if (next <= start) {
			r->skipped[ROWS_SKIP_COVERED]++;
			return MSG_ROWS_NONE;
		}
		if (next < end)
			end = next;
	}
	if (r->functions == r->function_cap) {
		int e = grow((void **)&r->function, &r->function_cap, r->functions + 1,
			     sizeof(*r->function));

		if (e)
			return e;
	}
	r->pen = (struct rows_pen){
		.p = r->code ? r->code + r->code_len : NULL, .start = start, .end = end, .at = start
	};
	return 0;
}

int rows_reserve(struct rows *r, size_t n)
{
	size_t used = r->pen.p ? (size_t)(r->pen.p - r->code) : 0;
	size_t want = n * ROWS_CODED_MAX + ROWS_CODED_HEAD_MAX;

	if (r->code_cap - used >= want)
		return 0;

	int e = grow((void **)&r->code, &r->code_cap, used + want, 1);

	if (!e)
		r->pen.p = r->code + used;
	return e;
}

int rows_add(struct rows *r, uint32_t at, uint16_t rule)
{
	struct rows_pen *pen = &r->pen;
	int e;

	if (at >= pen->end)
		return 0;
	e = rows_reserve(r, 1);
	if (e)
		return e;
	if (pen->n && at == pen->at && pen->rule != rule) {
		pen->p -= pen->rule < 0xe0 ? 1 : pen->rule < 0x1f00 ? 2 : 3;
		pen->p = rows_code_rule(pen->p, rule);
		pen->rule = rule;
		r->replaced = true;
		return 0;
	}
	rows_pen_put(pen, at, rule);
	return 0;
}

/* Writes the head after the rows. */
static uint64_t put_head(struct rows *r, const struct rows_pen *pen)
{
	uint8_t *head = pen->p, *p;

	p = code_uleb(head, pen->end - pen->start);
	p = code_uleb(p, pen->n);
	p = code_uleb(p, (uint32_t)((size_t)(head - r->code) - r->code_len));
	p = rows_code_rule(p, pen->rule);
	r->code_len = (size_t)(p - r->code);
	return (uint64_t)pen->start << 32 | (uint32_t)(head - r->code);
}

void rows_close(struct rows *r)
{
	if (!r->pen.n)
		return;
	r->function[r->functions] = put_head(r, &r->pen);
	r->functions++;
}

int rows_add_end(struct rows *r, uint64_t vaddr, uint64_t size)
{
	const struct unwind_rule rule = { .cfa = UNWIND_CFA_REG,
					  .cfa_reg = UNWIND_REG_RSP,
					  .cfa_off = 8,
					  .ra = UNWIND_RA_UNDEFINED,
					  .flags = UNWIND_DERIVED };
	uint64_t room;
	uint16_t number;
	uint32_t at;

	if (!rows_locate(r, vaddr - 1, &at, &room) || room <= size)
		return 0;
	int e = rows_open(r, at, at + 1 + (uint32_t)size);
	if (!e)
		e = rows_rules_put(&r->rules, &rule, &number);
	if (!e)
		e = rows_add(r, at, number);
	if (!e)
		rows_close(r);
	return e == MSG_ROWS_NONE ? 0 : e;
}

void rows_extent(const struct rows *r, size_t i, uint32_t *ret_start, uint32_t *ret_end)
{
	uint32_t size;

	decode_uleb(r->code + (uint32_t)r->function[i], &size);
	*ret_start = (uint32_t)(r->function[i] >> 32);
	*ret_end = *ret_start + size;
}

void rows_fill(struct rows *r)
{
	r->filling = true;
}

void rows_forget(struct rows *r)
{
	r->functions = r->settled;
}

/* --- settling --- */

/* Sorts distinct values in place. All are equal above bit shift + 8. A radix sort: it splits by the
 * eight bits from `shift` on, and sorts small buckets by insertion. Linear time, at most eight
 * levels of recursion. */
static void sort_values(uint64_t *v, size_t n, unsigned shift)
{
	if (n <= 32) {
		for (size_t i = 1; i < n; i++) {
			uint64_t value = v[i];
			size_t at = i;

			for (; at && v[at - 1] > value; at--)
				v[at] = v[at - 1];
			v[at] = value;
		}
		return;
	}

	size_t end[256], next[256] = { 0 }, sum = 0;

	for (size_t i = 0; i < n; i++)
		next[v[i] >> shift & 255]++;
	for (unsigned b = 0; b < 256; b++) {
		sum += next[b];
		next[b] = sum - next[b];
		end[b] = sum;
	}
	for (unsigned b = 0; b < 256; b++) {
		while (next[b] < end[b]) {
			uint64_t value = v[next[b]];
			unsigned to = value >> shift & 255;

			while (to != b) {
				uint64_t swap = v[next[to]];

				v[next[to]++] = value;
				value = swap;
				to = value >> shift & 255;
			}
			v[next[b]++] = value;
		}
	}
	for (unsigned b = 0; b < 256 && shift; b++) {
		size_t first = b ? end[b - 1] : 0;

		if (end[b] - first > 1)
			sort_values(v + first, end[b] - first, shift < 8 ? 0 : shift - 8);
	}
}

static void sort_functions(const struct rows *r, uint64_t *v, size_t n)
{
	size_t i = 1;

	while (i < n && v[i - 1] <= v[i])
		i++;
	if (i < n)
		/* The upper half is a start, which has no more bits than the span. The lower half
		 * is a position in the code. */
		sort_values(v, n, 56 - (unsigned)__builtin_clz((uint32_t)r->span | 255));
}

/* Appends a copy of f that begins at `start`, inside f, to the code. Returns 0, MSG_ROWS_TOO_LARGE
 * or -ENOMEM. */
static int trim(struct rows *r, const struct function *f, uint32_t start, uint64_t *ret_value)
{
	size_t offset = (size_t)(f->p - r->code);
	uint32_t at = f->start, rule, advance = 0, left = f->n - 1;

	r->pen = (struct rows_pen){
		.p = r->code + r->code_len, .start = start, .end = f->end, .at = start
	};

	int e = rows_reserve(r, f->n);

	if (e)
		return e;

	const uint8_t *p = decode_rule(r->code + offset, &rule), *row;

	for (; left; left--) {
		row = decode_advance(p, &advance);
		if (at + advance > start)
			break;
		at += advance;
		p = decode_rule(row, &rule);
	}
	rows_pen_put(&r->pen, start, rule);
	for (; left; left--) {
		p = decode_advance(p, &advance);
		p = decode_rule(p, &rule);
		at += advance;
		rows_pen_put(&r->pen, at, rule);
	}
	*ret_value = put_head(r, &r->pen);
	return 0;
}

/* Returns how many rows rows_next returns between the last row of `before` and the last row of f.
 * If before is NULL, f is the first function. If f is NULL, counts the rows after `before`. */
static uint64_t count_of(const struct rows *r, const struct function *before,
			 const struct function *f)
{
	uint32_t rule = before ? before->last : UINT32_MAX, first;
	uint64_t n = 0;

	if (!f)
		return before && rule != ROWS_RULE_GAP && before->end < r->span;
	if (before && f->start - before->end > ROWS_PADDING && rule != ROWS_RULE_GAP) {
		rule = ROWS_RULE_GAP;
		n++;
	}
	decode_rule(f->p, &first);
	return n + f->n - (first == rule);
}

/* Sorts the added functions and resolves their overlaps. *ret_count is the number of rows of these
 * functions only. */
static int settle(struct rows *r, uint64_t *ret_count)
{
	size_t first = r->settled, kept = first;
	struct function before = { 0 }, f;
	uint64_t count = 0;

	if (first < r->functions)
		sort_functions(r, r->function + first, r->functions - first);
	for (size_t i = first; i < r->functions; i++) {
		uint64_t value = r->function[i];

		f = function_at(r, i);
		if (kept > first && f.start < before.end) {
			if (f.end <= before.end) {
				r->skipped[ROWS_SKIP_OVERLAP]++;
				continue;
			}

			int e = trim(r, &f, before.end, &value);

			if (e)
				return e;
			r->function[i] = value;
			f = function_at(r, i);
		}
		count += count_of(r, kept > first ? &before : NULL, &f);
		r->function[kept++] = value;
		before = f;
	}
	count += count_of(r, kept > first ? &before : NULL, NULL);
	r->functions = kept;
	*ret_count = count;
	return 0;
}

/* Moves the functions from r->settled on, sorted and without overlaps, into place among the settled
 * ones. Adjusts the count of rows. Returns 0 or -ENOMEM. */
static int merge(struct rows *r)
{
	size_t n = r->functions - r->settled, to = r->functions, from = r->settled;
	uint64_t *added = malloc(n * sizeof(*added)); /* at first the added functions, later their
						       * indices */
	struct function run = { 0 }, before = { 0 }, f, next;
	bool first = false; /* no settled function comes before this run */

	if (!added)
		return -ENOMEM;
	memcpy(added, r->function + r->settled, n * sizeof(*added));
	for (size_t i = n; i--;) {
		size_t low = 0, high = from;

		while (low < high) {
			size_t mid = low + (high - low) / 2;

			if (r->function[mid] < added[i])
				low = mid + 1;
			else
				high = mid;
		}
		to -= from - low;
		memmove(r->function + to, r->function + low, (from - low) * sizeof(*added));
		from = low;
		r->function[--to] = added[i];
		added[i] = to;
	}
	for (size_t i = 0; i < n; i++) {
		size_t at = added[i];

		if (!i || added[i - 1] != at - 1) {
			run = before = at ? function_at(r, at - 1) : (struct function){ 0 };
			first = !at;
		}
		f = function_at(r, at);
		r->count += count_of(r, at ? &before : NULL, &f);
		if (i + 1 == n || added[i + 1] != at + 1) {
			/* The new functions fill the gap between two settled neighbours, so the row
			 * of that gap goes. */
			bool last = at + 1 == r->functions;

			if (!last)
				next = function_at(r, at + 1);
			r->count += count_of(r, &f, last ? NULL : &next);
			r->count -= count_of(r, first ? NULL : &run, last ? NULL : &next);
		}
		before = f;
	}
	free(added);
	return 0;
}

int rows_finish(struct rows *r)
{
	uint64_t count;
	int e;

	charge(r);
	if (!r->filling)
		r->settled = 0;
	e = settle(r, &count);
	if (e)
		return e;
	if (!r->settled)
		r->count = count;
	else if (r->functions > r->settled)
		e = merge(r);
	if (e)
		return e;
	r->settled = r->functions;
	r->filling = false;
	charge(r);

	if (r->replaced) {
		struct rows_cursor c;
		struct unwind_row_wire row;

		rows_cursor_init(&c, r);
		for (r->count = 0; rows_next(&c, &row); r->count++)
			;
	}
	return r->count > UNWIND_MAX_ROWS ? MSG_ROWS_TOO_LARGE : 0;
}

/* --- reading --- */

void rows_cursor_init(struct rows_cursor *c, const struct rows *r)
{
	*c = (struct rows_cursor){ .rows = r, .rule = UINT32_MAX };
}

bool rows_next(struct rows_cursor *c, struct unwind_row_wire *ret)
{
	const struct rows *r = c->rows;

	while (c->function < r->settled) {
		if (!c->in_function) {
			struct function f = function_at(r, c->function);
			uint32_t rule;

			c->in_function = true;
			c->p = decode_rule(f.p, &rule);
			c->left = f.n - 1;
			c->at = f.start;
			c->end = f.end;
			if (rule != c->rule) {
				c->rule = rule;
				*ret = (struct unwind_row_wire){ .offset = c->at, .rule = rule };
				return true;
			}
		}
		while (c->left) {
			uint32_t advance, rule;

			c->p = decode_rule(decode_advance(c->p, &advance), &rule);
			c->at += advance;
			c->left--;
			if (rule != c->rule) {
				c->rule = rule;
				*ret = (struct unwind_row_wire){ .offset = c->at, .rule = rule };
				return true;
			}
		}
		c->in_function = false;
		c->function++;
		if (c->function < r->settled &&
		    (uint32_t)(r->function[c->function] >> 32) - c->end <= ROWS_PADDING)
			continue;
		if (c->rule == ROWS_RULE_GAP || c->end >= r->span)
			continue;
		c->rule = ROWS_RULE_GAP;
		*ret = (struct unwind_row_wire){ .offset = c->end, .rule = ROWS_RULE_GAP };
		return true;
	}
	return false;
}
