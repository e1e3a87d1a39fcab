/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/otlp/arrange.h"

#include <errno.h>
#include <stdlib.h>
#include "tools/prof-export/otlp/otlp.pb-c.h"

/* A location that is used, with the keys by which locations are sorted. */
struct arrange_place {
	uint32_t mapping, location;
	uint64_t address;
};

/* A stack that is used, with the numbers that its locations have in the copy. */
struct arrange_list {
	const int32_t *locations; /* leaf first; part of arranging.numbers */
	uint32_t n, stack;
};

struct arranging {
	struct dictionary *to;
	const struct dictionary *from;
	struct dictionary_memo *memo;
	POOL_ARRAY(uint8_t) seen; /* by location */
	POOL_ARRAY(struct arrange_place) places;
	POOL_ARRAY(int32_t) numbers; /* of all stacks, one after another */
	POOL_ARRAY(struct arrange_list) lists;
};

/* --- packed messages --- */

static uint64_t read_varint(const uint8_t **at, const uint8_t *end)
{
	uint64_t n = 0;

	for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
		const uint8_t byte = *(*at)++;

		n |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			break;
	}
	return n;
}

/* Reads the mapping and the address. They are the first fields of a packed location, and absent if
 * they are 0. */
static struct arrange_place place_of(const struct dictionary *d, uint32_t location)
{
	const struct span s = dictionary_get(d, DICTIONARY_LOCATIONS, location);
	const uint8_t *at = s.data, *end = s.data + s.len;
	struct arrange_place p = { .location = location };

	if (at < end && *at == (1 << 3)) {
		at++;
		p.mapping = (uint32_t)read_varint(&at, end);
	}
	if (at < end && *at == (2 << 3)) {
		at++;
		p.address = read_varint(&at, end);
	}
	return p;
}

/* --- locations --- */

/* Marks the stack's locations as used. */
static int take_stack(struct arranging *a, uint32_t stack)
{
	const struct span s = dictionary_get(a->from, DICTIONARY_STACKS, stack);
	const uint8_t *at = s.data, *end = s.data + s.len;
	struct pool *pool = a->to->pool;
	const size_t first = a->numbers.len;

	/* A list of numbers is one field: a tag, the length in bytes, and the numbers. */
	if (at < end) {
		at++;
		(void)read_varint(&at, end);
	}
	while (at < end) {
		const uint32_t location = (uint32_t)read_varint(&at, end);

		if (!POOL_ARRAY_ROOM(pool, &a->numbers, 1) || !POOL_ARRAY_ROOM(pool, &a->places, 1))
			return -ENOBUFS;
		a->numbers.data[a->numbers.len++] = (int32_t)location;
		if (!a->seen.data[location])
			a->places.data[a->places.len++] = place_of(a->from, location);
		a->seen.data[location] = 1;
	}
	if (!POOL_ARRAY_ROOM(pool, &a->lists, 1))
		return -ENOBUFS;
	a->lists.data[a->lists.len++] =
		(struct arrange_list){ .n = (uint32_t)(a->numbers.len - first), .stack = stack };
	return 0;
}

static int compare_places(const void *left, const void *right)
{
	const struct arrange_place *a = left, *b = right;

	if (a->mapping != b->mapping)
		return a->mapping < b->mapping ? -1 : 1;
	if (a->address != b->address)
		return a->address < b->address ? -1 : 1;
	return a->location < b->location ? -1 : a->location > b->location;
}

static int copy_locations(struct arranging *a)
{
	uint32_t i;
	int r = 0;

	if (a->places.len)
		qsort(a->places.data, a->places.len, sizeof(*a->places.data), compare_places);
	for (size_t k = 0; !r && k < a->places.len; k++)
		r = dictionary_copy(a->to, a->from, DICTIONARY_LOCATIONS,
				    a->places.data[k].location, a->memo, &i);
	for (size_t k = 0; !r && k < a->numbers.len; k++) {
		r = dictionary_copy(a->to, a->from, DICTIONARY_LOCATIONS,
				    (uint32_t)a->numbers.data[k], a->memo, &i);
		a->numbers.data[k] = (int32_t)i;
	}
	return r;
}

/* --- stacks --- */

static int compare_lists(const void *left, const void *right)
{
	const struct arrange_list *a = left, *b = right;

	for (uint32_t i = 1; i <= a->n && i <= b->n; i++) {
		const int32_t x = a->locations[a->n - i], y = b->locations[b->n - i];

		if (x != y)
			return x < y ? -1 : 1;
	}
	return a->n < b->n ? -1 : a->n > b->n;
}

static int copy_stacks(struct arranging *a)
{
	const int32_t *at = a->numbers.data;
	int r = 0;

	for (size_t k = 0; k < a->lists.len; k++) {
		a->lists.data[k].locations = at;
		at += a->lists.data[k].n;
	}
	if (a->lists.len)
		qsort(a->lists.data, a->lists.len, sizeof(*a->lists.data), compare_lists);
	for (size_t k = 0; !r && k < a->lists.len; k++) {
		const struct arrange_list *l = &a->lists.data[k];
		Otlp__Stack stack = OTLP__STACK__INIT;
		uint32_t i;

		stack.n_location_indices = l->n;
		stack.location_indices = (int32_t *)l->locations;
		r = dictionary_message(a->to, DICTIONARY_STACKS, &stack.base, &i);
		if (!r)
			r = dictionary_note(a->to, a->from, DICTIONARY_STACKS, l->stack, a->memo,
					    i);
	}
	return r;
}

int arrange_stacks(struct dictionary *to, const struct dictionary *from, const uint8_t *used,
		   struct dictionary_memo *memo)
{
	struct arranging a = { .to = to, .from = from, .memo = memo };
	const size_t locations = dictionary_len(from, DICTIONARY_LOCATIONS);
	int r = POOL_ARRAY_ROOM(to->pool, &a.seen, locations) ? 0 : -ENOBUFS;

	if (!r)
		memset(a.seen.data, 0, locations);
	for (uint32_t i = 0; !r && i < dictionary_len(from, DICTIONARY_STACKS); i++)
		if (used[i])
			r = take_stack(&a, i);
	if (!r)
		r = copy_locations(&a);
	if (!r)
		r = copy_stacks(&a);
	POOL_ARRAY_FREE(to->pool, &a.seen);
	POOL_ARRAY_FREE(to->pool, &a.places);
	POOL_ARRAY_FREE(to->pool, &a.numbers);
	POOL_ARRAY_FREE(to->pool, &a.lists);
	return r;
}
