/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: the sizes of .debug_line_str and .debug_str (2 bytes each), these two, and .debug_line
 * with one unit's table.
 *
 * Marks are sorted and take no more memory than they may. Paths and lines are within their limits.
 * The sections may change after the program was indexed. Reads stay within the input, whose bounds
 * the sanitizer knows.
 */
#include <stdlib.h>
#include <string.h>
#include "common/names/dwarf/dwarflines.h"
#include "common/names/elf/symfile.h"
#include "tests/fuzz/must.h"

#define MARKS_MAX 4096

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct span copy(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size ? size : 1);

	must(bytes);
	if (size)
		memcpy(bytes, data, size);
	return (struct span){ .data = bytes, .len = size };
}

static void find_all(const struct dwarflines_sections *s, const struct dwarflines *l)
{
	char path[64];

	for (uint64_t n = 0; n < 4; n++)
		if (dwarflines_path(s, l, n == 3 ? UINT64_MAX : n, path, sizeof(path)))
			must(strlen(path) < sizeof(path) && path[0] && n != 3);
	for (size_t i = 0; i < l->count; i++) {
		uint64_t file, line;

		must(!i || l->marks[i - 1].address <= l->marks[i].address);
		for (unsigned n = 0; n < 3; n++)
			if (dwarflines_find(s, l, l->marks[i].address + n - 1, &file, &line))
				must(line <= INT32_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t sizes[2];
	struct dwarflines l;

	if (size < sizeof(sizes))
		return 0;
	memcpy(sizes, data, sizeof(sizes));
	data += sizeof(sizes);
	size -= sizeof(sizes);
	if (sizes[0] > size || sizes[1] > size - sizes[0])
		return 0;
	struct dwarflines_sections s = {
		.line_str = copy(data, sizes[0]),
		.str = copy(data + sizes[0], sizes[1]),
		.line = copy(data + sizes[0] + sizes[1], size - sizes[0] - sizes[1]),
	};

	must(!dwarflines_open(&s, UINT64_MAX, &l));
	if (dwarflines_open(&s, 0, &l)) {
		const int r = dwarflines_index(&s, &l, MARKS_MAX);

		must(r == 0 || r == SYMFILE_TOO_LARGE);
		must(dwarflines_bytes(&l) <= MARKS_MAX);
		find_all(&s, &l);
		/* Other contents. */
		memset((void *)s.line.data, size & 1 ? 0x01 : 0xff, s.line.len);
		find_all(&s, &l);
		s.line.len /= 2;
		find_all(&s, &l);
		dwarflines_done(&l);
	}
	free((void *)s.line.data);
	free((void *)s.line_str.data);
	free((void *)s.str.data);
	return 0;
}
