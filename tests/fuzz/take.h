/* SPDX-License-Identifier: Apache-2.0 */
/* Takes pieces from the front of a fuzzer's input, which may be too short for them. */
#ifndef TESTS_FUZZ_TAKE_H
#define TESTS_FUZZ_TAKE_H

#include <string.h>
#include "common/base/bytes/span.h"

static inline struct span take(struct span *from, size_t n)
{
	struct span taken = { .data = from->data, .len = n < from->len ? n : from->len };

	if (taken.len) {
		from->data += taken.len;
		from->len -= taken.len;
	}
	return taken;
}

static inline uint64_t take_number(struct span *from, size_t n)
{
	const struct span bytes = take(from, n);
	uint64_t v = 0;

	if (bytes.len)
		memcpy(&v, bytes.data, bytes.len);
	return v;
}

#endif
