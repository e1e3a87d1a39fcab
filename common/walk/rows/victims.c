/* SPDX-License-Identifier: Apache-2.0 */
#include "common/walk/rows/victims.h"

#include <stdlib.h>

#define COMES_WORTH 8 /* samples assumed for a new file */

bool victim_is_free(const struct victim *v)
{
	return v->idle && 2ull * v->samples < COMES_WORTH;
}

static int compare(const void *a, const void *b)
{
	const struct victim *l = a, *r = b;

	if (l->samples != r->samples)
		return l->samples < r->samples ? -1 : 1;
	if (l->idle != r->idle)
		return l->idle ? -1 : 1;
	return l->touched_ns < r->touched_ns ? -1 : l->touched_ns > r->touched_ns;
}

void victims_sort(struct victim *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare);
}

size_t victims_of_owners(struct victim *v, size_t n, uint32_t taker, uint64_t *spare, bool only)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t *rest = &spare[v[i].owner];
		const bool other = v[i].owner != taker && *rest;

		if (!other && (only || (v[i].owner != taker && !victim_is_free(&v[i]))))
			continue;
		if (other)
			*rest -= v[i].words < *rest ? v[i].words : *rest;
		v[kept++] = v[i];
	}
	return kept;
}

size_t victims_choose(struct victim *v, size_t n, uint64_t worth, uint64_t words)
{
	uint64_t samples = 0, got = 0;
	size_t chosen = 0;

	for (size_t i = 0; i < n && (got < words || !chosen); i++) {
		const bool free = victim_is_free(&v[i]);

		if (!free && 2 * (samples + v[i].samples) >= worth)
			continue;
		samples += free ? 0 : v[i].samples;
		got += v[i].words;
		v[chosen++] = v[i];
	}
	return got < words ? 0 : chosen;
}
