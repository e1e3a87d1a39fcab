/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/names/dwarf/dwarf.h"
#include "common/names/dwarf/dwarfinfo.h"
#include "common/names/elf/funcbounds.h"
#include "common/names/elf/plt.h"
#include "common/names/program/gosym.h"
#include "common/names/program/program.h"

enum step { STEP_BUILD_ID, STEP_NAME, STEP_ALT, STEP_DONE };

struct program {
	struct symfile *main, *debug, *alt;
	struct symindex *symbols, *debug_symbols; /* of main and debug */
	struct dwarf *dwarf;
	struct gosym *go;
	struct funcbounds *bounds;
	uint64_t dwarf_max;
	enum step step;
	bool dwarf_tried, dwarf_too_large, dwarf_lost, dwarf_killed, go_tried;
};

/* The file that has the DWARF: the program itself or its debug file. */
static struct symfile *dwarf_file(const struct program *p)
{
	if (dwarfinfo_size(p->main) > 0)
		return p->main;
	return p->debug && dwarfinfo_size(p->debug) > 0 ? p->debug : NULL;
}

int program_open(int fd, uint64_t dwarf_max, struct program **ret)
{
	struct program *p = calloc(1, sizeof(*p));
	int r = p ? symfile_open(fd, &p->main) : -ENOMEM;

	if (r) {
		close(fd);
		free(p);
		return r;
	}
	r = symindex_new(p->main, SYMINDEX_LARGE, &p->symbols);
	if (r) {
		program_free(p);
		return r;
	}
	if (!symfile_is_linked(p->main)) {
		program_free(p);
		return SYMFILE_UNSUPPORTED;
	}
	p->dwarf_max = dwarf_max;
	p->step = dwarfinfo_size(p->main) > 0 ? STEP_ALT : STEP_BUILD_ID;
	*ret = p;
	return 0;
}

void program_free(struct program *p)
{
	if (!p)
		return;
	dwarf_free(p->dwarf);
	gosym_free(p->go);
	funcbounds_free(p->bounds);
	symindex_free(p->symbols);
	symindex_free(p->debug_symbols);
	symfile_free(p->main);
	symfile_free(p->debug);
	symfile_free(p->alt);
	free(p);
}

static enum program_want split_wanted(const struct dwarf *d, struct span *ret_id,
				      const char **ret_name)
{
	struct span id;
	const char *name;
	const enum dwarfinfo_want want = dwarf_wants(d, &id, &name);

	switch (want) {
	case DWARFINFO_WANTS_PACKAGE:
		return PROGRAM_WANTS_PACKAGE;
	case DWARFINFO_WANTS_PATH:
		*ret_id = id;
		*ret_name = name;
		return PROGRAM_WANTS_ALT;
	case DWARFINFO_WANTS_BESIDE:
		*ret_name = name;
		return PROGRAM_WANTS_NAME;
	case DWARFINFO_WANTS_NOTHING:
		break;
	}
	return PROGRAM_WANTS_NOTHING;
}

enum program_want program_wants(struct program *p, struct span *ret_build_id, const char **ret_name)
{
	struct symfile *f;
	uint32_t crc;

	*ret_build_id = (struct span){ 0 };
	*ret_name = NULL;
	if (p->step == STEP_BUILD_ID) {
		*ret_build_id = symfile_build_id(p->main);
		if (ret_build_id->len >= 2)
			return PROGRAM_WANTS_BUILD_ID;
		p->step = STEP_NAME;
	}
	if (p->step == STEP_NAME) {
		*ret_build_id = (struct span){ 0 };
		if (symfile_debuglink(p->main, ret_name, &crc) == 0)
			return PROGRAM_WANTS_NAME;
		p->step = STEP_ALT;
	}
	if (p->step == STEP_ALT) {
		f = dwarf_file(p);
		if (f && symfile_altlink(f, ret_name, ret_build_id) == 0 && ret_build_id->len >= 2)
			return PROGRAM_WANTS_ALT;
		*ret_build_id = (struct span){ 0 };
		*ret_name = NULL;
		p->step = STEP_DONE;
	}
	return p->dwarf ? split_wanted(p->dwarf, ret_build_id, ret_name) : PROGRAM_WANTS_NOTHING;
}

static bool same_id(struct span a, struct span b)
{
	return a.len > 0 && a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* Whether this is the requested file. The checksum only counts if there are no build ids to
 * compare: tools that pack debug files change it. */
static bool is_right(const struct program *p, const struct symfile *f, struct span build_id)
{
	struct span theirs = symfile_build_id(f), ours = symfile_build_id(p->main);
	const char *name;
	uint32_t want, have;

	if (p->step != STEP_ALT && !symfile_is_linked(f))
		return false;
	if (p->step != STEP_NAME)
		return same_id(theirs, build_id);
	if (theirs.len > 0 && ours.len > 0)
		return same_id(theirs, ours);
	return symfile_debuglink(p->main, &name, &want) == 0 && symfile_crc(f, &have) == 0 &&
	       want == have;
}

bool program_offer(struct program *p, int fd)
{
	struct symfile *f = NULL;
	struct span build_id;
	const char *name;
	enum step step;

	program_wants(p, &build_id, &name);
	step = p->step;
	if (step == STEP_DONE && p->dwarf)
		return dwarf_offer(p->dwarf, fd);
	if (fd >= 0 && (step == STEP_DONE || symfile_open(fd, &f) != 0)) {
		close(fd);
		f = NULL;
	}
	if (f && (!is_right(p, f, build_id) ||
		  (step != STEP_ALT && symindex_new(f, SYMINDEX_LARGE, &p->debug_symbols) != 0))) {
		symfile_free(f);
		f = NULL;
	}
	switch (step) {
	case STEP_BUILD_ID:
	case STEP_NAME:
		p->debug = f;
		p->step = f ? STEP_ALT : step + 1;
		break;
	case STEP_ALT:
		p->alt = f;
		p->step = STEP_DONE;
		break;
	case STEP_DONE:
		break;
	}
	return f != NULL;
}

void program_give_up(struct program *p)
{
	if (p->dwarf)
		dwarf_leave_alone(p->dwarf);
	program_offer(p, -1);
}

const struct symfile *program_file(const struct program *p)
{
	return p->main;
}

bool program_is_cut(const struct program *p)
{
	return symfile_is_cut(p->main);
}

struct span program_build_id(const struct program *p)
{
	return symfile_build_id(p->main);
}

int program_address(const struct program *p, uint64_t offset, uint64_t *ret)
{
	return symfile_address(p->main, offset, ret);
}

static void open_dwarf(struct program *p)
{
	const struct symfile *f = dwarf_file(p);

	p->dwarf_tried = true;
	if (!f || !p->dwarf_max)
		return;
	const int r = dwarf_open(f, p->alt, p->dwarf_max, &p->dwarf);

	p->dwarf_too_large = r == SYMFILE_TOO_LARGE || r == -ENOMEM;
	p->dwarf_killed = r == DWARF_KILLED;
	p->dwarf_lost = r == DWARF_LOST || p->dwarf_killed;
}

/* Converts an address of the program to one of its debug file. */
static uint64_t debug_address(const struct program *p, const struct symfile *debug,
			      uint64_t address)
{
	return address - symfile_base(p->main) + symfile_base(debug);
}

static uint64_t debug_address_back(const struct program *p, const struct symfile *debug,
				   uint64_t address)
{
	return address - symfile_base(debug) + symfile_base(p->main);
}

static int lookup_symbol(struct program *p, uint64_t address, char name[static SYMFILE_NAME])
{
	int r = SYMFILE_NONE;

	if (symfile_has_symtab(p->main) || !p->debug)
		r = symindex_lookup(p->symbols, address, name);
	if (r && p->debug)
		r = symindex_lookup(p->debug_symbols, debug_address(p, p->debug, address), name);
	if (r && p->debug && !symfile_has_symtab(p->main))
		r = symindex_lookup(p->symbols, address, name);
	return r == -ENOMEM ? r : r ? SYMFILE_NONE : 0;
}

/* glibc prefixes names of functions that it calls itself with `__GI_`. Readers do not know these
 * names. */
#define INNER "__GI_"

static bool is_inner(struct str name)
{
	return name.len > strlen(INNER) && memcmp(name.data, INNER, strlen(INNER)) == 0;
}

/* Whether a symbol is better known than the name in DWARF. C libraries define functions under
 * internal names, and the known name is an alias: malloc for `__libc_malloc`. */
static bool is_better(struct str name, struct str symbol)
{
	if (!symbol.len || is_inner(symbol))
		return false;
	if (is_inner(name))
		return true;
	return name.data[0] == '_' && symbol.data[0] != '_' && symbol.len < name.len &&
	       name.data[name.len - symbol.len - 1] == '_' &&
	       memcmp(name.data + name.len - symbol.len, symbol.data, symbol.len) == 0;
}

/* Replaces DWARF's name of the outermost function by its symbol, if that is better known. */
static int prefer_known(struct program *p, uint64_t address, struct names *ret)
{
	struct call *c = &ret->calls[ret->count - 1];
	char name[SYMFILE_NAME];
	int r = SYMFILE_NONE;

	if (c->name.data[0] == '_' && str_eq(c->name, c->system_name))
		r = lookup_symbol(p, address, name);
	if (r == -ENOMEM)
		return r;
	if (r == 0) {
		name[strcspn(name, "@")] = '\0';
		if (is_better(c->name, str_from(name)))
			names_set(ret, c, name);
	}
	for (unsigned i = 0; i < ret->count; i++) {
		struct str *n = &ret->calls[i].name;

		if (is_inner(*n))
			*n = (struct str){ .data = n->data + strlen(INNER),
					   .len = n->len - (uint32_t)strlen(INNER) };
	}
	return 0;
}

int program_lookup(struct program *p, uint64_t address, struct names *ret)
{
	char name[SYMFILE_NAME];
	int r = SYMFILE_NONE;

	if (!p->go_tried) {
		const int e = gosym_open(p->main, &p->go);

		p->go_tried = e != -ENOMEM;
		if (!p->go_tried)
			return e;
	}
	if (p->go && gosym_lookup(p->go, address, ret) == 0)
		return 0;
	if (!p->dwarf_tried)
		open_dwarf(p);
	names_reset(ret);
	if (p->dwarf) {
		const struct symfile *f = dwarf_file(p);

		r = dwarf_lookup(p->dwarf, f == p->main ? address : debug_address(p, f, address),
				 ret);
		if (r == DWARFINFO_AGAIN)
			return PROGRAM_AGAIN;
		/* It takes too much memory: give its DWARF up. */
		if (r == SYMFILE_TOO_LARGE || r == -ENOMEM) {
			dwarf_free(p->dwarf);
			p->dwarf = NULL;
			p->dwarf_too_large = true;
			names_reset(ret);
		}
		if (r == 0 && ret->calls[ret->count - 1].name.len > 0 &&
		    !ret->calls[ret->count - 1].bare)
			return prefer_known(p, address, ret);
	}
	r = lookup_symbol(p, address, name);
	if (r && p->go && ret->count == 0 && gosym_lookup_name(p->go, address, ret) == 0)
		return 0;

	const bool slot = r && plt_lookup(p->main, p->symbols, address, name) == 0;

	if (r && !slot)
		return ret->count ? 0 : r;
	if (ret->count == 0) {
		ret->calls[0] = (struct call){ 0 };
		ret->count = 1;
	}
	(slot ? names_set_slot : names_set)(ret, &ret->calls[ret->count - 1], name);
	return 0;
}

int program_start(struct program *p, uint64_t address, uint64_t *ret)
{
	uint64_t floor = symindex_floor(p->symbols, address), end = 0;
	int r = p->bounds ? 0 : funcbounds_new(p->main, &p->bounds);

	if (p->debug)
		end = symindex_floor(p->debug_symbols, debug_address(p, p->debug, address));
	if (end)
		end = debug_address_back(p, p->debug, end);
	if (!r)
		r = funcbounds_start(p->bounds, address, end > floor ? end : floor, ret);
	return r == -ENOMEM ? r : r ? SYMFILE_NONE : 0;
}

bool program_dwarf_too_large(const struct program *p)
{
	return p->dwarf_too_large;
}

bool program_dwarf_lost(const struct program *p)
{
	return p->dwarf_lost || (p->dwarf && dwarf_lost(p->dwarf));
}

unsigned program_dwarf_kills(const struct program *p)
{
	return p->dwarf_killed ? 2 : p->dwarf ? dwarf_kills(p->dwarf) : 0;
}

bool program_rest(struct program *p, bool packed)
{
	return p->dwarf && dwarf_rest(p->dwarf, packed);
}

size_t program_bytes(const struct program *p)
{
	return sizeof(*p) + symfile_bytes(p->main) + symindex_bytes(p->symbols) +
	       (p->debug ? symfile_bytes(p->debug) + symindex_bytes(p->debug_symbols) : 0) +
	       (p->alt ? symfile_bytes(p->alt) : 0) + (p->dwarf ? dwarf_bytes(p->dwarf) : 0) +
	       (p->go ? gosym_bytes(p->go) : 0) + (p->bounds ? funcbounds_bytes(p->bounds) : 0);
}
