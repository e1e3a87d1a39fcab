/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/dwarf/dwarflist.h"

#include <dwarf.h>
#include <string.h>
#include "common/base/bytes/leb128.h"

/* Reads the index of an address, and looks the address up. */
static bool take_numbered(struct dwarflist *l, uint64_t *ret)
{
	uint64_t number;

	if (!leb128_unsigned(&l->left, &number) || number >= l->addresses.len / sizeof(*ret))
		return false;
	memcpy(ret, l->addresses.data + number * sizeof(*ret), sizeof(*ret));
	return true;
}

bool dwarflist_find(struct span section, uint64_t number, uint64_t *ret_offset)
{
	/* length; version, address size and segment selector size; offset count */
	uint32_t head[3], offset;

	if (section.len < sizeof(head))
		return false;
	memcpy(head, section.data, sizeof(head));
	if (head[0] >= 0xfffffff0 || number >= head[2] ||
	    number >= (section.len - sizeof(head)) / sizeof(offset))
		return false;
	memcpy(&offset, section.data + sizeof(head) + number * sizeof(offset), sizeof(offset));
	*ret_offset = sizeof(head) + (uint64_t)offset;
	return *ret_offset <= section.len;
}

static bool next_pair(struct dwarflist *l, uint64_t *low, uint64_t *high)
{
	while (span_read(&l->left, low, 8) && span_read(&l->left, high, 8) && (*low || *high)) {
		if (*low != UINT64_MAX) {
			*low += l->base;
			*high += l->base;
			return true;
		}
		l->base = *high;
	}
	return false;
}

static bool next_entry(struct dwarflist *l, uint64_t *low, uint64_t *high)
{
	uint8_t kind;

	while (span_read(&l->left, &kind, 1)) {
		switch (kind) {
		case DW_RLE_base_addressx:
			if (!take_numbered(l, &l->base))
				return false;
			continue;
		case DW_RLE_base_address:
			if (!span_read(&l->left, &l->base, 8))
				return false;
			continue;
		case DW_RLE_startx_endx:
			return take_numbered(l, low) && take_numbered(l, high);
		case DW_RLE_startx_length:
			if (!take_numbered(l, low) || !leb128_unsigned(&l->left, high))
				return false;
			*high += *low;
			return true;
		case DW_RLE_offset_pair:
			if (!leb128_unsigned(&l->left, low) || !leb128_unsigned(&l->left, high))
				return false;
			*low += l->base;
			*high += l->base;
			return true;
		case DW_RLE_start_end:
			return span_read(&l->left, low, 8) && span_read(&l->left, high, 8);
		case DW_RLE_start_length:
			if (!span_read(&l->left, low, 8) || !leb128_unsigned(&l->left, high))
				return false;
			*high += *low;
			return true;
		default:
			return false; /* the list's end */
		}
	}
	return false;
}

bool dwarflist_next(struct dwarflist *l, uint64_t *ret_low, uint64_t *ret_high)
{
	uint64_t low, high;

	if (!(l->version < 5 ? next_pair : next_entry)(l, &low, &high)) {
		l->left.len = 0;
		return false;
	}
	*ret_low = low;
	*ret_high = high;
	return true;
}
