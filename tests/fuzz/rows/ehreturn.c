/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a function that may raise exceptions. All results lie in it. */
#include <stdlib.h>
#include <string.h>
#include "common/rows/x86/ehreturn.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Memory of the exact size, so that a sanitizer sees a read beyond it. */
	uint8_t *code = malloc(size ? size : 1);
	struct ehreturn e;

	if (!code)
		abort();
	if (size)
		memcpy(code, data, size);
	if (ehreturn_find(code, (uint32_t)size, &e) &&
	    (e.from >= e.to || e.to >= size || e.ra > 0 || e.ra < -(1 << 16) || e.ra_to <= e.from ||
	     e.ra_to > e.to))
		abort();
	free(code);
	return 0;
}
