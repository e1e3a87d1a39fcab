/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/elf/symreach.h"

#include <string.h>

#define PE_UDATA4 0x03	       /* DW_EH_PE_udata4 */
#define PE_DATAREL_SDATA4 0x3b /* DW_EH_PE_datarel | DW_EH_PE_sdata4 */
#define CALL 0xe8

/* Shortens the gap that contains this address, where a function starts. */
static void shorten(struct symreach *gaps, size_t count, uint64_t address)
{
	size_t low = 0, n = count;

	while (n) {
		size_t half = n / 2;

		if (gaps[low + half].end <= address) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	if (low < count && gaps[low].start < address)
		gaps[low].end = address;
}

uint32_t symreach_table(const uint8_t head[static SYMREACH_HEADER])
{
	uint32_t entries;

	memcpy(&entries, head + 8, sizeof(entries));
	return head[0] == 1 && head[2] == PE_UDATA4 && head[3] == PE_DATAREL_SDATA4 ? entries : 0;
}

void symreach_entries(struct symreach *gaps, size_t count, struct span entries, uint64_t address)
{
	int32_t entry[SYMREACH_ENTRY / sizeof(int32_t)];

	while (span_read(&entries, entry, sizeof(entry)))
		shorten(gaps, count, address + (uint64_t)(int64_t)entry[0]);
}

void symreach_calls(struct symreach *gaps, size_t count, struct span code, uint64_t address)
{
	const uint8_t *at = code.data, *end = at + code.len;

	while (end - at >= SYMREACH_CALL) {
		int32_t distance;

		at = memchr(at, CALL, (size_t)(end - at));
		if (!at || end - at < SYMREACH_CALL)
			break;
		memcpy(&distance, at + 1, sizeof(distance));
		shorten(gaps, count,
			address + (uint64_t)(at - (const uint8_t *)code.data) + SYMREACH_CALL +
				(uint64_t)(int64_t)distance);
		at++;
	}
}
