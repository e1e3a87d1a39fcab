/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/settings/spelling.h"

#include <string.h>

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* The Levenshtein distance, computed row by row. */
unsigned spelling_distance(const char *a, const char *b)
{
	const size_t m = strnlen(a, SPELLING_LETTERS), n = strnlen(b, SPELLING_LETTERS);
	unsigned row[SPELLING_LETTERS + 1];

	for (size_t k = 0; k <= n; k++)
		row[k] = (unsigned)k;
	for (size_t i = 1; i <= m; i++) {
		unsigned before = row[0]; /* value of the previous row, one letter earlier */

		row[0] = (unsigned)i;
		for (size_t k = 1; k <= n; k++) {
			const unsigned above = row[k];

			row[k] = least(least(above, row[k - 1]) + 1,
				       before + (a[i - 1] != b[k - 1]));
			before = above;
		}
	}
	return row[n];
}

bool spelling_is_likely(const char *word, unsigned distance)
{
	return distance <= (strnlen(word, SPELLING_LETTERS) + 2) / 3;
}
