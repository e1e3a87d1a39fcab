/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a lookup finds an address:
 *
 *  - The ranges of all units are read once, from their first entries. (.debug_aranges is often
 *    missing and never complete.)
 *  - In a unit, the ranges of its functions are read once.
 *  - In a function, the lookup walks down the entries of inlined calls.
 *
 * Nothing here may call a function of libdw that follows a unit into another file. A skeleton unit
 * is looked up in an image of its own (dwarfsplit.h).
 *
 * Nothing here may call libdw's functions of lines and files: these make a list of all rows of a
 * unit. dwarflines.h reads them.
 *
 * Sources: DWARF 5, sections 2.17, 3.3.1, 3.3.8.
 */
#include "common/names/dwarf/dwarfinfo.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "common/names/dwarf/dwarffiles.h"
#include "common/names/dwarf/dwarfimage.h"
#include "common/names/dwarf/dwarflines.h"
#include "common/names/dwarf/dwarfnames.h"
#include "common/names/dwarf/dwarfranges.h"
#include "common/names/dwarf/dwarfsplit.h"

#define MAX_UNITS (1u << 20)
#define MAX_DEPTH 128	       /* of nested entries */
#define MAX_ENTRIES (8u << 20) /* walked in one unit */
#define MAX_SPLITS 256	       /* open .dwo files and units of packages, of all programs */

struct unit {
	Dwarf_Off entry;
	struct dwarfranges functions;
	struct dwarflines *lines; /* owned; NULL: not read yet, or none */
	uint8_t indexed;	  /* 1: outermost functions, 2: also functions within functions */
	bool skeleton;		  /* its DWARF is in another file */
	uint8_t place; /* enum dwarfinfo_want: the place where the split DWARF was found, or is
		        * looked for next */
};

/* A unit whose DWARF is in another file. */
struct split {
	struct dwarfsplit dwarf;
	struct dwarfinfo *of; /* NULL: free */
	size_t unit;
	uint64_t used;
	bool open;
};

/* The splits of all programs together, since each may hold a descriptor. A new one replaces the
 * least recently used one. */
static struct split splits[MAX_SPLITS];
static uint64_t split_uses;

/* The ranges of units and functions are kept. Images and libdw's data are freed while they are not
 * in use (dwarfinfo_rest). */
struct dwarfinfo {
	const struct symfile *file, *alt_file;
	uint64_t max;
	struct dwarfimage main, alt;
	struct unit *units;
	size_t unit_count;
	struct dwarfranges ranges;
	size_t split_count;	  /* how many of `splits` belong to this program */
	struct symfile *package;  /* of the last lookup */
	enum dwarfinfo_want want; /* owned; what the last lookup wants */
	size_t wanting;		  /* the unit that wants it */
	bool package_tried;
	size_t indexed; /* bytes of functions' ranges and of marks in line tables */
	size_t grown;	/* an estimate of libdw's memory for the units that were used */
};

/* --- ranges of an entry --- */

static int add_split_ranges(struct dwarfranges *into, Dwarf_Die *die,
			    const struct dwarfsplit *split)
{
	struct dwarfsplit_ranges list;
	uint64_t low, high;
	int r = 0;

	dwarfsplit_ranges(split, die, &list);
	for (unsigned n = 0; !r && n < DWARFRANGES_MAX && dwarfsplit_next(&list, &low, &high); n++)
		r = dwarfranges_push(into, low, high, dwarf_dieoffset(die));
	return r;
}

/* Adds the ranges of an entry. A function in two sections has two. */
static int add_ranges(struct dwarfranges *into, Dwarf_Die *die, uint64_t what)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	for (unsigned n = 0; n < DWARFRANGES_MAX; n++) {
		int r;

		at = dwarf_ranges(die, at, &base, &low, &high);
		if (at <= 0)
			return 0; /* the end, or damaged data: earlier ranges stay valid */
		r = dwarfranges_push(into, low, high, what);
		if (r)
			return r;
	}
	return 0;
}

/* Returns the next split of d after s, or the first if s is NULL. */
static struct split *next_split(const struct dwarfinfo *d, const struct split *s)
{
	for (size_t i = s ? (size_t)(s - splits) + 1 : 0; d->split_count && i < MAX_SPLITS; i++)
		if (splits[i].of == d)
			return &splits[i];
	return NULL;
}

static bool starved(const struct dwarfimage *m)
{
	return m->lazy && m->lazy->starved;
}

/* Whether d takes more memory than it may. Then lazy memory may have read as zeros, so the result
 * is invalid. */
static bool too_much(const struct dwarfinfo *d)
{
	for (struct split *s = next_split(d, NULL); s; s = next_split(d, s))
		if (starved(&s->dwarf.image))
			return true;
	return starved(&d->main) || starved(&d->alt) || dwarfinfo_bytes(d) > d->max;
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
			break; /* the end, or damaged data: use the units before it */
		const bool skeleton = type == DW_UT_skeleton;

		if (type != DW_UT_compile && type != DW_UT_partial && !skeleton)
			continue;
		if (dwarf_tag(&die) != DW_TAG_compile_unit &&
		    (!skeleton || dwarf_tag(&die) != DW_TAG_skeleton_unit))
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
		d->units[d->unit_count++] = (struct unit){
			.entry = dwarf_dieoffset(&die),
			.functions.max = d->ranges.max,
			.skeleton = skeleton,
			.place = skeleton ? DWARFINFO_WANTS_PACKAGE : DWARFINFO_WANTS_NOTHING,
		};
		d->grown += 512;
		if (too_much(d))
			return SYMFILE_TOO_LARGE;
	}
	return too_much(d) ? SYMFILE_TOO_LARGE : dwarfranges_sort(&d->ranges);
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
	/* If this fails, only the names in that file are missing. */
	if (d->alt_file && dwarfimage_bytes(&d->main) < d->max &&
	    dwarfimage_open(d->alt_file, d->max - dwarfimage_bytes(&d->main), &d->alt) == 0)
		dwarf_setalt(d->main.dwarf, d->alt.dwarf);
	else
		dwarfimage_done(&d->alt);
	return 0;
}

static void split_close(struct split *s)
{
	dwarfsplit_close(&s->dwarf);
	s->open = false;
}

static void split_free(struct split *s)
{
	if (!s->of)
		return;
	s->of->split_count--;
	split_close(s);
	symfile_free(s->dwarf.file);
	*s = (struct split){ 0 };
}

static void close_images(struct dwarfinfo *d)
{
	dwarfimage_done(&d->main);
	dwarfimage_done(&d->alt);
	for (struct split *s = next_split(d, NULL); s; s = next_split(d, s))
		split_close(s);
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
	/* Half of the memory for ranges of units, half for functions of one unit; sorting doubles
	 * both. */
	d->ranges.max = max / 4 / sizeof(struct dwarfrange);
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

static void free_lines(struct unit *u)
{
	if (u->lines)
		dwarflines_done(u->lines);
	free(u->lines);
	u->lines = NULL;
}

void dwarfinfo_free(struct dwarfinfo *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->unit_count; i++) {
		dwarfranges_done(&d->units[i].functions);
		free_lines(&d->units[i]);
	}
	free(d->units);
	dwarfranges_done(&d->ranges);
	close_images(d);
	for (struct split *s = next_split(d, NULL); s; s = next_split(d, s))
		split_free(s);
	symfile_free(d->package);
	free(d);
}

bool dwarfinfo_rest(struct dwarfinfo *d, bool packed)
{
	/* Free the main image first: it refers to the other one. */
	bool any = rest_image(&d->main, packed);

	any |= rest_image(&d->alt, packed);
	for (struct split *s = next_split(d, NULL); s; s = next_split(d, s)) {
		any |= rest_image(&s->dwarf.image, packed);
		s->open = false;
	}
	d->grown = 0;
	return any;
}

size_t dwarfinfo_bytes(const struct dwarfinfo *d)
{
	size_t split = d->package ? symfile_bytes(d->package) : 0;

	for (struct split *s = next_split(d, NULL); s; s = next_split(d, s))
		split += sizeof(*s) + dwarfimage_bytes(&s->dwarf.image) +
			 (s->dwarf.file ? symfile_bytes(s->dwarf.file) : 0);
	return sizeof(*d) + dwarfimage_bytes(&d->main) + dwarfimage_bytes(&d->alt) + split +
	       d->grown + d->indexed + d->unit_count * sizeof(*d->units) +
	       d->ranges.len * (sizeof(struct dwarfrange) + sizeof(uint64_t));
}

/* --- units in other files --- */

static struct split *split_of(const struct dwarfinfo *d, size_t unit)
{
	for (struct split *s = next_split(d, NULL); s; s = next_split(d, s))
		if (s->unit == unit)
			return s;
	return NULL;
}

/* Adds a split, in place of the least recently used one. s owns f from then on; NULL: the unit is
 * in the package. */
static struct split *split_add(struct dwarfinfo *d, size_t unit, struct symfile *f)
{
	struct split *s = &splits[0];

	for (size_t i = 1; i < MAX_SPLITS && s->of; i++)
		if (!splits[i].of || splits[i].used < s->used)
			s = &splits[i];
	split_free(s);
	*s = (struct split){ .dwarf.file = f, .of = d, .unit = unit, .used = ++split_uses };
	d->split_count++;
	return s;
}

static int split_open(struct dwarfinfo *d, struct split *s, const struct dwarfsplit_unit *skeleton)
{
	const size_t bytes = dwarfinfo_bytes(d);
	int r = SYMFILE_TOO_LARGE;

	s->dwarf.skeleton = *skeleton;
	if (bytes < d->max)
		r = dwarfsplit_open(d->file, d->package, d->max - bytes, &s->dwarf);
	s->open = r == 0;
	return r;
}

static void next_place(struct unit *u)
{
	u->place = u->place == DWARFINFO_WANTS_PACKAGE ? DWARFINFO_WANTS_PATH
		   : u->place == DWARFINFO_WANTS_PATH  ? DWARFINFO_WANTS_BESIDE
						       : DWARFINFO_WANTS_NOTHING;
}

/* Sets *ret to the file that a unit wants next. Returns false if the unit does not name one. */
static bool say_want(struct dwarfinfo *d, const struct unit *u, uint64_t id, Dwarf_Die *cudie,
		     struct names *ret)
{
	struct names_call *c = &ret->calls[0];
	char path[NAMES_TEXT], digits[17];
	const char *name = path, *slash;

	if (!dwarfsplit_path(cudie, path, sizeof(path)))
		return false;
	slash = strrchr(path, '/');
	if (u->place == DWARFINFO_WANTS_BESIDE && slash)
		name = slash + 1;
	if (!name[0])
		return false;
	d->want = (enum dwarfinfo_want)u->place;
	d->wanting = (size_t)(u - d->units);
	snprintf(digits, sizeof(digits), "%016" PRIx64, id);
	names_reset(ret);
	*c = (struct names_call){ .line = d->want };
	c->name = names_keep(ret, digits, strlen(digits));
	c->source = names_keep(ret, name, strlen(name));
	ret->count = 1;
	return true;
}

/* Finds the split DWARF of a unit. *ret is NULL if it is not available. Returns 0, VERDICT_AGAIN,
 * SYMFILE_TOO_LARGE or -ENOMEM. */
static int find_split(struct dwarfinfo *d, struct unit *u, Dwarf_Die *cudie,
		      struct dwarfsplit **ret, struct names *names)
{
	const size_t unit = (size_t)(u - d->units);
	struct dwarfsplit_unit skeleton;

	*ret = NULL;
	if (!u->skeleton || !dwarfsplit_skeleton(cudie, &skeleton))
		return 0;
	while (u->place != DWARFINFO_WANTS_NOTHING) {
		const bool packed = u->place == DWARFINFO_WANTS_PACKAGE && d->package_tried;
		struct split *s = split_of(d, unit);

		if (!s && packed && d->package)
			s = split_add(d, unit, NULL);
		if (!s && !packed) {
			if (say_want(d, u, skeleton.id, cudie, names))
				return VERDICT_AGAIN;
			u->place = DWARFINFO_WANTS_NOTHING;
			break;
		}
		const int r = !s ? SYMFILE_NONE : s->open ? 0 : split_open(d, s, &skeleton);

		if (r == SYMFILE_TOO_LARGE || r == -ENOMEM)
			return r;
		if (r == 0) {
			s->used = ++split_uses;
			*ret = &s->dwarf;
			return 0;
		}
		if (s)
			split_free(s);
		next_place(u);
	}
	return 0;
}

void dwarfinfo_offer(struct dwarfinfo *d, struct symfile *f)
{
	const enum dwarfinfo_want wanted = d->want;

	d->want = DWARFINFO_WANTS_NOTHING;
	if (wanted == DWARFINFO_WANTS_PACKAGE && !d->package_tried) {
		d->package = f;
		d->package_tried = true;
	} else if (wanted == DWARFINFO_WANTS_NOTHING || wanted == DWARFINFO_WANTS_PACKAGE) {
		symfile_free(f);
	} else if (f) {
		split_add(d, d->wanting, f);
	} else {
		next_place(&d->units[d->wanting]);
	}
}

/* --- functions of a unit --- */

static bool has_code(Dwarf_Die *die)
{
	return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

/* Whether entries of this kind may contain functions. A first pass looks only in the unit and in
 * namespaces, where compilers usually put them; a second pass looks everywhere. */
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

static int index_unit(struct dwarfinfo *d, struct unit *u, Dwarf_Die *cudie,
		      const struct dwarfsplit *split, bool everywhere)
{
	Dwarf_Die path[MAX_DEPTH];
	unsigned depth = 0;
	size_t seen = 0;
	int r = 0;

	d->indexed -= u->functions.len * (sizeof(struct dwarfrange) + sizeof(uint64_t));
	dwarfranges_done(&u->functions);
	u->indexed = everywhere ? 2 : 1;
	if (dwarf_child(cudie, &path[0]) != 0)
		return 0;
	for (;;) {
		Dwarf_Die *die = &path[depth];
		int tag = dwarf_tag(die);

		if (++seen > MAX_ENTRIES)
			break;
		if (tag == DW_TAG_subprogram && has_code(die)) {
			r = split ? add_split_ranges(&u->functions, die, split)
				  : add_ranges(&u->functions, die, dwarf_dieoffset(die));
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
	d->indexed += u->functions.len * (sizeof(struct dwarfrange) + sizeof(uint64_t));
	d->grown += 4096;
	return r ? r : dwarfranges_sort(&u->functions);
}

/* --- looking up --- */

static bool covers(Dwarf_Die *die, const struct dwarfsplit *split, uint64_t address)
{
	struct dwarfsplit_ranges list;
	uint64_t low, high;

	if (!split)
		return dwarf_haspc(die, address) == 1;
	dwarfsplit_ranges(split, die, &list);
	for (unsigned n = 0; n < DWARFRANGES_MAX && dwarfsplit_next(&list, &low, &high); n++)
		if (low <= address && address < high)
			return true;
	return false;
}

/* Walks down from a function to the innermost inlined call at address. Fills chain, outermost
 * first, and returns its length. */
static unsigned walk_inlined(Dwarf_Die *function, const struct dwarfsplit *split, uint64_t address,
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
			if (has_code(&child) && covers(&child, split, address)) {
				found = true;
				break;
			}
		} while (dwarf_siblingof(&child, &child) == 0);
		if (!found)
			break;
		at = child;
		if (dwarf_tag(&at) == DW_TAG_inlined_subroutine) {
			/* At the limit, replace the innermost call and keep the outer ones. */
			if (count == NAMES_MAX)
				count--;
			chain[count++] = at;
		}
	}
	return count;
}

static bool find_function(struct dwarfinfo *d, struct unit *u, Dwarf_Die *cudie,
			  const struct dwarfsplit *split, uint64_t address, Dwarf_Die *ret)
{
	for (int pass = 1; pass <= 2; pass++) {
		const struct dwarfrange *r;
		size_t cursor = SIZE_MAX;

		if (u->indexed < pass && index_unit(d, u, cudie, split, pass == 2) != 0)
			return false;
		r = dwarfranges_next(&u->functions, address, &cursor);
		if (r)
			return dwarf_offdie(split ? split->image.dwarf : d->main.dwarf, r->what,
					    ret) != NULL;
	}
	return false;
}

/* --- lines --- */

/* Finds the file and line of an address. *ret_file is UINT64_MAX if there is none. */
static int find_line(struct dwarfinfo *d, struct unit *u, const struct dwarffiles *f,
		     uint64_t address, uint64_t *ret_file, uint64_t *ret_line)
{
	*ret_file = UINT64_MAX;
	*ret_line = 0;
	if (!f->cudie)
		return 0;
	if (!u->lines) {
		const size_t bytes = dwarfinfo_bytes(d);

		u->lines = malloc(sizeof(*u->lines));
		if (!u->lines)
			return -ENOMEM;
		*u->lines = f->table;
		const int r = dwarflines_index(&f->sections, u->lines,
					       bytes < d->max ? d->max - bytes : 0);

		if (r) {
			free_lines(u);
			return r;
		}
		d->indexed += sizeof(*u->lines) + dwarflines_bytes(u->lines);
	}
	(void)dwarflines_find(&f->sections, u->lines, address, ret_file, ret_line);
	return 0;
}

static void set_source(struct names *n, struct names_call *c, const char *path)
{
	if (path[0])
		c->source = names_keep(n, path, strlen(path));
}

static int lookup_in_unit(struct dwarfinfo *d, struct unit *u, uint64_t address, struct names *ret)
{
	Dwarf_Die cudie, function, chain[NAMES_MAX], *own = &cudie;
	struct dwarfsplit *split;
	struct dwarffiles files, own_files;
	char path[DWARFFILES_PATH] = "", declared[DWARFFILES_PATH];
	uint64_t line, file;
	unsigned count = 0;

	if (!dwarf_offdie(d->main.dwarf, u->entry, &cudie))
		return SYMFILE_NONE;
	int r = find_split(d, u, &cudie, &split, ret);

	if (r)
		return r;
	if (split)
		own = &split->cudie;
	/* In assembly, each label becomes a function. The symbol table has the real functions. */
	if ((split || !u->skeleton) && dwarfnames_language(own) != DW_LANG_Mips_Assembler &&
	    find_function(d, u, own, split, address, &function))
		count = walk_inlined(&function, split, address, chain);
	dwarffiles_open(&d->main, &cudie, &files);
	r = find_line(d, u, &files, address, &file, &line);
	if (r)
		return r;
	dwarffiles_path(&files, file, path);
	if (!path[0])
		line = 0;
	if (count == 0) {
		if (!path[0])
			return SYMFILE_NONE;
		ret->calls[0] = (struct names_call){ .line = line };
		set_source(ret, &ret->calls[0], path);
		ret->count = 1;
		return 0;
	}
	/* A split unit may have its own file table; otherwise its skeleton's is used. */
	own_files = files;
	if (split && split->image.pieces[DWARFIMAGE_LINE].size)
		dwarffiles_open_split(split, &cudie, &own_files);
	for (unsigned i = count; i-- > 0;) {
		Dwarf_Die *die = &chain[i];
		struct names_call *c = &ret->calls[ret->count];

		dwarffiles_declaration(die, &d->main, &d->alt, split ? &own_files : NULL, declared);
		if (!path[0] && ret->count == 0)
			memcpy(path, declared, sizeof(path));
		*c = (struct names_call){ .line = line };
		dwarfnames_call(ret, c, die);
		set_source(ret, c, path);
		dwarfnames_start(c, die, declared);
		/* Drop an inlined call without a name: its name may be in a missing file. */
		if (c->name.len > 0 || i == 0)
			ret->count++;
		path[0] = 0;
		line = 0;
		if (dwarf_tag(die) == DW_TAG_inlined_subroutine) {
			if (dwarfnames_number(die, DW_AT_call_file, false, &file))
				dwarffiles_path(&own_files, file, path);
			if (!dwarfnames_number(die, DW_AT_call_line, false, &line) ||
			    line > INT32_MAX)
				line = 0;
		}
	}
	return 0;
}

static int lookup(struct dwarfinfo *d, uint64_t address, struct names *ret)
{
	const struct dwarfrange *r;
	size_t cursor = SIZE_MAX;

	names_reset(ret);
	if (d->ranges.len && !d->main.dwarf) {
		int r_open = open_images(d);

		if (r_open)
			return r_open == -ENOMEM || r_open == SYMFILE_TOO_LARGE ? r_open
										: SYMFILE_NONE;
	}
	for (r = dwarfranges_next(&d->ranges, address, &cursor); r;
	     r = dwarfranges_next(&d->ranges, address, &cursor)) {
		const int found = lookup_in_unit(d, &d->units[r->what], address, ret);

		if (too_much(d))
			return SYMFILE_TOO_LARGE;
		if (found != SYMFILE_NONE && (found || ret->count > 0))
			return found;
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
	/* After a failed allocation, libdw reports a missing line or function instead of an
	 * error. */
	return errno == ENOMEM ? -ENOMEM : r;
}

/* Frees data that accumulated over many lookups; a new lookup reads it again. */
static void begin_anew(struct dwarfinfo *d)
{
	dwarfinfo_rest(d, true);
	for (size_t i = 0; i < d->unit_count; i++) {
		const size_t max = d->units[i].functions.max;

		dwarfranges_done(&d->units[i].functions);
		free_lines(&d->units[i]);
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
