/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each level is an array, sorted by start. It is searched as a balanced tree, in which the middle
 * of a range is its root. Each root has the highest end below it, so a search only visits pieces
 * that cover the address. The next search turns new pieces into a level. Levels of similar length
 * are merged.
 */
#include "common/names/jit/codemap.h"

#include <errno.h>
#include <stdlib.h>

/* The most pieces of a level that a search compares, from the highest start down. */
#define COVER_MAX 256
#define FRESH_MAX (64u << 10) /* new pieces that become a level at once */

struct codemap_record {
	uint64_t time_ns;
	uint32_t name, lines; /* offsets in `text`; 0: none */
};

void codemap_init(struct codemap *m, size_t max)
{
	*m = (struct codemap){ .max = max };
}

void codemap_done(struct codemap *m)
{
	for (unsigned i = 0; i < m->level_count; i++)
		free(m->levels[i].at);
	free(m->fresh);
	buf_done(&m->text);
	codemap_init(m, m->max);
}

size_t codemap_bytes(const struct codemap *m)
{
	return m->text.cap + (m->entries + m->fresh_cap) * sizeof(*m->fresh);
}

/* --- names, line tables and records of pieces, one after the other in `text` --- */

/* Appends to `text`. *ret_at is the offset, never 0. */
static int keep(struct codemap *m, const void *data, size_t n, uint32_t *ret_at)
{
	int r = 0;

	/* Leave space for merging, which needs a copy of a level. */
	if (m->text.len + n + 2 * (m->entries + m->fresh_len + 1) * sizeof(*m->fresh) > m->max ||
	    m->text.len + n > UINT32_MAX)
		return CODEMAP_FULL;
	if (m->text.len == 0)
		r = buf_append(&m->text, "", 1);
	if (r == 0) {
		*ret_at = (uint32_t)m->text.len;
		r = buf_append(&m->text, data, n);
	}
	return r;
}

static int keep_str(struct codemap *m, struct str s, uint32_t *ret_at)
{
	uint8_t b[2 + CODEMAP_NAME];
	uint16_t len;

	s = str_cut(s, CODEMAP_NAME);
	len = (uint16_t)s.len;
	memcpy(b, &len, sizeof(len));
	if (len)
		memcpy(b + sizeof(len), s.data, len);
	return keep(m, b, sizeof(len) + len, ret_at);
}

static struct str str_at(const struct codemap *m, uint32_t at)
{
	uint16_t len;

	if (!at)
		return (struct str){ 0 };
	memcpy(&len, m->text.data + at, sizeof(len));
	return (struct str){ .data = (const char *)m->text.data + at + sizeof(len), .len = len };
}

static struct codemap_record record_at(const struct codemap *m, uint32_t at)
{
	struct codemap_record r;

	memcpy(&r, m->text.data + at, sizeof(r));
	return r;
}

int codemap_file(struct codemap *m, struct str name, uint32_t *ret_file)
{
	return keep_str(m, name, ret_file);
}

int codemap_lines(struct codemap *m, const struct codemap_line *lines, uint32_t count,
		  uint32_t *ret_lines)
{
	uint32_t at, rest;
	int r = keep(m, &count, sizeof(count), &at);

	if (r == 0 && count)
		r = keep(m, lines, count * sizeof(*lines), &rest);
	if (r == 0)
		*ret_lines = at;
	return r;
}

/* --- adding --- */

static int add(struct codemap *m, uint64_t start, uint64_t size, const struct codemap_record *rec)
{
	uint32_t at;
	int r;

	if (size == 0 || size > CODEMAP_SIZE || start > UINT64_MAX - size)
		return CODEMAP_IMPOSSIBLE;
	if (m->fresh_len == m->fresh_cap) {
		size_t cap = m->fresh_cap ? m->fresh_cap * 2 : 64;
		struct codemap_entry *fresh = reallocarray(m->fresh, cap, sizeof(*fresh));

		if (!fresh)
			return -ENOMEM;
		m->fresh = fresh;
		m->fresh_cap = cap;
	}
	r = keep(m, rec, sizeof(*rec), &at);
	if (r == 0)
		m->fresh[m->fresh_len++] = (struct codemap_entry){ .start = start,
								   .size = (uint32_t)size,
								   .record = at };
	return r;
}

static int settle(struct codemap *m);

int codemap_add(struct codemap *m, uint64_t start, uint64_t size, uint64_t time_ns, struct str name,
		uint32_t lines)
{
	struct codemap_record rec = { .time_ns = time_ns, .lines = lines };
	int r = keep_str(m, name, &rec.name);

	if (r == 0)
		r = add(m, start, size, &rec);
	return r == 0 && m->fresh_len >= FRESH_MAX ? settle(m) : r;
}

int codemap_move(struct codemap *m, uint32_t record, uint64_t start, uint64_t size,
		 uint64_t time_ns)
{
	struct codemap_record rec = record_at(m, record);

	rec.time_ns = time_ns;
	return add(m, start, size, &rec);
}

/* --- levels --- */

static int entry_order(const void *a, const void *b)
{
	const struct codemap_entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->record < y->record ? -1 : x->record > y->record;
}

/* Sets last_end in the tree of the pieces [lo, hi). Returns the highest end. */
static uint64_t set_ends(struct codemap_entry *at, size_t lo, size_t hi)
{
	size_t mid = lo + (hi - lo) / 2;
	uint64_t end, sub;

	if (lo == hi)
		return 0;
	end = at[mid].start + at[mid].size;
	sub = set_ends(at, lo, mid);
	end = sub > end ? sub : end;
	sub = set_ends(at, mid + 1, hi);
	end = sub > end ? sub : end;
	at[mid].last_end = end;
	return end;
}

/* Appends e to a sorted array. It replaces a piece with the same start and without a time. */
static size_t put(const struct codemap *m, struct codemap_entry *at, size_t len,
		  const struct codemap_entry *e)
{
	if (len && at[len - 1].start == e->start && record_at(m, e->record).time_ns == 0)
		len--;
	at[len] = *e;
	return len + 1;
}

/* Merges the last two levels. */
static int merge(struct codemap *m)
{
	struct codemap_level *a = &m->levels[m->level_count - 2], *b = a + 1;
	struct codemap_entry *to = reallocarray(NULL, a->len + b->len, sizeof(*to));
	size_t i = 0, j = 0, n = 0;

	if (!to)
		return -ENOMEM;
	while (i < a->len || j < b->len) {
		bool from_a = j == b->len || (i < a->len && entry_order(&a->at[i], &b->at[j]) <= 0);

		n = put(m, to, n, from_a ? &a->at[i++] : &b->at[j++]);
	}
	m->entries -= a->len + b->len - n;
	set_ends(to, 0, n);
	free(a->at);
	free(b->at);
	*a = (struct codemap_level){ .at = to, .len = n };
	m->level_count--;
	return 0;
}

/* Turns the new pieces into a level. */
static int settle(struct codemap *m)
{
	struct codemap_level *l = &m->levels[m->level_count];
	size_t n = 0;
	int r = 0;

	if (m->fresh_len == 0)
		return 0;
	qsort(m->fresh, m->fresh_len, sizeof(*m->fresh), entry_order);
	for (size_t i = 0; i < m->fresh_len; i++)
		n = put(m, m->fresh, n, &m->fresh[i]);
	*l = (struct codemap_level){ .at = reallocarray(m->fresh, n, sizeof(*m->fresh)), .len = n };
	if (!l->at)
		l->at = m->fresh;
	m->fresh = NULL;
	m->fresh_len = m->fresh_cap = 0;
	set_ends(l->at, 0, n);
	m->entries += n;
	m->level_count++;
	while (r == 0 && m->level_count > 1 &&
	       (m->levels[m->level_count - 2].len <= 2 * m->levels[m->level_count - 1].len ||
		m->level_count == CODEMAP_LEVELS))
		r = merge(m);
	return r;
}

/* --- searching --- */

struct codemap_search {
	const struct codemap *map;
	unsigned level;
	uint64_t address, time_ns;
	unsigned looked_at;
	const struct codemap_entry *best;
	uint64_t best_time_ns;
	uint64_t later_ns; /* the earliest time of code that came after time_ns */
};

/* Whether code without a time is gone: a newer piece begins at its address. Within a level, put has
 * already removed such code; this looks at the newer levels. */
static bool is_gone(const struct codemap_search *s, const struct codemap_entry *e)
{
	for (unsigned i = s->level + 1; i < s->map->level_count; i++) {
		const struct codemap_level *l = &s->map->levels[i];
		size_t lo = 0, hi = l->len;

		while (lo < hi) {
			size_t mid = lo + (hi - lo) / 2;

			if (l->at[mid].start < e->start)
				lo = mid + 1;
			else
				hi = mid;
		}
		if (lo < l->len && l->at[lo].start == e->start)
			return true;
	}
	return false;
}

static void consider(struct codemap_search *s, const struct codemap_entry *e)
{
	uint64_t time_ns = record_at(s->map, e->record).time_ns;
	bool was = time_ns <= s->time_ns, best_was = s->best_time_ns <= s->time_ns;

	s->looked_at++;
	if (!was && time_ns < s->later_ns)
		s->later_ns = time_ns;
	if (time_ns == 0 && is_gone(s, e))
		return;
	/* Prefer the newest piece that existed at that time; otherwise the first that came
	 * later. */
	if (!s->best || (was && (!best_was || e->record > s->best->record)) ||
	    (!was && !best_was && time_ns < s->best_time_ns)) {
		s->best = e;
		s->best_time_ns = time_ns;
	}
}

static void search(struct codemap_search *s, const struct codemap_entry *at, size_t lo, size_t hi)
{
	size_t mid = lo + (hi - lo) / 2;

	if (lo == hi || at[mid].last_end <= s->address || s->looked_at >= COVER_MAX)
		return;
	if (at[mid].start <= s->address) {
		search(s, at, mid + 1, hi);
		if (at[mid].size > s->address - at[mid].start)
			consider(s, &at[mid]);
	}
	search(s, at, lo, mid);
}

static void find_line(const struct codemap *m, uint32_t lines, uint64_t offset,
		      struct codemap_hit *ret)
{
	struct codemap_line line;
	uint32_t count, lo = 0;
	const uint8_t *at;

	memcpy(&count, m->text.data + lines, sizeof(count));
	at = m->text.data + lines + sizeof(count);
	for (uint32_t hi = count; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;

		memcpy(&line, at + mid * sizeof(line), sizeof(line));
		if (line.offset <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0)
		return;
	memcpy(&line, at + (lo - 1) * sizeof(line), sizeof(line));
	ret->line = line.line;
	ret->file = str_at(m, line.file);
}

int codemap_find(struct codemap *m, uint64_t address, uint64_t time_ns, struct codemap_hit *ret)
{
	struct codemap_search s = {
		.map = m, .address = address, .time_ns = time_ns, .later_ns = UINT64_MAX
	};
	int r = settle(m);

	if (r)
		return r;
	/* Newest level first: an older level cannot have a newer piece. */
	for (unsigned i = m->level_count; i-- > 0;) {
		s.looked_at = 0;
		s.level = i;
		search(&s, m->levels[i].at, 0, m->levels[i].len);
		if (s.best && s.best_time_ns <= time_ns)
			break;
	}
	if (!s.best)
		return CODEMAP_NONE;
	struct codemap_record rec = record_at(m, s.best->record);

	*ret = (struct codemap_hit){ .name = str_at(m, rec.name),
				     .start = s.best->start,
				     .size = s.best->size,
				     .record = s.best->record,
				     .until_ns = s.later_ns };
	if (s.best_time_ns <= time_ns)
		ret->since_ns = s.best_time_ns;
	if (rec.lines)
		find_line(m, rec.lines, address - s.best->start, ret);
	return 0;
}
