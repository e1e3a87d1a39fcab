/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/dwarf/dwarfnames.h"

#include <dwarf.h>
#include <stdio.h>
#include <string.h>

#define MAX_SCOPES 16
#define MAX_ORIGINS 16
#define MAX_ENTRIES (8u << 20) /* entries visited to find the scopes of one entry */

/* Returns a string attribute of an entry, or of its origins and specifications, which may be in
 * another unit or file. */
static const char *die_string(Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute a;

	return dwarf_attr_integrate(die, attribute, &a) ? dwarf_formstring(&a) : NULL;
}

static bool follow(Dwarf_Die *die, unsigned attribute, Dwarf_Die *ret)
{
	Dwarf_Attribute a;

	return dwarf_attr(die, attribute, &a) && dwarf_formref_die(&a, ret);
}

/* Finds the entry of the first declaration, which lies within the function's scope. */
static void die_origin(Dwarf_Die *die, Dwarf_Die *ret)
{
	*ret = *die;
	for (unsigned i = 0; i < MAX_ORIGINS; i++) {
		Dwarf_Die next;

		if (!follow(ret, DW_AT_abstract_origin, &next) &&
		    !follow(ret, DW_AT_specification, &next))
			break;
		*ret = next;
	}
}

uint64_t dwarfnames_language(Dwarf_Die *cudie)
{
	Dwarf_Attribute a;
	Dwarf_Word language;

	return dwarf_attr(cudie, DW_AT_language, &a) && dwarf_formudata(&a, &language) == 0
		       ? language
		       : 0;
}

/* Whether the language has scopes, so that a plain name is not enough. A unit that dwz made of
 * shared entries has no language; then the language of the entry's own unit counts. */
static bool has_scopes(Dwarf_Die *cudie, Dwarf_Die *die)
{
	uint64_t language = dwarfnames_language(cudie);
	Dwarf_Die own;

	if (!language && dwarf_diecu(die, &own, NULL, NULL))
		language = dwarfnames_language(&own);
	switch (language) {
	case DW_LANG_C_plus_plus:
	case DW_LANG_C_plus_plus_03:
	case DW_LANG_C_plus_plus_11:
	case DW_LANG_C_plus_plus_14:
	case 0x2b: /* C++17 */
	case 0x2c: /* C++20 */
	case DW_LANG_Rust:
	case DW_LANG_D:
	case DW_LANG_Swift:
		return true;
	}
	return false;
}

/* Writes the scopes of an entry: `outer::inner::`. Entries are ordered by offset, so the last child
 * that starts at or before the target contains it. */
static size_t write_scopes(Dwarf_Die *origin, Dwarf_Die *cudie, char *into, size_t cap)
{
	Dwarf_Off target = dwarf_dieoffset(origin);
	Dwarf_Die at = *cudie;
	size_t len = 0, steps = 0;

	for (unsigned depth = 0; depth < MAX_SCOPES; depth++) {
		Dwarf_Die child, best;
		const char *name;
		int r;

		if (dwarf_child(&at, &child) != 0)
			break;
		best = child;
		while (++steps < MAX_ENTRIES) {
			r = dwarf_siblingof(&child, &child);
			if (r != 0 || dwarf_dieoffset(&child) > target)
				break;
			best = child;
		}
		if (dwarf_dieoffset(&best) >= target)
			break;
		at = best;
		switch (dwarf_tag(&at)) {
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
		case DW_TAG_interface_type:
		case DW_TAG_enumeration_type:
		case DW_TAG_subprogram:
			name = die_string(&at, DW_AT_name);
			r = snprintf(into + len, cap - len, "%s::", name ? name : "(anonymous)");
			if (r < 0 || (size_t)r >= cap - len)
				return len;
			len += (size_t)r;
		}
	}
	return len;
}

void dwarfnames_call(struct names *n, struct names_call *c, Dwarf_Die *die)
{
	const char *linkage = die_string(die, DW_AT_linkage_name);
	const char *plain;
	char scoped[NAMES_TEXT + 1];
	Dwarf_Die origin, cudie;
	size_t len;

	if (!linkage)
		linkage = die_string(die, DW_AT_MIPS_linkage_name);
	plain = die_string(die, DW_AT_name);
	if (linkage && linkage[0]) {
		names_set(n, c, linkage);
		/* Crystal claims to be C++, and has the plain name as its linkage name. */
		c->bare = plain && strcmp(linkage, plain) == 0 &&
			  dwarf_diecu(die, &cudie, NULL, NULL) && has_scopes(&cudie, die);
		return;
	}
	if (!plain || !plain[0])
		return;
	c->system_name = names_keep(n, plain, strlen(plain));
	c->name = c->system_name;
	die_origin(die, &origin);
	if (!dwarf_diecu(&origin, &cudie, NULL, NULL) || !has_scopes(&cudie, die))
		return;
	c->bare = true;
	len = write_scopes(&origin, &cudie, scoped, sizeof(scoped));
	if (len > 0) {
		snprintf(scoped + len, sizeof(scoped) - len, "%s", plain);
		c->name = names_keep(n, scoped, strlen(scoped));
	}
}

bool dwarfnames_number(Dwarf_Die *die, unsigned attribute, bool integrate, uint64_t *ret)
{
	Dwarf_Attribute a;
	Dwarf_Word word;

	if (!(integrate ? dwarf_attr_integrate(die, attribute, &a)
			: dwarf_attr(die, attribute, &a)) ||
	    dwarf_formudata(&a, &word) != 0)
		return false;
	*ret = word;
	return true;
}

void dwarfnames_start(struct names_call *c, Dwarf_Die *die, const char *file)
{
	uint64_t line;

	if (!dwarfnames_number(die, DW_AT_decl_line, true, &line) || line > INT32_MAX)
		return;
	if (file[0] && str_ends(c->source, file))
		c->start_line = line;
}
