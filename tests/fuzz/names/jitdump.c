/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a jitdump, read in pieces whose size is the first byte. The result is the same for any
 * pieces. */
#include <assert.h>
#include "common/names/jit/jitdump.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int feed(struct jitdump *j, struct span s, size_t piece)
{
	int r = 0;

	for (uint64_t offset = 0, skip; r == 0 && offset < s.len; offset += skip) {
		size_t n = s.len - offset < piece ? s.len - (size_t)offset : piece;

		r = jitdump_feed(j, (struct span){ .data = s.data + offset, .len = n }, &skip);
		offset += n;
	}
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct span s = { .data = data + 1, .len = size - 1 };
	struct codemap_hit hit, same;
	struct jitdump whole, pieces;

	if (size < 2)
		return 0;
	jitdump_init(&whole, 1 << 20);
	jitdump_init(&pieces, 1 << 20);
	int r = feed(&whole, s, s.len);
	assert(feed(&pieces, s, data[0] + 1u) == r);
	assert(whole.bad_records == pieces.bad_records);
	for (uint64_t a = 0x7f0000000ff0; a < 0x7f0000001200; a += 7) {
		r = codemap_find(&whole.code, a, a % 256, &hit);
		assert(codemap_find(&pieces.code, a, a % 256, &same) == r);
		if (r)
			continue;
		assert(hit.start <= a && a - hit.start < hit.size && hit.line == same.line);
		assert(hit.name.len <= CODEMAP_NAME && str_eq(hit.name, same.name) &&
		       str_eq(hit.file, same.file));
	}
	assert(codemap_bytes(&whole.code) <= 3 << 20);
	jitdump_done(&whole);
	jitdump_done(&pieces);
	return 0;
}
