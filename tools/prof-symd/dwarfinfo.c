/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an address is found: the ranges of all units are read once (their first entries only;
 * .debug_aranges is often missing and never complete); in a unit, the ranges of its functions,
 * once; in a function, the entries of inlined calls are walked down. Sources: DWARF 5,
 * sections 2.17, 3.3.1, 3.3.8.
 *
 * Nothing here may call a function of libdw that follows a unit's entry into another file: units of
 * type skeleton are never looked into.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include "tools/prof-symd/dwarfinfo.h"
#include "tools/prof-symd/dwarfimage.h"
#include "tools/prof-symd/dwarfnames.h"

#define MAX_UNITS (1u << 20)
#define MAX_RANGES (4u << 20)
#define MAX_DEPTH 128	       /* of entries within entries */
#define MAX_ENTRIES (8u << 20) /* walked in one unit */
#define MAX_BACK 256	       /* overlapping ranges that are looked at */

struct range {
	uint64_t low, high;
	uint64_t what; /* unit: its index; function: the offset of its entry */
};

/* Sorted by low; reach[i] is the highest end among the first i + 1. */
struct ranges {
	struct range *data;
	uint64_t *reach;
	size_t len, cap, max; /* max: 0: MAX_RANGES */
};

struct unit {
	Dwarf_Off entry;
	struct ranges functions;
	uint32_t opening; /* the last one in which its lines were read */
	uint8_t indexed;  /* 0, 1: outermost functions, 2: functions within functions as well */
};

/* Ranges of units, and of the functions of those looked into, stay; images and what libdw made of
 * them go while nobody asks. */
struct dwarfinfo {
	const struct symfile *file, *alt_file;
	uint64_t max;
	struct dwarfimage main, alt;
	struct unit *units;
	size_t unit_count;
	struct ranges ranges;
	uint32_t opening; /* how often the images were opened */
	size_t indexed;	  /* bytes of functions' ranges */
	size_t grown;	  /* estimated: what libdw keeps of the units looked into */
};

/* --- ranges --- */

static int push_range(struct ranges *s, uint64_t low, uint64_t high, uint64_t what)
{
	if (low >= high)
		return 0;
	if (s->len == s->cap) {
		size_t cap = s->cap ? s->cap + s->cap / 2 : 8;
		struct range *data;

		if (s->len >= (s->max && s->max < MAX_RANGES ? s->max : MAX_RANGES))
			return SYMFILE_TOO_LARGE;
		data = realloc(s->data, cap * sizeof(*data));
		if (!data)
			return -ENOMEM;
		s->data = data;
		s->cap = cap;
	}
	s->data[s->len++] = (struct range){ .low = low, .high = high, .what = what };
	return 0;
}

static int range_cmp(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	return a->low != b->low	    ? (a->low < b->low ? -1 : 1)
	       : a->high != b->high ? (a->high > b->high ? -1 : 1)
				    : 0;
}

static int sort_ranges(struct ranges *s)
{
	uint64_t reach = 0;

	if (s->len == 0)
		return 0;
	qsort(s->data, s->len, sizeof(*s->data), range_cmp);
	free(s->reach);
	s->reach = malloc(s->len * sizeof(*s->reach));
	if (!s->reach)
		return -ENOMEM;
	for (size_t i = 0; i < s->len; i++) {
		reach = s->data[i].high > reach ? s->data[i].high : reach;
		s->reach[i] = reach;
	}
	return 0;
}

static void ranges_done(struct ranges *s)
{
	free(s->data);
	free(s->reach);
	*s = (struct ranges){ 0 };
}

/* The range over address that starts last; *cursor is where to go on for the next one outwards,
 * SIZE_MAX at first. */
static const struct range *next_range(const struct ranges *s, uint64_t address, size_t *cursor)
{
	size_t low = 0, high = s->len;

	if (*cursor == SIZE_MAX) {
		while (low < high) {
			size_t mid = low + (high - low) / 2;

			if (s->data[mid].low <= address)
				low = mid + 1;
			else
				high = mid;
		}
		*cursor = low;
	}
	for (unsigned back = 0; *cursor > 0 && back < MAX_BACK; back++) {
		const struct range *r = &s->data[--*cursor];

		if (s->reach[*cursor] <= address)
			break;
		if (r->high > address)
			return r;
	}
	*cursor = 0;
	return NULL;
}

/* Adds the ranges of an entry that has code. A few: a function in two sections has two. */
static int add_ranges(struct ranges *into, Dwarf_Die *die, uint64_t what)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	for (unsigned n = 0; n < MAX_RANGES; n++) {
		int r;

		at = dwarf_ranges(die, at, &base, &low, &high);
		if (at <= 0)
			return 0; /* none, no more, or not readable: then its other ranges are as
				     good as ever */
		r = push_range(into, low, high, what);
		if (r)
			return r;
	}
	return 0;
}

/* It has taken more than it may: what was read of it is not to be believed. */
static bool too_much(const struct dwarfinfo *d)
{
	return (d->main.lazy && d->main.lazy->starved) || (d->alt.lazy && d->alt.lazy->starved) ||
	       dwarfinfo_bytes(d) > d->max;
}

static int list_units(struct dwarfinfo *d)
{
	Dwarf_CU *cu = NULL;
	size_t cap = 0;

	for (;;) {
		Dwarf_Half version;
		uint8_t type;
		Dwarf_Die die;
		int r = dwarf_get_units(d->main.dwarf, cu, &cu, &version, &type, &die, NULL);

		if (r != 0)
			break; /* at the end, or at damage: what came before is used */
		if (type != DW_UT_compile && type != DW_UT_partial)
			continue;
		if (dwarf_tag(&die) != DW_TAG_compile_unit)
			continue;
		if (d->unit_count == cap) {
			size_t grown = cap ? cap * 2 : 64;
			struct unit *units;

			if (cap >= MAX_UNITS)
				return SYMFILE_TOO_LARGE;
			units = realloc(d->units, grown * sizeof(*units));
			if (!units)
				return -ENOMEM;
			d->units = units;
			cap = grown;
		}
		r = add_ranges(&d->ranges, &die, d->unit_count);
		if (r)
			return r;
		d->units[d->unit_count++] = (struct unit){ .entry = dwarf_dieoffset(&die),
							   .functions.max = d->ranges.max };
		d->grown += 512;
		if (too_much(d))
			return SYMFILE_TOO_LARGE;
	}
	return too_much(d) ? SYMFILE_TOO_LARGE : sort_ranges(&d->ranges);
}

static int list_units_guarded(struct dwarfinfo *d)
{
	jmp_buf here;
	int r = -ENOMEM;

	dwarfimage_no_memory = &here;
	errno = 0;
	if (setjmp(here) == 0)
		r = list_units(d);
	dwarfimage_no_memory = NULL;
	return errno == ENOMEM ? -ENOMEM : r;
}

static int open_images(struct dwarfinfo *d)
{
	int r = dwarfimage_open(d->file, d->max, &d->main);

	if (r) {
		dwarfimage_done(&d->main);
		return r;
	}
	/* Without it, names that stand there are missing. */
	if (d->alt_file && dwarfimage_bytes(&d->main) < d->max &&
	    dwarfimage_open(d->alt_file, d->max - dwarfimage_bytes(&d->main), &d->alt) == 0)
		dwarf_setalt(d->main.dwarf, d->alt.dwarf);
	else
		dwarfimage_done(&d->alt);
	d->opening++;
	return 0;
}

static void close_images(struct dwarfinfo *d)
{
	dwarfimage_done(&d->main);
	dwarfimage_done(&d->alt);
	d->grown = 0;
}

static bool rest_image(struct dwarfimage *m, bool packed)
{
	bool any = m->bytes && (m->dwarf || m->lazy || packed);

	if (m->lazy || packed)
		dwarfimage_done(m);
	else
		dwarfimage_end(m);
	return any;
}

uint64_t dwarfinfo_size(const struct symfile *f)
{
	return dwarfimage_size(f);
}

int dwarfinfo_open(const struct symfile *f, const struct symfile *alt, uint64_t max,
		   struct dwarfinfo **ret)
{
	struct dwarfinfo *d = calloc(1, sizeof(*d));
	int r;

	if (!d)
		return -ENOMEM;
	d->file = f;
	d->alt_file = alt;
	d->max = max;
	/* A half for units, and as much for the functions of one: both while they are sorted. */
	d->ranges.max = max / 4 / sizeof(struct range);
	r = open_images(d);
	if (r == 0)
		r = list_units_guarded(d);
	if (r) {
		dwarfinfo_free(d);
		return r;
	}
	*ret = d;
	return 0;
}

void dwarfinfo_free(struct dwarfinfo *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->unit_count; i++)
		ranges_done(&d->units[i].functions);
	free(d->units);
	ranges_done(&d->ranges);
	close_images(d);
	free(d);
}

bool dwarfinfo_rest(struct dwarfinfo *d, bool packed)
{
	/* The one that refers to the other goes first. */
	bool main = rest_image(&d->main, packed), alt = rest_image(&d->alt, packed);

	d->grown = 0;
	return main || alt;
}

size_t dwarfinfo_bytes(const struct dwarfinfo *d)
{
	return sizeof(*d) + dwarfimage_bytes(&d->main) + dwarfimage_bytes(&d->alt) + d->grown +
	       d->indexed + d->unit_count * sizeof(*d->units) +
	       d->ranges.len * (sizeof(struct range) + sizeof(uint64_t));
}

/* --- functions of a unit --- */

static bool has_code(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

/* In a first pass functions are looked for in the unit and in namespaces, where compilers put them;
 * in a second, everywhere. */
static bool may_hold_functions(int tag, bool everywhere)
{
	switch (tag) {
	case DW_TAG_namespace:
	case DW_TAG_module:
		return true;
	case DW_TAG_subprogram:
	case DW_TAG_lexical_block:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_interface_type:
		return everywhere;
	}
	return false;
}

static int index_unit(struct dwarfinfo *d, struct unit *u, Dwarf_Die *cudie, bool everywhere)
{
	Dwarf_Die path[MAX_DEPTH];
	unsigned depth = 0;
	size_t seen = 0;
	int r = 0;

	d->indexed -= u->functions.len * (sizeof(struct range) + sizeof(uint64_t));
	ranges_done(&u->functions);
	u->indexed = everywhere ? 2 : 1;
	if (dwarf_child(cudie, &path[0]) != 0)
		return 0;
	for (;;) {
		Dwarf_Die *die = &path[depth];
		int tag = dwarf_tag(die);

		if (++seen > MAX_ENTRIES)
			break;
		if (tag == DW_TAG_subprogram && has_code(die)) {
			r = add_ranges(&u->functions, die, dwarf_dieoffset(die));
			if (r)
				break;
		}
		if (depth + 1 < MAX_DEPTH && may_hold_functions(tag, everywhere) &&
		    dwarf_child(die, &path[depth + 1]) == 0) {
			depth++;
			continue;
		}
		while (dwarf_siblingof(&path[depth], &path[depth]) != 0) {
			if (depth == 0)
				goto out;
			depth--;
		}
	}
out:
	d->indexed += u->functions.len * (sizeof(struct range) + sizeof(uint64_t));
	d->grown += 4096;
	return r ? r : sort_ranges(&u->functions);
}

/* --- looking up --- */

/* Walks down from a function to the innermost inlined call over address. Fills chain outermost
 * first; returns how many. */
static unsigned walk_inlined(Dwarf_Die *function, uint64_t address,
			     Dwarf_Die chain[static NAMES_MAX])
{
	unsigned count = 0;
	size_t steps = 0;
	Dwarf_Die at = *function;

	chain[count++] = at;
	for (unsigned depth = 0; depth < 4 * MAX_DEPTH; depth++) {
		Dwarf_Die child;
		bool found = false;

		if (dwarf_child(&at, &child) != 0)
			break;
		do {
			int tag = dwarf_tag(&child);

			if (++steps > MAX_ENTRIES)
				return count;
			if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block &&
			    tag != DW_TAG_try_block && tag != DW_TAG_catch_block &&
			    tag != DW_TAG_with_stmt)
				continue;
			if (has_code(&child) && dwarf_haspc(&child, address) == 1) {
				found = true;
				break;
			}
		} while (dwarf_siblingof(&child, &child) == 0);
		if (!found)
			break;
		at = child;
		if (dwarf_tag(&at) == DW_TAG_inlined_subroutine) {
			/* Over the limit the innermost is replaced: what is near the root stays. */
			if (count == NAMES_MAX)
				count--;
			chain[count++] = at;
		}
	}
	return count;
}

static bool find_function(struct dwarfinfo *d, struct unit *u, Dwarf_Die *cudie, uint64_t address,
			  Dwarf_Die *ret)
{
	for (int pass = 1; pass <= 2; pass++) {
		const struct range *r;
		size_t cursor = SIZE_MAX;

		if (u->indexed < pass && index_unit(d, u, cudie, pass == 2) != 0)
			return false;
		r = next_range(&u->functions, address, &cursor);
		if (r)
			return dwarf_offdie(d->main.dwarf, r->what, ret) != NULL;
	}
	return false;
}

static bool find_line(struct dwarfinfo *d, struct unit *u, Dwarf_Die *cudie, uint64_t address,
		      const char **ret_path, uint64_t *ret_line)
{
	Dwarf_Line *line = dwarf_getsrc_die(cudie, address);
	bool end = true;
	int number;

	if (!line || dwarf_lineendsequence(line, &end) != 0 || end ||
	    dwarf_lineno(line, &number) != 0)
		return false;
	*ret_path = dwarf_linesrc(line, NULL, NULL);
	*ret_line = number > 0 ? (uint64_t)number : 0;
	return *ret_path != NULL;
}

static int lookup_in_unit(struct dwarfinfo *d, struct unit *u, uint64_t address, struct names *ret)
{
	Dwarf_Die cudie, function, chain[NAMES_MAX];
	Dwarf_Files *files = NULL;
	size_t file_count = 0;
	const char *path = NULL;
	uint64_t line = 0;
	unsigned count = 0;
	bool first = u->opening != d->opening;

	u->opening = d->opening;
	if (!dwarf_offdie(d->main.dwarf, u->entry, &cudie))
		return SYMFILE_NONE;
	/* An assembler makes a function of each label; the symbol table knows which names count. */
	if (dwarfnames_language(&cudie) != DW_LANG_Mips_Assembler &&
	    find_function(d, u, &cudie, address, &function))
		count = walk_inlined(&function, address, chain);
	find_line(d, u, &cudie, address, &path, &line);
	if (first) {
		Dwarf_Lines *lines;
		size_t lines_count;

		if (dwarf_getsrclines(&cudie, &lines, &lines_count) == 0)
			d->grown += lines_count * 48;
	}
	if (count == 0) {
		if (!path)
			return SYMFILE_NONE;
		ret->calls[0] = (struct call){ .line = line };
		dwarfnames_source(ret, &ret->calls[0], path, &cudie);
		ret->count = 1;
		return 0;
	}
	if (count > 1 && dwarf_getsrcfiles(&cudie, &files, &file_count) != 0)
		files = NULL;
	for (unsigned i = count; i-- > 0;) {
		Dwarf_Die *die = &chain[i];
		struct call *c = &ret->calls[ret->count];
		bool innermost = ret->count == 0;
		uint64_t file;

		*c = (struct call){ .line = line };
		dwarfnames_call(ret, c, die);
		dwarfnames_source(ret, c,
				  path	      ? path
				  : innermost ? dwarf_decl_file(die)
					      : NULL,
				  &cudie);
		dwarfnames_start(c, die);
		/* An inlined call whose name cannot be had (it stands in a file that is not here)
		 * is left out. */
		if (c->name.len > 0 || i == 0)
			ret->count++;
		path = NULL;
		line = 0;
		if (dwarf_tag(die) == DW_TAG_inlined_subroutine) {
			if (dwarfnames_number(die, DW_AT_call_file, false, &file) && files &&
			    file < file_count)
				path = dwarf_filesrc(files, file, NULL, NULL);
			if (!dwarfnames_number(die, DW_AT_call_line, false, &line) ||
			    line > INT32_MAX)
				line = 0;
		}
	}
	return 0;
}

static int lookup(struct dwarfinfo *d, uint64_t address, struct names *ret)
{
	const struct range *r;
	size_t cursor = SIZE_MAX;

	names_reset(ret);
	if (d->ranges.len && !d->main.dwarf) {
		int r_open = open_images(d);

		if (r_open)
			return r_open == -ENOMEM || r_open == SYMFILE_TOO_LARGE ? r_open
										: SYMFILE_NONE;
	}
	while ((r = next_range(&d->ranges, address, &cursor)) != NULL) {
		const int found = lookup_in_unit(d, &d->units[r->what], address, ret);

		if (too_much(d))
			return SYMFILE_TOO_LARGE;
		if (found == 0 && ret->count > 0)
			return 0;
	}
	names_reset(ret);
	return SYMFILE_NONE;
}

static int lookup_guarded(struct dwarfinfo *d, uint64_t address, struct names *ret)
{
	jmp_buf here;
	int r = -ENOMEM;

	dwarfimage_no_memory = &here;
	errno = 0;
	if (setjmp(here) == 0)
		r = lookup(d, address, ret);
	dwarfimage_no_memory = NULL;
	/* libdw makes of it that there is no line, or no function. */
	return errno == ENOMEM ? -ENOMEM : r;
}

/* Gives up what was gathered over many lookups, and can be had again. */
static void begin_anew(struct dwarfinfo *d)
{
	dwarfinfo_rest(d, true);
	for (size_t i = 0; i < d->unit_count; i++) {
		const size_t max = d->units[i].functions.max;

		ranges_done(&d->units[i].functions);
		d->units[i].functions.max = max;
		d->units[i].indexed = 0;
	}
	d->indexed = 0;
}

int dwarfinfo_lookup(struct dwarfinfo *d, uint64_t address, struct names *ret)
{
	int r = lookup_guarded(d, address, ret);

	if (r == SYMFILE_TOO_LARGE || r == -ENOMEM) {
		begin_anew(d);
		r = lookup_guarded(d, address, ret);
	}
	return r;
}
