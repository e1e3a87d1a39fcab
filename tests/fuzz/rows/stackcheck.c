/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a function of OCaml, whose two ends are read. All results lie in it. */
#include <stdlib.h>
#include <string.h>
#include "common/rows/x86/stackcheck.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Memory of the exact size, so that a sanitizer sees a read beyond it. */
static uint8_t *copy_of(const uint8_t *data, size_t n)
{
	uint8_t *copy = malloc(n ? n : 1);

	if (!copy)
		abort();
	if (n)
		memcpy(copy, data, n);
	return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t n_head = size < STACKCHECK_HEAD ? size : STACKCHECK_HEAD;
	const size_t n_tail = size < STACKCHECK_TAIL ? size : STACKCHECK_TAIL;
	uint8_t *head = copy_of(data, n_head), *tail = copy_of(data + size - n_tail, n_tail);
	struct stackcheck c;

	if (stackcheck_find((struct span){ .data = head, .len = n_head },
			    (struct span){ .data = tail, .len = n_tail }, (uint32_t)size, &c) &&
	    (c.back >= c.slow || c.slow >= c.call || c.call >= c.jump || c.jump >= size))
		abort();
	free(head);
	free(tail);
	return 0;
}
