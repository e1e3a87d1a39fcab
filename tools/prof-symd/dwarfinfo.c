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
#include <elf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <setjmp.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include "tools/prof-symd/dwarfinfo.h"
#include "tools/prof-symd/lazy.h"

#define MAX_UNITS (1u << 20)
#define MAX_RANGES (4u << 20)
#define MAX_DEPTH 128	       /* of entries within entries */
#define MAX_ENTRIES (8u << 20) /* walked in one unit */
#define LAZY_PART 4  /* one byte in so many may be looked at, where what is not is not read */
#define MAX_BACK 256 /* overlapping ranges that are looked at */
#define MAX_SCOPES 16
#define MAX_ORIGINS 16

static const char *const wanted[] = {
	"debug_info",	     "debug_abbrev", "debug_line",   "debug_line_str", "debug_str",
	"debug_str_offsets", "debug_addr",   "debug_ranges", "debug_rnglists",
};
#define WANTED (sizeof(wanted) / sizeof(wanted[0]))

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

struct piece {
	const struct symfile_section *section;
	uint64_t size;	/* unpacked */
	uint64_t skip;	/* bytes before the packed data */
	uint64_t start; /* where in the image */
	bool packed;
};

struct image {
	const struct symfile *file;
	struct piece pieces[WANTED];
	struct lazy *lazy; /* where nothing is packed; then bytes are its */
	uint8_t *bytes;
	size_t size;
	Elf *elf;
	Dwarf *dwarf;
};

/* Ranges of units, and of the functions of those looked into, stay; images and what libdw made of
 * them go while nobody asks. */
struct dwarfinfo {
	const struct symfile *file, *alt_file;
	uint64_t max;
	struct image main, alt;
	struct unit *units;
	size_t unit_count;
	struct ranges ranges;
	uint32_t opening; /* how often the images were opened */
	size_t indexed;	  /* bytes of functions' ranges */
	size_t grown;	  /* estimated: what libdw keeps of the units looked into */
};

/* --- the image --- */

/* How a section is stored; false where there is none, or a way that is not known. */
static bool find_piece(const struct symfile *f, const char *name, struct piece *ret)
{
	char full[32];
	struct piece p = { 0 };

	snprintf(full, sizeof(full), ".%s", name);
	if (symfile_section(f, full, &p.section) == 0) {
		if (p.section->type == SHT_NOBITS)
			return false;
		p.size = p.section->size;
		if (p.section->flags & SHF_COMPRESSED) {
			Elf64_Chdr c;

			if (p.section->size < sizeof(c) ||
			    symfile_read(f, p.section->offset, &c, sizeof(c)) ||
			    c.ch_type != ELFCOMPRESS_ZLIB)
				return false;
			p.size = c.ch_size;
			p.skip = sizeof(c);
			p.packed = true;
		}
		*ret = p;
		return true;
	}
	snprintf(full, sizeof(full), ".z%s", name);
	if (symfile_section(f, full, &p.section) == 0 && p.section->type != SHT_NOBITS &&
	    p.section->size >= 12) {
		uint8_t head[12];

		if (symfile_read(f, p.section->offset, head, sizeof(head)) ||
		    memcmp(head, "ZLIB", 4) != 0)
			return false;
		for (int i = 4; i < 12; i++)
			p.size = p.size << 8 | head[i];
		p.skip = sizeof(head);
		p.packed = true;
		*ret = p;
		return true;
	}
	return false;
}

/* Space of the image before the first section's bytes. */
#define IMAGE_NAMES 256
#define IMAGE_HEAD (sizeof(Elf64_Ehdr) + (WANTED + 2) * sizeof(Elf64_Shdr) + IMAGE_NAMES)

#define IMAGE_TAIL 16

static int find_pieces(const struct symfile *f, struct piece pieces[static WANTED],
		       uint64_t *ret_size)
{
	uint64_t size = IMAGE_HEAD;

	memset(pieces, 0, WANTED * sizeof(*pieces));
	for (size_t i = 0; i < WANTED; i++) {
		if (!find_piece(f, wanted[i], &pieces[i])) {
			pieces[i].section = NULL;
			if (i == 0)
				return SYMFILE_NONE;
			continue;
		}
		if (__builtin_add_overflow(size, pieces[i].size, &size) ||
		    __builtin_add_overflow(size, 16, &size))
			return SYMFILE_TOO_LARGE; /* 16: to align it */
		/* zlib packs a thousand bytes into one at the most. */
		if (pieces[i].packed ? pieces[i].size / 1040 > pieces[i].section->size
				     : pieces[i].size > symfile_size(f))
			return SYMFILE_MALFORMED;
	}
	/* libdw takes a string's end for granted in .debug_info: a zero byte ends what runs out of
	 * the last section. */
	if (__builtin_add_overflow(size, IMAGE_TAIL, ret_size))
		return SYMFILE_TOO_LARGE;
	return 0;
}

uint64_t dwarfinfo_size(const struct symfile *f)
{
	struct piece pieces[WANTED];
	uint64_t size;
	int r = find_pieces(f, pieces, &size);

	return r == 0 ? size : r == SYMFILE_TOO_LARGE ? UINT64_MAX : 0;
}

static int unpack(const struct symfile *f, const struct piece *p, uint8_t *into)
{
	uint8_t chunk[16384];
	uint64_t left = p->section->size - p->skip, at = p->section->offset + p->skip;
	z_stream z = { .next_out = into };
	int r = 0, zr = Z_OK;

	if (p->size > UINT32_MAX)
		return SYMFILE_TOO_LARGE;
	z.avail_out = (uInt)p->size;
	if (inflateInit(&z) != Z_OK)
		return -ENOMEM;
	while (r == 0 && zr == Z_OK && left > 0) {
		size_t n = left < sizeof(chunk) ? (size_t)left : sizeof(chunk);

		r = symfile_read(f, at, chunk, n);
		z.next_in = chunk;
		z.avail_in = (uInt)n;
		at += n;
		left -= n;
		if (r == 0)
			zr = inflate(&z, Z_NO_FLUSH);
	}
	if (r == 0 && z.avail_out != 0)
		r = SYMFILE_MALFORMED;
	inflateEnd(&z);
	return r;
}

/* What libdw made of it. */
static void image_end(struct image *m)
{
	if (m->dwarf)
		dwarf_end(m->dwarf);
	if (m->elf)
		elf_end(m->elf);
	m->dwarf = NULL;
	m->elf = NULL;
}

static void image_done(struct image *m)
{
	image_end(m);
	if (m->lazy)
		lazy_free(m->lazy);
	else
		free(m->bytes);
	*m = (struct image){ 0 };
}

/* What of the sections lies at [at, at + n) of the image; in a signal handler. What cannot be read
 * (any more) is zeros. */
static void image_fill(void *ctx, uint64_t at, uint8_t *into, size_t n)
{
	const struct image *m = ctx;

	for (size_t i = 0; i < WANTED; i++) {
		const struct piece *p = &m->pieces[i];
		uint64_t from = at > p->start ? at : p->start,
			 to = at + n < p->start + p->size ? at + n : p->start + p->size;

		if (p->section && from < to)
			(void)symfile_read(m->file, p->section->offset + (from - p->start),
					   into + (from - at), to - from);
	}
}

/* Packed sections have to be unpacked as a whole. */
static int image_fill_all(struct image *m)
{
	for (size_t i = 0; i < WANTED; i++) {
		const struct piece *p = &m->pieces[i];
		int r = 0;

		if (p->section && p->packed)
			r = unpack(m->file, p, m->bytes + p->start);
		else if (p->section)
			r = symfile_read(m->file, p->section->offset, m->bytes + p->start, p->size);
		if (r)
			return r;
	}
	return 0;
}

static void image_headers(struct image *m)
{
	Elf64_Ehdr *e = (Elf64_Ehdr *)m->bytes;
	Elf64_Shdr *headers = (Elf64_Shdr *)(m->bytes + sizeof(*e));
	char *names = (char *)(headers + WANTED + 2);
	uint32_t count = 1, name = 1;

	for (size_t i = 0; i < WANTED; i++) {
		const struct piece *p = &m->pieces[i];

		if (!p->section)
			continue;
		headers[count++] = (Elf64_Shdr){ .sh_name = name,
						 .sh_type = SHT_PROGBITS,
						 .sh_offset = p->start,
						 .sh_size = p->size,
						 .sh_addralign = 1 };
		name += (uint32_t)snprintf(names + name, IMAGE_NAMES - name, ".%s", wanted[i]) + 1;
	}
	headers[count] = (Elf64_Shdr){ .sh_name = 0,
				       .sh_type = SHT_STRTAB,
				       .sh_offset = (uint64_t)((uint8_t *)names - m->bytes),
				       .sh_size = IMAGE_NAMES,
				       .sh_addralign = 1 };
	memcpy(e->e_ident, ELFMAG, SELFMAG);
	e->e_ident[EI_CLASS] = ELFCLASS64;
	e->e_ident[EI_DATA] = ELFDATA2LSB;
	e->e_ident[EI_VERSION] = EV_CURRENT;
	e->e_type = ET_DYN;
	e->e_machine = (Elf64_Half)symfile_machine(m->file);
	e->e_version = EV_CURRENT;
	e->e_shoff = sizeof(*e);
	e->e_ehsize = sizeof(*e);
	e->e_shentsize = sizeof(Elf64_Shdr);
	e->e_shnum = (Elf64_Half)(count + 1);
	e->e_shstrndx = (Elf64_Half)count;
}

/* Where each section comes to lie, and that it is there. */
static int image_lay_out(struct image *m, bool *ret_packed)
{
	uint64_t at = IMAGE_HEAD, size = symfile_size(m->file);

	*ret_packed = false;
	for (size_t i = 0; i < WANTED; i++) {
		struct piece *p = &m->pieces[i];

		if (!p->section)
			continue;
		if (p->section->offset > size || p->section->size > size - p->section->offset)
			return SYMFILE_MALFORMED;
		*ret_packed |= p->packed;
		p->start = (at + 15) & ~15ull;
		at = p->start + p->size;
	}
	return 0;
}

static int image_make(const struct symfile *f, uint64_t max, struct image *m)
{
	uint64_t size;
	bool packed;
	int r;

	*m = (struct image){ .file = f };
	r = find_pieces(f, m->pieces, &size);
	if (r)
		return r;
	r = image_lay_out(m, &packed);
	if (r)
		return r;
	/* Of what is not packed little is looked at. */
	if (size / (packed ? 1 : LAZY_PART) > max)
		return SYMFILE_TOO_LARGE;
	m->size = size;
	if (packed) {
		m->bytes = calloc(1, size);
		r = m->bytes ? image_fill_all(m) : -ENOMEM;
	} else {
		r = lazy_new(size, max, image_fill, m, &m->lazy);
		m->bytes = m->lazy ? m->lazy->bytes : NULL;
		if (r == 0 && !lazy_touch(m->lazy, IMAGE_HEAD))
			r = -ENOMEM;
	}
	if (r == 0)
		image_headers(m);
	return r;
}

/* libdw ends the process where it is refused memory, unless its handler does not return. What it
 * was about is left as it is, in what dwarf_end frees; some of it is not, once for a file. */
static jmp_buf *no_memory;

static __attribute__((noreturn)) void out_of_memory(void)
{
	if (no_memory)
		longjmp(*no_memory, 1);
	abort();
}

/* Where its bytes are still there, libdw begins anew with them. */
static int image_open(const struct symfile *f, uint64_t max, struct image *m)
{
	int r = m->bytes ? 0 : image_make(f, max, m);

	if (r)
		return r;
	elf_version(EV_CURRENT);
	errno = 0;
	m->elf = elf_memory((char *)m->bytes, m->size);
	if (!m->elf)
		return errno == ENOMEM ? -ENOMEM : SYMFILE_MALFORMED;
	m->dwarf = dwarf_begin_elf(m->elf, DWARF_C_READ, NULL);
	if (m->dwarf)
		dwarf_new_oom_handler(m->dwarf, out_of_memory);
	return m->dwarf ? 0 : errno == ENOMEM ? -ENOMEM : SYMFILE_MALFORMED;
}

/* Bytes of memory that it takes. */
static size_t image_bytes(const struct image *m)
{
	return m->lazy ? m->lazy->filled : m->size;
}

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

	no_memory = &here;
	errno = 0;
	if (setjmp(here) == 0)
		r = list_units(d);
	no_memory = NULL;
	return errno == ENOMEM ? -ENOMEM : r;
}

static int open_images(struct dwarfinfo *d)
{
	int r = image_open(d->file, d->max, &d->main);

	if (r) {
		image_done(&d->main);
		return r;
	}
	/* Without it, names that stand there are missing. */
	if (d->alt_file && image_bytes(&d->main) < d->max &&
	    image_open(d->alt_file, d->max - image_bytes(&d->main), &d->alt) == 0)
		dwarf_setalt(d->main.dwarf, d->alt.dwarf);
	else
		image_done(&d->alt);
	d->opening++;
	return 0;
}

static void close_images(struct dwarfinfo *d)
{
	image_done(&d->main);
	image_done(&d->alt);
	d->grown = 0;
}

static bool rest_image(struct image *m, bool packed)
{
	bool any = m->bytes && (m->dwarf || m->lazy || packed);

	if (m->lazy || packed)
		image_done(m);
	else
		image_end(m);
	return any;
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
	return sizeof(*d) + image_bytes(&d->main) + image_bytes(&d->alt) + d->grown + d->indexed +
	       d->unit_count * sizeof(*d->units) +
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

/* --- names --- */

/* What an attribute, or a chain of origins and specifications, says; an entry of another unit or
 * file included. */
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

/* The entry where the function was first declared, which stands in the scope it belongs to. */
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

static uint64_t language_of(Dwarf_Die *cudie)
{
	Dwarf_Attribute a;
	Dwarf_Word language;

	return dwarf_attr(cudie, DW_AT_language, &a) && dwarf_formudata(&a, &language) == 0
		       ? language
		       : 0;
}

/* Languages whose functions live in scopes: their plain name says too little. */
static bool has_scopes(Dwarf_Die *cudie)
{
	switch (language_of(cudie)) {
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

/* `outer::inner::` before a name. Entries stand in the order of their offsets, so that the last
 * child that starts at or before the one sought holds it. */
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

static void name_call(struct names *n, struct call *c, Dwarf_Die *die)
{
	const char *linkage = die_string(die, DW_AT_linkage_name);
	const char *plain;
	char scoped[NAMES_TEXT + 1];
	Dwarf_Die origin, cudie;
	size_t len;

	if (!linkage)
		linkage = die_string(die, DW_AT_MIPS_linkage_name);
	if (linkage && linkage[0]) {
		names_set(n, c, linkage);
		return;
	}
	plain = die_string(die, DW_AT_name);
	if (!plain || !plain[0])
		return;
	c->system_name = names_keep(n, plain, strlen(plain));
	c->name = c->system_name;
	die_origin(die, &origin);
	if (!dwarf_diecu(&origin, &cudie, NULL, NULL) || !has_scopes(&cudie))
		return;
	c->bare = true;
	len = write_scopes(&origin, &cudie, scoped, sizeof(scoped));
	if (len > 0) {
		snprintf(scoped + len, sizeof(scoped) - len, "%s", plain);
		c->name = names_keep(n, scoped, strlen(scoped));
	}
}

/* A path as compilers leave it: relative ones are taken from the unit's directory. */
static void name_source(struct names *n, struct call *c, const char *path, Dwarf_Die *cudie)
{
	char whole[2 * NAMES_TEXT];
	Dwarf_Attribute a;
	const char *dir;

	if (!path)
		return;
	dir = path[0] != '/' && dwarf_attr(cudie, DW_AT_comp_dir, &a) ? dwarf_formstring(&a) : NULL;
	if (dir && dir[0]) {
		snprintf(whole, sizeof(whole), "%s/%s", dir, path);
		path = whole;
	}
	c->source = names_keep(n, path, strlen(path));
}

static bool die_number(Dwarf_Die *die, unsigned attribute, bool integrate, uint64_t *ret)
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

/* The line of the declaration, when that is in the file that c->source says. */
static void name_start(struct call *c, Dwarf_Die *die)
{
	const char *file = dwarf_decl_file(die);
	uint64_t line;

	if (!die_number(die, DW_AT_decl_line, true, &line) || line > INT32_MAX)
		return;
	if (file && c->source.len >= strlen(file) &&
	    memcmp(c->source.data + c->source.len - strlen(file), file, strlen(file)) == 0)
		c->start_line = line;
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
	if (language_of(&cudie) != DW_LANG_Mips_Assembler &&
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
		name_source(ret, &ret->calls[0], path, &cudie);
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
		name_call(ret, c, die);
		name_source(ret, c, path ? path : innermost ? dwarf_decl_file(die) : NULL, &cudie);
		name_start(c, die);
		/* An inlined call whose name cannot be had (it stands in a file that is not here)
		 * is left out. */
		if (c->name.len > 0 || i == 0)
			ret->count++;
		path = NULL;
		line = 0;
		if (dwarf_tag(die) == DW_TAG_inlined_subroutine) {
			if (die_number(die, DW_AT_call_file, false, &file) && files &&
			    file < file_count)
				path = dwarf_filesrc(files, file, NULL, NULL);
			if (!die_number(die, DW_AT_call_line, false, &line) || line > INT32_MAX)
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

	no_memory = &here;
	errno = 0;
	if (setjmp(here) == 0)
		r = lookup(d, address, ret);
	no_memory = NULL;
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
