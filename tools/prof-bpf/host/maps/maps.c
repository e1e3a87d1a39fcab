/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few noted mappings are inserted one by one, by moving the rest of the array. Many are merged in
 * one sweep over the addresses, in which the newest mapping wins. A heap holds those that cover the
 * current address.
 */
#include "tools/prof-bpf/host/maps/maps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "tools/prof-bpf/files/files.h"
#include "tools/prof-bpf/owners/owners.h"

#define ONE_BY_ONE 8u

struct maps *maps_new(void)
{
	struct maps *m = calloc(1, sizeof(*m));

	if (m)
		m->refs = 1;
	return m;
}

struct maps *maps_get(struct maps *m)
{
	m->refs++;
	return m;
}

static void drop(struct map *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		files_backing_put(at[i].backing);
}

void maps_put(struct maps *m)
{
	if (!m || --m->refs)
		return;
	drop(m->at, m->len);
	drop(m->noted, m->noted_len);
	free(m->at);
	free(m->noted);
	if (m->owner)
		owner_release(m->owners, m->owner, OWNER_MAPPINGS, m->charged);
	free(m);
}

void maps_charge(struct maps *m, struct owners *o, struct owner *w)
{
	const uint32_t n = m->len + m->noted_len;

	if (m->owner && m->owner != w && m->refs == 1) {
		owner_release(o, m->owner, OWNER_MAPPINGS, m->charged);
		m->charged = 0;
	}
	if (!m->charged)
		m->owner = w;
	m->owners = o;
	if (n > m->charged)
		owner_hold(o, m->owner, OWNER_MAPPINGS, n - m->charged);
	else
		owner_release(o, m->owner, OWNER_MAPPINGS, m->charged - n);
	m->charged = n;
}

static int grow(struct map **at, uint32_t *cap, uint64_t want)
{
	uint64_t n = *cap ? *cap : 8;

	if (want <= *cap)
		return 0;
	while (n < want)
		n *= 2;
	if (n > UINT32_MAX)
		return -ENOMEM;
	struct map *p = reallocarray(*at, n, sizeof(*p));
	if (!p)
		return -ENOMEM;
	*at = p;
	*cap = (uint32_t)n;
	return 0;
}

static int copy(const struct map *from, uint32_t n, struct map **to, uint32_t *len, uint32_t *cap)
{
	int r = grow(to, cap, n);

	if (r)
		return r;
	if (n)
		memcpy(*to, from, n * sizeof(*from));
	for (uint32_t i = 0; i < n; i++)
		files_backing_get(from[i].backing);
	*len = n;
	return 0;
}

static int own(struct maps **m)
{
	struct maps *old = *m;

	if (old->refs == 1)
		return 0;
	struct maps *mine = maps_new();
	if (!mine)
		return -ENOMEM;
	if (copy(old->at, old->len, &mine->at, &mine->len, &mine->cap) ||
	    copy(old->noted, old->noted_len, &mine->noted, &mine->noted_len, &mine->noted_cap)) {
		maps_put(mine);
		return -ENOMEM;
	}
	maps_put(old);
	*m = mine;
	return 0;
}

int maps_add(struct maps **m, const struct map *add)
{
	int r = add->start < add->end ? own(m) : -EINVAL;

	if (!r)
		r = grow(&(*m)->noted, &(*m)->noted_cap, (uint64_t)(*m)->noted_len + 1);
	if (r) {
		files_backing_put(add->backing);
		return r;
	}
	(*m)->noted[(*m)->noted_len++] = *add;
	return 0;
}

uint32_t maps_from(const struct maps *m, uint64_t addr)
{
	uint32_t lo = 0, hi = m->len;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (m->at[mid].end > addr)
			hi = mid;
		else
			lo = mid + 1;
	}
	return lo;
}

const struct map *maps_find(const struct maps *m, uint64_t addr)
{
	uint32_t i = maps_from(m, addr);

	return i < m->len && m->at[i].start <= addr ? &m->at[i] : NULL;
}

bool maps_has_anonymous(const struct maps *m, uint64_t start, uint64_t end)
{
	const struct map *at = m->noted_len ? NULL : maps_find(m, start);

	return at && !at->backing && at->end >= end;
}

/* Returns the part of a mapping in [start, end), with its own reference. */
static struct map part(const struct map *m, uint64_t start, uint64_t end)
{
	files_backing_get(m->backing);
	return (struct map){ .start = start,
			     .end = end,
			     .offset = m->offset + (start - m->start),
			     .backing = m->backing };
}

/* Inserts a mapping, and takes over its reference. There is space for two more. */
static void put_in(struct maps *m, const struct map *add)
{
	struct map in[3];
	uint32_t n = 0, from = maps_from(m, add->start), to = from;

	while (to < m->len && m->at[to].start < add->end)
		to++;
	if (from < to && m->at[from].start < add->start)
		in[n++] = part(&m->at[from], m->at[from].start, add->start);
	in[n++] = *add;
	if (from < to && m->at[to - 1].end > add->end)
		in[n++] = part(&m->at[to - 1], add->end, m->at[to - 1].end);
	drop(&m->at[from], to - from);
	memmove(&m->at[from + n], &m->at[to], (m->len - to) * sizeof(*m->at));
	memcpy(&m->at[from], in, n * sizeof(*in));
	m->len += n;
	m->len -= to - from;
}

struct maps_item {
	struct map map;
	uint32_t age; /* a higher number is newer; 0: already in place */
};

static int item_order(const void *a, const void *b)
{
	const struct maps_item *x = a, *y = b;

	if (x->map.start != y->map.start)
		return x->map.start < y->map.start ? -1 : 1;
	return x->age < y->age ? -1 : x->age > y->age;
}

/* A heap of items that cover the current address, or did; the newest comes first. */
struct cover {
	const struct maps_item **at;
	uint32_t len;
};

static void cover_push(struct cover *c, const struct maps_item *i)
{
	uint32_t at = c->len++;

	while (at && c->at[(at - 1) / 2]->age < i->age) {
		c->at[at] = c->at[(at - 1) / 2];
		at = (at - 1) / 2;
	}
	c->at[at] = i;
}

static void cover_pop(struct cover *c)
{
	const struct maps_item *last = c->at[--c->len];
	uint32_t at = 0;

	for (;;) {
		uint32_t child = at * 2 + 1;

		if (child >= c->len)
			break;
		if (child + 1 < c->len && c->at[child + 1]->age > c->at[child]->age)
			child++;
		if (c->at[child]->age <= last->age)
			break;
		c->at[at] = c->at[child];
		at = child;
	}
	c->at[at] = last;
}

/* Merges sorted items into out, which has space for twice as many. Returns how many it has then. */
static uint32_t sweep(const struct maps_item *items, uint32_t n, struct cover *c, struct map *out)
{
	const struct maps_item *last = NULL;
	uint32_t next = 0, len = 0;
	uint64_t at = 0;

	while (next < n || c->len) {
		if (!c->len)
			at = items[next].map.start;
		while (next < n && items[next].map.start == at)
			cover_push(c, &items[next++]);
		const struct maps_item *top = c->at[0];
		if (top->map.end <= at) {
			cover_pop(c);
			if (!c->len || next == n || items[next].map.start > at)
				continue;
		}
		if (!c->len)
			continue;
		top = c->at[0];
		if (top->map.end <= at)
			continue;
		uint64_t end = top->map.end;
		if (next < n && items[next].map.start < end)
			end = items[next].map.start;
		if (top == last && len && out[len - 1].end == at)
			out[len - 1].end = end;
		else
			out[len++] = part(&top->map, at, end);
		last = top;
		at = end;
	}
	return len;
}

static int put_in_all(struct maps *m)
{
	uint32_t n = m->len + m->noted_len;
	struct maps_item *items = calloc(n, sizeof(*items));
	struct cover c = { .at = calloc(n, sizeof(*c.at)) };
	struct map *out = calloc((size_t)n * 2, sizeof(*out));

	if (!items || !c.at || !out) {
		free(items);
		free(c.at);
		free(out);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < m->len; i++)
		items[i].map = m->at[i];
	for (uint32_t i = 0; i < m->noted_len; i++)
		items[m->len + i] = (struct maps_item){ .map = m->noted[i], .age = i + 1 };
	qsort(items, n, sizeof(*items), item_order);
	uint32_t len = sweep(items, n, &c, out);

	drop(m->at, m->len);
	drop(m->noted, m->noted_len);
	free(m->at);
	free(items);
	free(c.at);
	/* Shrink the array; if that fails, keep it. */
	struct map *fit = reallocarray(out, len, sizeof(*out));
	m->at = fit ? fit : out;
	m->cap = fit ? len : n * 2;
	m->len = len;
	m->noted_len = 0;
	return 0;
}

int maps_settle(struct maps *m, uint32_t max, uint64_t *dropped)
{
	int r;

	if (!m->noted_len)
		return 0;
	if (m->noted_len > ONE_BY_ONE) {
		r = put_in_all(m);
	} else {
		r = grow(&m->at, &m->cap, (uint64_t)m->len + 2 * m->noted_len);
		for (uint32_t i = 0; !r && i < m->noted_len; i++)
			put_in(m, &m->noted[i]);
		if (!r)
			m->noted_len = 0;
	}
	if (!r && m->len > max) {
		*dropped += m->len - max;
		drop(&m->at[max], m->len - max);
		m->len = max;
	}
	/* A burst is over: free its memory. */
	if (!r && m->noted_cap > 64) {
		free(m->noted);
		m->noted = NULL;
		m->noted_cap = 0;
	}
	return r;
}
