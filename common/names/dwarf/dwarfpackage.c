/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/dwarf/dwarfpackage.h"

#include <elf.h>
#include <string.h>

#define MAX_COLUMNS 8
#define MAX_PROBES 4096 /* more than needed: packers fill at most two thirds of the table */

struct index_head {
	uint32_t version; /* 2; version 5 has two bytes here, and two bytes of padding */
	uint32_t columns, units, slots;
};

struct index {
	const struct symfile *file;
	const struct symfile_section *section;
	struct index_head head;
};

static int read_at(const struct index *x, uint64_t at, void *into, size_t n)
{
	if (at > x->section->size || n > x->section->size - at)
		return SYMFILE_MALFORMED;
	return symfile_read(x->file, x->section->offset + at, into, n);
}

static int open_index(const struct symfile *f, struct index *x)
{
	x->file = f;
	if (symfile_section(f, ".debug_cu_index", &x->section) || x->section->type == SHT_NOBITS ||
	    x->section->flags & SHF_COMPRESSED)
		return SYMFILE_NONE;
	int r = read_at(x, 0, &x->head, sizeof(x->head));

	if (r)
		return r;
	const struct index_head *h = &x->head;

	if ((h->version != 2 && h->version != 5) || !h->columns || h->columns > MAX_COLUMNS ||
	    !h->slots || h->slots & (h->slots - 1) || h->units > h->slots)
		return SYMFILE_MALFORMED;
	return 0;
}

/* Finds the row of a unit. Rows count from 1. */
static int find_row(const struct index *x, uint64_t id, uint32_t *ret)
{
	const uint64_t mask = x->head.slots - 1, step = ((id >> 32) & mask) | 1;
	uint64_t slot = id & mask;

	for (uint32_t n = 0; n < MAX_PROBES && n < x->head.slots; n++) {
		uint64_t there;
		int r = read_at(x, sizeof(x->head) + slot * 8, &there, sizeof(there));

		if (!r)
			r = read_at(x, sizeof(x->head) + x->head.slots * 8ull + slot * 4, ret,
				    sizeof(*ret));
		if (r)
			return r;
		if (!*ret)
			return SYMFILE_NONE;
		if (there == id)
			return *ret <= x->head.units ? 0 : SYMFILE_MALFORMED;
		slot = (slot + step) & mask;
	}
	return SYMFILE_NONE;
}

static int section_of(uint32_t version, uint32_t column)
{
	switch (column) {
	case 1:
		return DWARFIMAGE_INFO;
	case 3:
		return DWARFIMAGE_ABBREV;
	case 4:
		return DWARFIMAGE_LINE;
	case 6:
		return DWARFIMAGE_STR_OFFSETS;
	case 8:
		return version == 5 ? DWARFIMAGE_RNGLISTS : -1;
	}
	return -1;
}

int dwarfpackage_find(const struct symfile *f, uint64_t id,
		      struct dwarfimage_slice ret[static DWARFIMAGE_SECTIONS])
{
	static const enum dwarfimage_section parted[] = { DWARFIMAGE_INFO, DWARFIMAGE_ABBREV,
							  DWARFIMAGE_LINE, DWARFIMAGE_STR_OFFSETS,
							  DWARFIMAGE_RNGLISTS };
	uint32_t row, columns[MAX_COLUMNS], from[MAX_COLUMNS], size[MAX_COLUMNS];
	struct index x;
	int r = open_index(f, &x);

	if (!r)
		r = find_row(&x, id, &row);
	if (r)
		return r;
	const size_t width = x.head.columns * sizeof(uint32_t);
	const uint64_t offsets = sizeof(x.head) + x.head.slots * 12ull,
		       sizes = offsets + (x.head.units + 1ull) * width;

	r = read_at(&x, offsets, columns, width);
	if (!r)
		r = read_at(&x, offsets + row * width, from, width);
	if (!r)
		r = read_at(&x, sizes + (row - 1) * width, size, width);
	if (r)
		return r;
	for (size_t i = 0; i < sizeof(parted) / sizeof(parted[0]); i++)
		ret[parted[i]].from = ret[parted[i]].size = 0;
	for (uint32_t i = 0; i < x.head.columns; i++) {
		const int which = section_of(x.head.version, columns[i]);

		if (which >= 0) {
			ret[which].from = from[i];
			ret[which].size = size[i];
		}
	}
	return 0;
}
