/* SPDX-License-Identifier: Apache-2.0 */
/* Input: notes. What is found lies within them, and the walk ends. */
#include "common/base/bytes/notes.h"

#include "tests/fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct span all = { .data = data, .len = size };
	struct span rest = all, found;
	struct note n;

	for (size_t left = rest.len; notes_next(&rest, &n); left = rest.len) {
		const uint8_t *name = (const uint8_t *)n.name.data;

		must(rest.len < left && rest.data + rest.len == data + size);
		must(!n.name.len || (name > data && name + n.name.len <= n.content.data &&
				     n.name.data[n.name.len - 1]));
		must(n.content.data + n.content.len <= rest.data);
	}
	if (notes_find(all, "GNU", 3, 64, &found))
		must(found.len && found.len <= 64 && found.data > data &&
		     found.data + found.len <= data + size);
	return 0;
}
