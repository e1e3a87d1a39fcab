/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a perf map, read in two pieces; the first byte tells where to cut. */
#include <assert.h>
#include "common/names/jit/perfmap.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span rest = { .data = data + 1, .len = size - 1 }, first;
	struct codemap_hit hit;
	struct perfmap p;

	if (size < 2)
		return 0;
	perfmap_init(&p, 1 << 20);
	(void)span_take(&rest, data[0] % rest.len, &first);
	(void)perfmap_feed(&p, first);
	for (uint64_t a = 0x1000; a < 0x1100; a += 16)
		(void)codemap_find(&p.code, a, 1, &hit);
	(void)perfmap_feed(&p, rest);
	(void)perfmap_flush(&p);
	for (uint64_t a = 0xff0; a < 0x1200; a += 5) {
		if (codemap_find(&p.code, a, 1, &hit) != 0)
			continue;
		assert(hit.start <= a && a - hit.start < hit.size);
		assert(hit.name.len > 0 && hit.name.len <= CODEMAP_NAME && hit.line == 0);
		assert(!memchr(hit.name.data, '\n', hit.name.len));
	}
	assert(codemap_bytes(&p.code) <= 3 << 20);
	perfmap_done(&p);
	return 0;
}
