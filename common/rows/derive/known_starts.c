/* SPDX-License-Identifier: Apache-2.0 */
#include "common/rows/derive/known_starts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KNOWN_STARTS_LOOK 64 /* places to look ahead */

int known_starts_reserve(void **array, uint32_t *cap, uint32_t want, size_t item)
{
	uint32_t n = *cap ? *cap * 2 : 64;
	void *p;

	if (want <= *cap)
		return 0;
	p = realloc(*array, n * item);
	if (!p)
		return -ENOMEM;
	*array = p;
	*cap = n;
	return 0;
}

void known_starts_done(struct known_starts *k)
{
	starts_done(&k->starts);
	free(k->called.value);
	free(k->accepted.value);
	free(k->endless.value);
	k->called = k->accepted = k->endless = (struct known_starts_offsets){ 0 };
}

bool known_starts_called(const struct known_starts *k, uint32_t at)
{
	return k->called.n && k->called.value[0] == at;
}

int known_starts_call(struct known_starts *k, uint32_t at)
{
	struct known_starts_offsets *h = &k->called;
	uint32_t i;
	int r;

	if (h->n == KNOWN_STARTS_MAX_CALLED)
		return 0;
	r = known_starts_reserve((void **)&h->value, &h->cap, h->n + 1, sizeof(*h->value));
	if (r)
		return r;
	for (i = h->n++; i && h->value[(i - 1) / 2] > at; i = (i - 1) / 2)
		h->value[i] = h->value[(i - 1) / 2];
	h->value[i] = at;
	return 0;
}

static void call_pop(struct known_starts *k)
{
	struct known_starts_offsets *h = &k->called;
	uint32_t last = h->value[--h->n], i = 0;

	for (;;) {
		uint32_t child = 2 * i + 1;

		if (child + 1 < h->n && h->value[child + 1] < h->value[child])
			child++;
		if (child >= h->n || h->value[child] >= last)
			break;
		h->value[i] = h->value[child];
		i = child;
	}
	h->value[i] = last;
}

/* Adds an offset to a rising list. */
static int insert(struct known_starts_offsets *a, uint32_t at)
{
	uint32_t i;
	int r = known_starts_reserve((void **)&a->value, &a->cap, a->n + 1, sizeof(*a->value));

	if (r)
		return r;
	/* New starts mostly come in order, so try the end first. */
	for (i = a->n++; i && a->value[i - 1] > at; i--)
		a->value[i] = a->value[i - 1];
	a->value[i] = at;
	return 0;
}

int known_starts_accept(struct known_starts *k, uint32_t at, bool endless)
{
	const int r = insert(&k->accepted, at);

	return r || !endless ? r : insert(&k->endless, at);
}

static bool holds(const uint32_t *value, uint32_t n, uint32_t wanted)
{
	uint32_t low = 0, high = n;

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (value[mid] < wanted)
			low = mid + 1;
		else
			high = mid;
	}
	return low < n && value[low] == wanted;
}

bool known_starts_begins(const struct known_starts *k, int64_t at)
{
	size_t low = 0, high = k->rows->settled;
	uint32_t first = 0, last = k->starts.functions;

	if (at < 0 || at >= (int64_t)k->rows->span)
		return false;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if ((int64_t)(k->rows->function[mid] >> 32) < at)
			low = mid + 1;
		else
			high = mid;
	}
	if (low < k->rows->settled && (int64_t)(k->rows->function[low] >> 32) == at)
		return true;
	while (first < last) {
		uint32_t mid = first + (last - first) / 2;

		if (k->starts.function[mid].at < at)
			first = mid + 1;
		else
			last = mid;
	}
	if (first < k->starts.functions && k->starts.function[first].at == at)
		return true;
	return holds(k->accepted.value, k->accepted.n, (uint32_t)at);
}

bool known_starts_endless(const struct known_starts *k, int64_t at)
{
	return at >= 0 && at < (int64_t)k->rows->span &&
	       holds(k->endless.value, k->endless.n, (uint32_t)at);
}

uint32_t known_starts_next(struct known_starts *k, uint32_t at, uint32_t end)
{
	const struct starts *s = &k->starts;

	while (k->next && s->function[k->next - 1].at >= at)
		k->next--;
	while (k->next < s->functions && s->function[k->next].at < at)
		k->next++;
	while (k->called.n && k->called.value[0] < at)
		call_pop(k);
	if (k->next < s->functions && s->function[k->next].at < end)
		end = s->function[k->next].at;
	if (k->called.n && k->called.value[0] < end)
		end = k->called.value[0];
	return end;
}

uint32_t known_starts_sure(const struct known_starts *k, uint32_t at, uint32_t end)
{
	const struct starts *s = &k->starts;
	uint32_t i = k->next;

	for (unsigned n = 0; i < s->functions && n < KNOWN_STARTS_LOOK; i++) {
		if (s->function[i].at < at)
			continue;
		if (!s->function[i].taken)
			break;
		n++;
	}
	if (i < s->functions && s->function[i].at < end)
		end = s->function[i].at;
	if (k->called.n && k->called.value[0] >= at && k->called.value[0] < end)
		end = k->called.value[0];
	return end;
}

const struct starts_function *known_starts_start(const struct known_starts *k, uint32_t at)
{
	const struct starts *s = &k->starts;
	uint32_t i = k->next;

	while (i && s->function[i - 1].at >= at)
		i--;
	return i < s->functions && s->function[i].at == at ? &s->function[i] : NULL;
}
