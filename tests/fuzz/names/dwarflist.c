/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a unit's lists of ranges, of either version, and the addresses that it refers to by
 * number. A list ends, after no more ranges than it has bytes, and stays ended. Reads stay within
 * the input, whose bounds the sanitizer knows.
 */
#include <stdlib.h>
#include <string.h>
#include "common/names/dwarf/dwarflist.h"
#include "tests/fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct span copy(const uint8_t *data, size_t size)
{
	uint8_t *bytes = malloc(size);

	must(bytes || !size);
	if (size)
		memcpy(bytes, data, size);
	return (struct span){ .data = bytes, .len = size };
}

/* First the version, the base and the number of addresses; then these; then a section. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 4)
		return 0;
	const size_t most = (size - 4) / 8, asked = data[3] & 15,
		     count = asked < most ? asked : most;
	const struct span addresses = copy(data + 4, 8 * count);
	const struct span section = copy(data + 4 + 8 * count, size - 4 - 8 * count);

	for (uint64_t number = 0; number < 5; number++) {
		uint64_t at = number, low = 0, high = 0;

		/* The last one: not by a number. */
		if (number < 4 && !dwarflist_find(section, number == 3 ? UINT64_MAX : number, &at))
			continue;
		must(number == 4 || at <= section.len);
		if (at > section.len)
			continue;
		struct dwarflist l = {
			.left = { .data = section.data + at, .len = section.len - at },
			.addresses = addresses,
			.base = (uint64_t)data[1] << 56 | data[2],
			.version = data[0] & 1 ? 5 : 4,
		};
		const size_t bytes = l.left.len;
		size_t n = 0;

		while (dwarflist_next(&l, &low, &high))
			must(++n <= bytes);
		must(!dwarflist_next(&l, &low, &high));
	}
	free((void *)addresses.data);
	free((void *)section.data);
	return 0;
}
