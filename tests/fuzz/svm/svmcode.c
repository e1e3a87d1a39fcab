/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a method's code. */
#include "common/svm/svmcode.h"

#include <stdlib.h>
#include <string.h>
#include "tests/fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Memory of the exact size, so that a sanitizer sees a read beyond it. */
	uint8_t *copy = malloc(size ? size : 1);

	must(copy);
	if (size)
		memcpy(copy, data, size);
	const struct span code = { .data = copy, .len = size };
	struct svmcode_frame f;
	struct svmcode_exit e;

	must(svmcode_padding(code) <= size);
	if (svmcode_begins(code, &f)) {
		uint32_t from = f.based ? f.based : f.begins;

		must(f.begins <= size && f.size < 1u << 30);
		while (from <= size && svmcode_exit(code, &f, from, &e)) {
			must(e.popped > from && e.ret >= e.popped && e.end > e.ret);
			must(e.end <= size);
			from = e.end;
		}
	}
	free(copy);
	return 0;
}
