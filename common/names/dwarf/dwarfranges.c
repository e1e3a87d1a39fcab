/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/dwarf/dwarfranges.h"

#include <errno.h>
#include <stdlib.h>
#include "common/base/bytes/numbers.h"
#include "common/names/elf/symfile.h"

#define MAX_BACK 256 /* overlapping ranges that one lookup visits */

int dwarfranges_push(struct dwarfranges *s, uint64_t low, uint64_t high, uint64_t what)
{
	if (low >= high)
		return 0;
	if (s->len == s->cap) {
		size_t cap = s->cap ? s->cap + s->cap / 2 : 8;
		struct dwarfrange *data;

		if (s->len >= (s->max && s->max < DWARFRANGES_MAX ? s->max : DWARFRANGES_MAX))
			return SYMFILE_TOO_LARGE;
		data = realloc(s->data, cap * sizeof(*data));
		if (!data)
			return -ENOMEM;
		s->data = data;
		s->cap = cap;
	}
	s->data[s->len++] = (struct dwarfrange){ .low = low, .high = high, .what = what };
	return 0;
}

static int range_cmp(const void *left, const void *right)
{
	const struct dwarfrange *a = left, *b = right;

	return a->low != b->low	    ? (a->low < b->low ? -1 : 1)
	       : a->high != b->high ? (a->high > b->high ? -1 : 1)
				    : 0;
}

int dwarfranges_sort(struct dwarfranges *s)
{
	uint64_t reach = 0;

	if (s->len == 0)
		return 0;
	qsort(s->data, s->len, sizeof(*s->data), range_cmp);
	free(s->reach);
	s->reach = malloc(s->len * sizeof(*s->reach));
	if (!s->reach)
		return -ENOMEM;
	for (size_t i = 0; i < s->len; i++) {
		reach = numbers_larger(s->data[i].high, reach);
		s->reach[i] = reach;
	}
	return 0;
}

void dwarfranges_done(struct dwarfranges *s)
{
	free(s->data);
	free(s->reach);
	*s = (struct dwarfranges){ 0 };
}

const struct dwarfrange *dwarfranges_next(const struct dwarfranges *s, uint64_t address,
					  size_t *cursor)
{
	size_t low = 0, high = s->len;

	if (*cursor == SIZE_MAX) {
		while (low < high) {
			size_t mid = low + (high - low) / 2;

			if (s->data[mid].low <= address)
				low = mid + 1;
			else
				high = mid;
		}
		*cursor = low;
	}
	for (unsigned back = 0; *cursor > 0 && back < MAX_BACK; back++) {
		const struct dwarfrange *r = &s->data[--*cursor];

		if (s->reach[*cursor] <= address)
			break;
		if (r->high > address)
			return r;
	}
	*cursor = 0;
	return NULL;
}
