/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/reach.h"

#include <stdlib.h>
#include <string.h>

#define WAYS 8
#define LOWEST (1ull << 16) /* no pointer is below */
#define HIGHEST (1ull << 56)

/* An entry: the hash of a page and its distance + 1; 0: unused. Of a process's pages, hardly two
 * have the same hash. */
struct reach {
	uint32_t sets;	   /* a power of two */
	uint32_t replaced; /* pages that gave way since it grew */
	uint32_t turn;	   /* which way gives way next, among equals */
	uint32_t at[][WAYS];
};

/* The hash of the page of an address, of 30 bits. */
static uint32_t page_of(uint64_t address)
{
	const uint64_t h = (address >> REACH_PAGE_SHIFT) * 0x9e3779b97f4a7c15ull;

	return (uint32_t)(h >> 34);
}

static uint32_t entry_of(uint32_t page, unsigned distance)
{
	return page << 2 | (distance + 1);
}

static unsigned distance_of(uint32_t entry)
{
	return (entry & 3) - 1;
}

static struct reach *new (uint32_t sets)
{
	struct reach *r = calloc(1, sizeof(*r) + sets * sizeof(r->at[0]));

	if (r)
		r->sets = sets;
	return r;
}

/* The entry of a page, or NULL. */
static const uint32_t *find(const struct reach *r, uint32_t page)
{
	const uint32_t *set = r->at[page & (r->sets - 1)];

	for (unsigned i = 0; i < WAYS; i++)
		if (set[i] && set[i] >> 2 == page)
			return &set[i];
	return NULL;
}

/* The entry that a new page takes: an unused one, or one of the largest distance. NULL: all are
 * nearer than the new one. */
static uint32_t *place_for(struct reach *r, uint32_t page, unsigned distance)
{
	uint32_t *set = r->at[page & (r->sets - 1)], *ret = NULL;

	for (unsigned k = 0; k < WAYS; k++) {
		uint32_t *e = &set[(r->turn + k) % WAYS];

		if (!*e)
			return e;
		if (distance_of(*e) >= distance && (!ret || distance_of(*e) > distance_of(*ret)))
			ret = e;
	}
	return ret;
}

static void put(struct reach *r, uint32_t page, unsigned distance)
{
	uint32_t *e = (uint32_t *)find(r, page);

	if (e) {
		if (distance < distance_of(*e))
			*e = entry_of(page, distance);
		return;
	}
	e = place_for(r, page, distance);
	if (!e)
		return;
	r->replaced += *e != 0;
	r->turn++;
	*e = entry_of(page, distance);
}

static void grow(struct reach **reach)
{
	struct reach *old = *reach, *r;

	if (old->replaced < old->sets * WAYS || old->sets * WAYS >= REACH_MOST)
		return;
	r = new (old->sets * 2);
	if (!r)
		return;
	for (uint32_t i = 0; i < old->sets; i++)
		for (unsigned k = 0; k < WAYS; k++)
			if (old->at[i][k])
				put(r, old->at[i][k] >> 2, distance_of(old->at[i][k]));
	r->replaced = 0;
	free(old);
	*reach = r;
}

void reach_add(struct reach **reach, uint64_t address, unsigned distance)
{
	if (address < LOWEST || address >= HIGHEST)
		return;
	if (!*reach)
		*reach = new (REACH_FIRST / WAYS);
	if (!*reach)
		return;
	grow(reach);
	put(*reach, page_of(address), distance);
}

void reach_read(struct reach **reach, uint64_t address, struct span bytes)
{
	const int distance = reach_of(*reach, address, bytes.len ? bytes.len : 1);
	const size_t scanned = bytes.len < REACH_SCANNED ? bytes.len : REACH_SCANNED;
	uint64_t word;

	if (distance < 0 || distance == REACH_FAR)
		return;
	for (size_t at = -address % sizeof(word); at + sizeof(word) <= scanned;
	     at += sizeof(word)) {
		memcpy(&word, bytes.data + at, sizeof(word));
		reach_add(reach, word, (unsigned)distance + 1);
	}
}

int reach_of(const struct reach *reach, uint64_t address, uint64_t length)
{
	const uint32_t *e;

	if (!reach || address >= HIGHEST || length > REACH_BYTES)
		return -1;
	e = find(reach, page_of(address));
	if (!e)
		e = find(reach, page_of(address + REACH_BEFORE));
	return e ? (int)distance_of(*e) : -1;
}

void reach_free(struct reach *reach)
{
	free(reach);
}
