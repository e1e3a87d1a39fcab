/* SPDX-License-Identifier: Apache-2.0 */
/* Input: code that may call a Lisp function. All results lie in it. */
#include "common/rows/x86/lispcall.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Memory of the exact size, so that a sanitizer sees a read beyond it. */
	uint8_t *copy = malloc(size ? size : 1);
	struct lispcall c;

	if (!copy)
		abort();
	if (size)
		memcpy(copy, data, size);
	if (lispcall_find((struct span){ .data = copy, .len = size }, &c) &&
	    (c.call < LISPCALL_FRAME || c.call >= c.ret || c.ret >= size))
		abort();
	free(copy);
	return 0;
}
