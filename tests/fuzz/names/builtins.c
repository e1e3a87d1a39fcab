/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a file that may contain V8's builtins. Those that are found lie in the file. */
#include <assert.h>
#include <string.h>
#include "common/names/runtime/v8/builtins.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct v8_builtins *b;
	struct symfile *f;
	struct elfview im;
	char name[V8_BUILTIN_NAME];
	uint32_t end = 0;

	if (symfile_open_bytes((struct span){ .data = data, .len = size }, &f) != 0)
		return 0;
	elfview_init(&im, f);

	const int r = v8_builtins_find(&im, &b);

	assert(r == 0 || r == SYMFILE_NONE);
	if (r == 0) {
		assert(b->entry < b->handlers && b->handlers < b->count);
		assert(b->end - b->start <= size && v8_builtins_bytes(b) > 0);
		for (uint32_t i = 0; i < b->count; i++) {
			assert(b->at[i].offset >= end);
			end = b->at[i].offset + b->at[i].size;
			if (v8_builtins_name(b, f, b->start + b->at[i].offset, name) == 0)
				assert(strncmp(name, "Builtins_", 9) == 0);
		}
		assert(end == b->end - b->start);
		v8_builtins_free(b);
	}
	elfview_done(&im);
	symfile_free(f);
	return 0;
}
