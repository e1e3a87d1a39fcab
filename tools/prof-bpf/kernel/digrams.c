/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/kernel/digrams.h"

#include <string.h>

static unsigned pair_of(const char *at)
{
	return (unsigned)(at[0] & 0x7f) << 7 | (unsigned)(at[1] & 0x7f);
}

void digrams_count(struct digrams_encoder *e, struct str text)
{
	for (uint32_t i = 1; i < text.len; i++)
		e->count[pair_of(text.data + i - 1)]++;
}

void digrams_choose(struct digrams_encoder *e, struct digrams *ret)
{
	unsigned best[DIGRAMS], n = 0;

	/* best is sorted, from the highest count down. */
	for (unsigned pair = 0; pair < DIGRAMS_PAIRS; pair++) {
		const uint32_t count = e->count[pair];

		if (!count || (n == DIGRAMS && count <= e->count[best[n - 1]]))
			continue;
		unsigned at = n < DIGRAMS ? n++ : n - 1;

		for (; at > 0 && e->count[best[at - 1]] < count; at--)
			best[at] = best[at - 1];
		best[at] = pair;
	}
	memset(ret, 0, sizeof(*ret));
	memset(e->code, 0, sizeof(e->code));
	for (unsigned i = 0; i < n; i++) {
		e->code[best[i]] = (uint8_t)(DIGRAMS + i);
		ret->pair[i][0] = (char)(best[i] >> 7);
		ret->pair[i][1] = (char)(best[i] & 0x7f);
	}
}

size_t digrams_encode(const struct digrams_encoder *e, struct str text, char *to)
{
	size_t n = 0;
	uint32_t i = 0;

	while (i < text.len) {
		const uint8_t code = i + 1 < text.len ? e->code[pair_of(text.data + i)] : 0;

		to[n++] = code ? (char)code : text.data[i];
		i += code ? 2 : 1;
	}
	return n;
}

size_t digrams_decode(const struct digrams *d, struct str coded, char *to)
{
	size_t n = 0;

	for (uint32_t i = 0; i < coded.len; i++) {
		const uint8_t c = (uint8_t)coded.data[i];

		if (c < DIGRAMS) {
			to[n++] = (char)c;
		} else {
			memcpy(to + n, d->pair[c - DIGRAMS], 2);
			n += 2;
		}
	}
	return n;
}
