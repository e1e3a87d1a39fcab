/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a function's code, of which any number of first bytes is read. */
#include "common/rows/x86/stackmove.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	for (size_t n = 0; n <= size && n <= STACKMOVE_HEAD; n++) {
		/* Memory of the exact size, so that a sanitizer sees a read beyond it. */
		uint8_t *copy = malloc(n ? n : 1);

		if (!copy)
			abort();
		if (n)
			memcpy(copy, data, n);
		const struct span head = { .data = copy, .len = n };

		/* The decoder has a cache. */
		if (stackmove_find(head) != stackmove_find(head))
			abort();
		free(copy);
	}
	return 0;
}
