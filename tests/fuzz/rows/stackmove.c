/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a function's code. Its begin decides, and more code after the answer changes nothing. */
#include "common/rows/x86/stackmove.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool before = false;

	for (size_t n = 0; n <= size && n <= STACKMOVE_HEAD; n++) {
		/* Memory of the exact size, so that a sanitizer sees one byte too many. */
		uint8_t *copy = malloc(n ? n : 1);

		if (!copy)
			abort();
		if (n)
			memcpy(copy, data, n);

		bool now = stackmove_find((struct span){ .data = copy, .len = n });

		free(copy);
		if (before && !now)
			abort();
		before = now;
	}
	return 0;
}
