/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/dwarf/dwarfsplit.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>
#include "common/names/dwarf/dwarfnames.h"
#include "common/names/dwarf/dwarfpackage.h"

#define MAX_UNITS 4096 /* units of one .dwo file: each type may have its own */

/* --- the unit in the program --- */

bool dwarfsplit_skeleton(Dwarf_Die *cudie, struct dwarfsplit_unit *ret)
{
	uint8_t type;
	Dwarf_Addr low;

	*ret = (struct dwarfsplit_unit){ 0 };
	if (dwarf_cu_info(cudie->cu, NULL, &type, NULL, NULL, &ret->id, NULL, NULL) != 0 ||
	    type != DW_UT_skeleton)
		return false;
	if (!dwarfnames_number(cudie, DW_AT_addr_base, false, &ret->addr_base))
		(void)dwarfnames_number(cudie, DW_AT_GNU_addr_base, false, &ret->addr_base);
	(void)dwarfnames_number(cudie, DW_AT_GNU_ranges_base, false, &ret->ranges_base);
	ret->low = dwarf_lowpc(cudie, &low) == 0 ? low : 0;
	return true;
}

static const char *text(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute a;

	return dwarf_attr(die, attribute, &a) ? dwarf_formstring(&a) : NULL;
}

bool dwarfsplit_path(Dwarf_Die *cudie, char *into, size_t cap)
{
	const char *name = text(cudie, DW_AT_dwo_name), *folder = text(cudie, DW_AT_comp_dir);

	if (!name)
		name = text(cudie, DW_AT_GNU_dwo_name);
	if (!name || !name[0])
		return false;
	const int n = name[0] == '/' || !folder || !folder[0]
			      ? snprintf(into, cap, "%s", name)
			      : snprintf(into, cap, "%s/%s", folder, name);

	return n > 0 && (size_t)n < cap;
}

/* --- its image --- */

static int find_unit(struct dwarfsplit *s)
{
	Dwarf_CU *cu = NULL;

	for (unsigned n = 0; n < MAX_UNITS; n++) {
		uint64_t id;
		uint8_t type;

		if (dwarf_get_units(s->image.dwarf, cu, &cu, NULL, &type, &s->cudie, NULL) != 0)
			break;
		if (type == DW_UT_split_compile &&
		    dwarf_cu_info(cu, NULL, NULL, NULL, NULL, &id, NULL, NULL) == 0 &&
		    id == s->skeleton.id)
			return 0;
	}
	return SYMFILE_NONE;
}

int dwarfsplit_open(const struct symfile *program, const struct symfile *package, uint64_t max,
		    struct dwarfsplit *s)
{
	struct dwarfimage_slice from[DWARFIMAGE_SECTIONS];
	const struct symfile *f = s->file ? s->file : package;
	int r = 0;

	for (size_t i = 0; i < DWARFIMAGE_SECTIONS; i++)
		from[i] = (struct dwarfimage_slice){ .file = f, .split = true, .size = UINT64_MAX };
	if (!s->file)
		r = dwarfpackage_find(f, s->skeleton.id, from);
	from[DWARFIMAGE_ADDR] = (struct dwarfimage_slice){ .file = program,
							   .from = s->skeleton.addr_base,
							   .size = UINT64_MAX };
	from[DWARFIMAGE_RANGES] = (struct dwarfimage_slice){ .file = program,
							     .from = s->skeleton.ranges_base,
							     .size = UINT64_MAX };
	if (!r)
		r = dwarfimage_open_slices(from, max, &s->image);
	return r ? r : find_unit(s);
}

void dwarfsplit_close(struct dwarfsplit *s)
{
	dwarfimage_done(&s->image);
}

/* --- ranges --- */

void dwarfsplit_ranges(const struct dwarfsplit *s, Dwarf_Die *die, struct dwarfsplit_ranges *ret)
{
	Dwarf_Attribute a;
	Dwarf_Half version;
	Dwarf_Word at;
	Dwarf_Addr low, high;

	*ret = (struct dwarfsplit_ranges){ 0 };
	if (dwarf_lowpc(die, &low) == 0 && dwarf_highpc(die, &high) == 0) {
		ret->low = low;
		ret->high = high;
		return;
	}
	if (!dwarf_attr(die, DW_AT_ranges, &a) || dwarf_formudata(&a, &at) != 0 ||
	    dwarf_cu_info(die->cu, &version, NULL, NULL, NULL, NULL, NULL, NULL) != 0)
		return;
	const struct span section = dwarfimage_section(
		&s->image, version < 5 ? DWARFIMAGE_RANGES : DWARFIMAGE_RNGLISTS);

	if ((dwarf_whatform(&a) == DW_FORM_rnglistx && !dwarflist_find(section, at, &at)) ||
	    at > section.len)
		return;
	ret->list = (struct dwarflist){
		.left = { .data = section.data + at, .len = section.len - at },
		.addresses = dwarfimage_section(&s->image, DWARFIMAGE_ADDR),
		.base = s->skeleton.low,
		.version = version,
	};
}

bool dwarfsplit_next(struct dwarfsplit_ranges *r, uint64_t *ret_low, uint64_t *ret_high)
{
	if (r->low < r->high) {
		*ret_low = r->low;
		*ret_high = r->high;
		r->low = r->high;
		return true;
	}
	return dwarflist_next(&r->list, ret_low, ret_high);
}
