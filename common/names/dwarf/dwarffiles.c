/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/dwarf/dwarffiles.h"

#include <dwarf.h>
#include <stdio.h>
#include "common/names/dwarf/dwarfnames.h"

static struct dwarflines_sections sections_of(const struct dwarfimage *m)
{
	return (struct dwarflines_sections){
		.line = dwarfimage_section(m, DWARFIMAGE_LINE),
		.line_str = dwarfimage_section(m, DWARFIMAGE_LINE_STR),
		.str = dwarfimage_section(m, DWARFIMAGE_STR),
	};
}

void dwarffiles_open(const struct dwarfimage *m, Dwarf_Die *cudie, struct dwarffiles *ret)
{
	uint64_t at;

	*ret = (struct dwarffiles){ .sections = sections_of(m) };
	if (dwarfnames_number(cudie, DW_AT_stmt_list, false, &at) &&
	    dwarflines_open(&ret->sections, at, &ret->table))
		ret->cudie = cudie;
}

/* The table of a split unit is at the start of its section, and has files but no lines. Its folders
 * are those of the program's own unit. */
void dwarffiles_open_split(struct dwarfsplit *s, Dwarf_Die *cudie, struct dwarffiles *ret)
{
	uint64_t at;

	if (!dwarfnames_number(&s->cudie, DW_AT_stmt_list, false, &at))
		at = 0;
	*ret = (struct dwarffiles){ .sections = sections_of(&s->image) };
	if (dwarflines_open(&ret->sections, at, &ret->table))
		ret->cudie = cudie;
}

void dwarffiles_path(const struct dwarffiles *f, uint64_t number, char into[static DWARFFILES_PATH])
{
	char path[DWARFFILES_PATH];
	Dwarf_Attribute a;

	into[0] = 0;
	if (!f->cudie || !dwarflines_path(&f->sections, &f->table, number, path, sizeof(path)))
		return;
	const char *folder = path[0] != '/' && dwarf_attr(f->cudie, DW_AT_comp_dir, &a)
				     ? dwarf_formstring(&a)
				     : NULL;
	const bool joined = folder && folder[0];

	if (snprintf(into, DWARFFILES_PATH, "%s%s%s", joined ? folder : "", joined ? "/" : "",
		     path) >= DWARFFILES_PATH)
		into[0] = 0;
}

void dwarffiles_declaration(Dwarf_Die *die, const struct dwarfimage *image,
			    const struct dwarfimage *alt, const struct dwarffiles *split,
			    char into[static DWARFFILES_PATH])
{
	struct dwarffiles own;
	Dwarf_Attribute a;
	Dwarf_Die cudie;
	Dwarf_Word file;

	into[0] = 0;
	if (!dwarf_attr_integrate(die, DW_AT_decl_file, &a) || dwarf_formudata(&a, &file) != 0)
		return;
	if (!split) {
		if (!dwarf_cu_die(a.cu, &cudie, NULL, NULL, NULL, NULL, NULL, NULL))
			return;
		const bool other = alt->dwarf && dwarf_cu_getdwarf(a.cu) == alt->dwarf;

		dwarffiles_open(other ? alt : image, &cudie, &own);
	}
	dwarffiles_path(split ? split : &own, file, into);
}
