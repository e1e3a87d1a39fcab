/* SPDX-License-Identifier: Apache-2.0 */
/* Input: the size of the pieces, and requests with their lengths. The requests do not depend on the
 * pieces. */
#include <stdint.h>
#include "tests/fuzz/must.h"
#include "tools/prof-send/intake/frames.h"

#define LIMIT 256

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A sum over the requests. */
static uint64_t fed(struct span all, size_t piece, bool *ret_end)
{
	struct frames f = { .max = LIMIT };
	uint64_t sum = 0;
	int r;

	while (all.len) {
		struct span in, one;

		(void)span_take(&all, piece < all.len ? piece : all.len, &in);
		while ((r = frames_next(&f, &in, &one)) != FRAMES_MORE) {
			must(r == 0 || r == FRAMES_LARGE);
			sum = 31 * sum + (uint64_t)r + 1;
			for (size_t i = 0; r == 0 && i < one.len; i++)
				sum = 31 * sum + one.data[i];
			must(r || one.len <= LIMIT);
		}
		must(in.len == 0);
	}
	*ret_end = frames_at_end(&f);
	frames_done(&f);
	return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool a, b;

	if (size < 2)
		return 0;
	const struct span all = { .data = data + 1, .len = size - 1 };

	must(fed(all, all.len, &a) == fed(all, data[0] % 32 + 1, &b) && a == b);
	return 0;
}
