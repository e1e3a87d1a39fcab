// SPDX-License-Identifier: Apache-2.0
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/prof-deltas/rows.h"

#define FREE_SLOT 0xffff

static const char *const skip_words[] = {
#define X(name, word) word,
	ROWS_SKIPS(X)
#undef X
};

const char *rows_skip_word(enum rows_skip skip)
{
	return skip < ROWS_SKIP_COUNT ? skip_words[skip] : "unknown";
}

/* --- rules --- */

static int rules_grow(struct rows_rules *s)
{
	uint32_t slots = s->slots ? s->slots * 2 : 1024; /* a quarter of them full at most */
	uint16_t *slot = malloc(slots * sizeof(*slot));

	if (!slot)
		return -ENOMEM;

	struct unwind_rule *rule = realloc(s->rule, slots / 4 * sizeof(*rule));

	if (!rule) {
		free(slot);
		return -ENOMEM;
	}
	free(s->slot);
	s->rule = rule;
	s->cap = slots / 4;
	s->slot = slot;
	s->slots = slots;
	memset(slot, 0xff, slots * sizeof(*slot));
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t at = rows_words_hash(rows_words_of(&rule[i])) & (slots - 1);

		while (slot[at] != FREE_SLOT)
			at = (at + 1) & (slots - 1);
		slot[at] = (uint16_t)i;
	}
	return 0;
}

/* What the inline half of rows_rules_put did not find at first sight. */
int rows_rules_add(struct rows_rules *s, const struct unwind_rule *rule, uint16_t *ret)
{
	if (s->n == s->cap) {
		/* The gap comes first, whatever comes first. */
		bool first = !s->n;
		struct unwind_rule gap = { .cfa = UNWIND_CFA_END, .cfa_add = UNWIND_END_GAP };
		uint16_t number;
		int r = rules_grow(s);

		if (r < 0)
			return r;
		if (first && memcmp(&gap, rule, sizeof(gap)) != 0) {
			r = rows_rules_put(s, &gap, &number);
			if (r)
				return r;
		}
	}

	struct rows_words words = rows_words_of(rule);
	uint32_t at = rows_words_hash(words) & (s->slots - 1);

	for (; s->slot[at] != FREE_SLOT; at = (at + 1) & (s->slots - 1)) {
		if (rows_words_eq(rows_words_of(&s->rule[s->slot[at]]), words)) {
			*ret = s->slot[at];
			return 0;
		}
	}
	if (s->n >= ROWS_MAX_RULES)
		return ROWS_TOO_LARGE;
	s->rule[s->n] = *rule;
	s->slot[at] = (uint16_t)s->n;
	*ret = (uint16_t)s->n++;
	return 0;
}

void rows_rules_done(struct rows_rules *s)
{
	free(s->rule);
	free(s->slot);
	*s = (struct rows_rules){ 0 };
}

/* --- where --- */

void rows_init(struct rows *r)
{
	*r = (struct rows){ 0 };
}

void rows_done(struct rows *r)
{
	rows_rules_done(&r->rules);
	free(r->cell);
	free(r->function);
	*r = (struct rows){ 0 };
}

int rows_segment_add(struct rows *r, uint64_t vaddr, uint64_t offset, uint64_t size)
{
	if (r->segments == ROWS_MAX_SEGMENTS)
		return ROWS_UNSUPPORTED;
	r->segment[r->segments++] =
		(struct rows_segment){ .vaddr = vaddr, .offset = offset, .size = size };
	return 0;
}

int rows_layout(struct rows *r)
{
	uint64_t low = UINT64_MAX, high = 0;

	if (!r->segments)
		return ROWS_NONE;
	for (unsigned i = 0; i < r->segments; i++) {
		const struct rows_segment *s = &r->segment[i];

		if (s->offset < low)
			low = s->offset;
		if (s->offset + s->size > high)
			high = s->offset + s->size;
	}
	low &= ~(uint64_t)4095;
	if (high - low > UNWIND_MAX_SPAN)
		return ROWS_TOO_LARGE;
	r->base = low;
	r->span = high - low;

	/* So that the gap has its number before any function. */
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

/* --- collecting --- */

static void charge(struct rows *r)
{
	uint64_t bytes = r->cell_cap * sizeof(*r->cell) + r->function_cap * sizeof(*r->function);

	if (bytes > r->peak_bytes)
		r->peak_bytes = bytes;
}

static int grow(struct rows *r, void **array, size_t *cap, size_t item)
{
	size_t n = *cap < 1024 ? 1024 : *cap + *cap / 2;

	if (n * item > ROWS_MAX_BYTES)
		return ROWS_TOO_LARGE;

	void *p = realloc(*array, n * item);

	if (!p)
		return -ENOMEM;
	*array = p;
	*cap = n;
	charge(r);
	return 0;
}

/* The first settled function that ends after `at`. */
static size_t settled_after(const struct rows *r, uint32_t at)
{
	size_t low = 0, high = r->settled;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (r->function[mid].end <= at)
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
		return ROWS_NONE;
	}
	if (r->filling) {
		size_t i = settled_after(r, start);

		if (i < r->settled && r->function[i].start <= start) {
			r->skipped[ROWS_SKIP_COVERED]++;
			return ROWS_NONE;
		}
		if (i < r->settled && r->function[i].start < end)
			end = r->function[i].start;
	}
	if (r->functions == r->function_cap) {
		int e = grow(r, (void **)&r->function, &r->function_cap, sizeof(*r->function));

		if (e)
			return e;
	}
	r->function[r->functions] =
		(struct rows_function){ .start = start, .end = end, .first = (uint32_t)r->cells };
	r->at = start;
	return 0;
}

static int cell_add(struct rows *r, uint32_t advance, uint16_t rule)
{
	if (r->cells == r->cell_cap) {
		int e = grow(r, (void **)&r->cell, &r->cell_cap, sizeof(*r->cell));

		if (e)
			return e;
	}
	r->cell[r->cells++] = (struct rows_cell){ .advance = (uint16_t)advance, .rule = rule };
	r->function[r->functions].n++;
	return 0;
}

int rows_add(struct rows *r, uint32_t at, uint16_t rule)
{
	struct rows_function *f = &r->function[r->functions];
	int e;

	if (at >= f->end)
		return 0;
	if (f->n) {
		uint16_t last = r->cell[r->cells - 1].rule;

		if (last == rule)
			return 0;
		if (at == r->at) {
			r->cell[r->cells - 1].rule = rule;
			return 0;
		}
		/* Far jumps take cells of their own, which change nothing. */
		while (at - r->at > UINT16_MAX) {
			e = cell_add(r, UINT16_MAX, last);
			if (e)
				return e;
			r->at += UINT16_MAX;
		}
	} else {
		at = f->start;
	}
	e = cell_add(r, at - r->at, rule);
	if (e)
		return e;
	r->at = at;
	return 0;
}

void rows_close(struct rows *r)
{
	if (r->function[r->functions].n)
		r->functions++;
}

void rows_fill(struct rows *r)
{
	r->filling = true;
}

/* --- settling --- */

/* Stable, by start: three passes of ten bits, since a span has thirty (UNWIND_MAX_SPAN). */
static int sort_functions(struct rows *r)
{
	size_t n = r->functions, i = 1;

	while (i < n && r->function[i - 1].start <= r->function[i].start)
		i++;
	if (i >= n)
		return 0;

	struct rows_function *other = malloc(n * sizeof(*other));

	if (!other)
		return -ENOMEM;
	if ((r->cell_cap * sizeof(*r->cell)) + (r->function_cap + n) * sizeof(*other) >
	    r->peak_bytes)
		r->peak_bytes = r->cell_cap * sizeof(*r->cell) +
				(r->function_cap + n) * sizeof(*other);

	struct rows_function *from = r->function, *to = other;

	for (unsigned shift = 0; shift < 30; shift += 10) {
		size_t count[1025] = { 0 };

		for (i = 0; i < n; i++)
			count[((from[i].start >> shift) & 1023) + 1]++;
		for (i = 1; i < 1024; i++)
			count[i] += count[i - 1];
		for (i = 0; i < n; i++)
			to[count[(from[i].start >> shift) & 1023]++] = from[i];

		struct rows_function *swap = from;

		from = to;
		to = swap;
	}
	/* An odd number of passes: the result lies in `other`. */
	memcpy(r->function, other, n * sizeof(*other));
	free(other);
	return 0;
}

/* Moves f's start up to `start`, which lies inside it. Its cells are its own, and so are changed in
 * place. */
static void trim(struct rows *r, struct rows_function *f, uint32_t start)
{
	uint32_t at = f->start, i = 0;

	while (i + 1 < f->n && at + r->cell[f->first + i + 1].advance <= start)
		at += r->cell[f->first + ++i].advance;
	if (i + 1 < f->n)
		r->cell[f->first + i + 1].advance -= (uint16_t)(start - at);
	f->first += i;
	f->n -= i;
	f->start = start;
}

int rows_finish(struct rows *r)
{
	int e = sort_functions(r);

	if (e)
		return e;

	size_t kept = 0;
	uint32_t covered = 0;

	for (size_t i = 0; i < r->functions; i++) {
		struct rows_function f = r->function[i];

		if (f.start < covered) {
			if (f.end <= covered) {
				r->skipped[ROWS_SKIP_OVERLAP]++;
				continue;
			}
			trim(r, &f, covered);
		}
		covered = f.end;
		r->function[kept++] = f;
	}
	r->functions = r->settled = kept;
	r->filling = false;

	struct rows_cursor c;
	struct unwind_row_wire row;

	rows_cursor_init(&c, r);
	for (r->count = 0; rows_next(&c, &row); r->count++)
		;
	return r->count > UNWIND_MAX_ROWS ? ROWS_TOO_LARGE : 0;
}

/* --- giving --- */

void rows_cursor_init(struct rows_cursor *c, const struct rows *r)
{
	*c = (struct rows_cursor){ .rows = r, .rule = UINT32_MAX };
}

bool rows_next(struct rows_cursor *c, struct unwind_row_wire *ret)
{
	const struct rows *r = c->rows;

	while (c->function < r->settled) {
		const struct rows_function *f = &r->function[c->function];

		if (!c->in_function) {
			c->in_function = true;
			c->cell = 0;
			c->at = f->start;
		}
		while (c->cell < f->n) {
			const struct rows_cell *cell = &r->cell[f->first + c->cell];

			if (c->cell)
				c->at += cell->advance;
			c->cell++;
			if (c->at >= f->end)
				break;
			if (cell->rule != c->rule) {
				c->rule = cell->rule;
				*ret = (struct unwind_row_wire){ .offset = c->at,
								 .rule = cell->rule };
				return true;
			}
		}
		c->in_function = false;
		c->function++;
		if (c->function < r->settled &&
		    r->function[c->function].start - f->end <= ROWS_PADDING)
			continue;
		if (c->rule == ROWS_RULE_GAP || f->end >= r->span)
			continue;
		c->rule = ROWS_RULE_GAP;
		*ret = (struct unwind_row_wire){ .offset = f->end, .rule = ROWS_RULE_GAP };
		return true;
	}
	return false;
}
