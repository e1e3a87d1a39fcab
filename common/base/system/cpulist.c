/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/system/cpulist.h"

#include <stdio.h>
#include "common/base/text/decimal.h"

/* Reads a number and advances past it. Returns false if there is none or it is too large. */
static bool take_cpu(const char **at, unsigned *ret)
{
	uint64_t n;

	if (!decimal_take(at, &n) || n >= CPULIST_MOST)
		return false;
	*ret = (unsigned)n;
	return true;
}

bool cpulist_add(struct cpulist *l, const char *text)
{
	for (const char *at = text;; at++) {
		unsigned first, last;

		if (!take_cpu(&at, &first))
			return false;
		last = first;
		if (*at == '-') {
			at++;
			if (!take_cpu(&at, &last) || last < first)
				return false;
		}
		for (unsigned i = first; i <= last; i++)
			l->bits[i / 64] |= 1ull << i % 64;
		if (*at == '\0' || (*at == '\n' && at[1] == '\0'))
			return true;
		if (*at != ',')
			return false;
	}
}

bool cpulist_has(const struct cpulist *l, unsigned cpu)
{
	return cpu < CPULIST_MOST && l->bits[cpu / 64] >> cpu % 64 & 1;
}

bool cpulist_empty(const struct cpulist *l)
{
	uint64_t all = 0;

	for (size_t i = 0; i < CPULIST_MOST / 64; i++)
		all |= l->bits[i];
	return !all;
}

int cpulist_beyond(const struct cpulist *a, const struct cpulist *b)
{
	for (unsigned i = 0; i < CPULIST_MOST; i++)
		if (cpulist_has(a, i) && !cpulist_has(b, i))
			return (int)i;
	return -1;
}

bool cpulist_meets(const struct cpulist *a, const struct cpulist *b)
{
	uint64_t both = 0;

	for (size_t i = 0; i < CPULIST_MOST / 64; i++)
		both |= a->bits[i] & b->bits[i];
	return both != 0;
}

bool cpulist_print(const struct cpulist *l, char *ret, size_t size)
{
	size_t len = 0;

	*ret = '\0';
	for (unsigned i = 0; i < CPULIST_MOST; i++) {
		const unsigned first = i;
		char text[32];

		if (!cpulist_has(l, i))
			continue;
		while (cpulist_has(l, i + 1))
			i++;
		int n = snprintf(text, sizeof(text), first < i ? "%s%u-%u" : "%s%u", len ? "," : "",
				 first, i);
		if (len + (size_t)n >= size)
			return false;
		n = snprintf(ret + len, size - len, "%s", text);
		len += (size_t)n;
	}
	return true;
}
