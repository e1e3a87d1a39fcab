/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/program/sources.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/base/text/hex.h"
#include "common/names/dwarf/dwarfinfo.h"
#include "common/names/elf/filecrc.h"
#include "common/names/elf/funcbounds.h"
#include "common/names/elf/plt.h"
#include "common/names/program/gosym.h"
#include "common/names/program/keptbuiltins.h"
#include "common/names/runtime/v8/builtins.h"

#define MAX_ASKED 16   /* files that one lookup may get */
#define MAX_WANTS 4096 /* files that one lookup may want, including those that are not available */
#define MAX_REFUSED 16 /* wrong files that may be offered for one want */
#define MAX_SUMS 4     /* debug files whose checksum is compared */

struct sources {
	struct symfile *main, *debug, *alt;
	struct fileid fileid;			  /* of main */
	struct stat stat;			  /* likewise */
	struct symindex *symbols, *debug_symbols; /* of main and debug */
	struct dwarfinfo *dwarf;
	struct gosym *go;
	struct v8_builtins *builtins;
	struct funcbounds *bounds;
	uint64_t dwarf_max;
	enum sources_step step;
	uint64_t owner;
	enum dwarfinfo_want want; /* of the last lookup */
	unsigned asked;		  /* files wanted by the current lookup */
	unsigned refused;	  /* wrong files that were offered for the current want */
	unsigned sums;		  /* debug files with a wrong checksum */
	unsigned unproven_after;  /* value of `refused` before the debug file came that is
				   * unproven */
	bool alone;		  /* wants no more files (sources_give_up) */
	uint8_t want_id[8];
	char want_name[NAMES_TEXT + 1];
	bool unproven; /* the checksum of the debug file is not compared yet */
	bool dwarf_tried, dwarf_too_large, dwarf_lost, go_tried, builtins_tried;
};

/* Returns the file that has the DWARF: the program itself or its debug file. */
static struct symfile *dwarf_file(const struct sources *p)
{
	if (dwarfinfo_size(p->main) > 0)
		return p->main;
	return p->debug && dwarfinfo_size(p->debug) > 0 ? p->debug : NULL;
}

int sources_open(int fd, uint64_t dwarf_max, struct sources **ret)
{
	struct sources *p = calloc(1, sizeof(*p));
	int r = !p ? -ENOMEM : fstat(fd, &p->stat) < 0 ? -errno : symfile_open(fd, &p->main);

	if (r) {
		close(fd);
		free(p);
		return r;
	}
	r = symindex_new(p->main, SYMINDEX_LARGE, &p->symbols);
	if (r) {
		sources_free(p);
		return r;
	}
	if (!symfile_is_linked(p->main)) {
		sources_free(p);
		return SYMFILE_UNSUPPORTED;
	}
	fileid_read(p->main, &p->fileid);
	p->dwarf_max = dwarf_max;
	p->step = dwarfinfo_size(p->main) > 0 ? SOURCES_ALT : SOURCES_BUILD_ID;
	*ret = p;
	return 0;
}

void sources_free(struct sources *p)
{
	if (!p)
		return;
	dwarfinfo_free(p->dwarf);
	gosym_free(p->go);
	keptbuiltins_give(&p->stat, p->builtins);
	funcbounds_free(p->bounds);
	symindex_free(p->symbols);
	symindex_free(p->debug_symbols);
	symfile_free(p->main);
	symfile_free(p->debug);
	symfile_free(p->alt);
	free(p);
}

static enum program_want split_wanted(const struct sources *p, struct span *ret_id,
				      const char **ret_name)
{
	switch (p->want) {
	case DWARFINFO_WANTS_PACKAGE:
		return PROGRAM_WANTS_PACKAGE;
	case DWARFINFO_WANTS_PATH:
		*ret_id = (struct span){ .data = p->want_id, .len = sizeof(p->want_id) };
		*ret_name = p->want_name;
		return PROGRAM_WANTS_ALT;
	case DWARFINFO_WANTS_BESIDE:
		*ret_name = p->want_name;
		return PROGRAM_WANTS_NAME;
	case DWARFINFO_WANTS_NOTHING:
		break;
	}
	return PROGRAM_WANTS_NOTHING;
}

enum program_want sources_wants(struct sources *p, struct span *ret_build_id, const char **ret_name)
{
	struct symfile *f;
	uint32_t crc;

	*ret_build_id = (struct span){ 0 };
	*ret_name = NULL;
	if (p->step == SOURCES_BUILD_ID) {
		*ret_build_id = symfile_build_id(p->main);
		if (ret_build_id->len >= 2)
			return PROGRAM_WANTS_BUILD_ID;
		p->step = SOURCES_NAME;
	}
	if (p->step == SOURCES_NAME) {
		*ret_build_id = (struct span){ 0 };
		if (symfile_debuglink(p->main, ret_name, &crc) == 0)
			return PROGRAM_WANTS_NAME;
		p->step = SOURCES_ALT;
	}
	if (p->step == SOURCES_ALT) {
		f = dwarf_file(p);
		if (f && symfile_altlink(f, ret_name, ret_build_id) == 0 && ret_build_id->len >= 2)
			return PROGRAM_WANTS_ALT;
		*ret_build_id = (struct span){ 0 };
		*ret_name = NULL;
		p->step = SOURCES_DONE;
	}
	return p->dwarf ? split_wanted(p, ret_build_id, ret_name) : PROGRAM_WANTS_NOTHING;
}

static bool same_id(struct span a, struct span b)
{
	return a.len > 0 && a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

/* Whether this is the requested file. The checksum only counts if there is no build id to compare:
 * tools that pack debug files change it. *ret_unproven: the checksum must still be compared. */
static bool is_right(const struct sources *p, const struct symfile *f, struct span build_id,
		     bool *ret_unproven)
{
	struct span debug_id = symfile_build_id(f), main_id = symfile_build_id(p->main);

	*ret_unproven = false;
	if (p->step != SOURCES_ALT && !symfile_is_linked(f))
		return false;
	if (p->step != SOURCES_NAME)
		return same_id(debug_id, build_id);
	if (main_id.len > 0)
		return same_id(debug_id, main_id);
	*ret_unproven = true;
	return true;
}

/* Compares the checksum of the debug file, and closes the file if it does not match. Returns
 * whether the debug file is wanted again, since another file of this name may be the right one. */
static bool prove_debug(struct sources *p)
{
	const char *name;
	uint32_t want, have;

	p->unproven = false;
	const bool known = symfile_debuglink(p->main, &name, &want) == 0 &&
			   filecrc_of(p->debug, p->owner, &have) == 0;

	if (known && want == have)
		return false;
	symindex_free(p->debug_symbols);
	symfile_free(p->debug);
	p->debug_symbols = NULL;
	p->debug = NULL;
	if (dwarfinfo_size(p->main) == 0) { /* otherwise it is the main file's */
		symfile_free(p->alt);
		p->alt = NULL;
	}
	if (!known || ++p->sums == MAX_SUMS)
		return false;
	p->step = SOURCES_NAME;
	p->refused = p->unproven_after + 1;
	return true;
}

/* Whether the same file is still wanted after an offer. wrong: the offered file was a wrong one. */
static bool wants_another(struct sources *p, bool wrong)
{
	p->refused = wrong ? p->refused + 1 : 0;
	if (p->refused < MAX_REFUSED && p->refused)
		return true;
	p->refused = 0;
	return false;
}

/* Takes a .dwo file or a package. */
static bool offer_split(struct sources *p, int fd)
{
	const struct symfile_section *s;
	const bool was_file = fd >= 0;
	struct symfile *f = NULL;

	if (was_file && symfile_open(fd, &f) != 0)
		close(fd);
	if (f && symfile_last_section(f, ".debug_info.dwo", &s) != 0) {
		symfile_free(f);
		f = NULL;
	}
	if (wants_another(p, was_file && !f))
		return false;
	p->want = DWARFINFO_WANTS_NOTHING;
	dwarfinfo_offer(p->dwarf, f);
	return f != NULL;
}

bool sources_offer(struct sources *p, int fd)
{
	const bool was_file = fd >= 0;
	const unsigned refused = p->refused;
	struct symfile *f = NULL;
	struct span build_id;
	const char *name;
	bool unproven = false;
	enum sources_step step;

	sources_wants(p, &build_id, &name);
	step = p->step;
	if (step == SOURCES_DONE && p->dwarf)
		return offer_split(p, fd);
	if (fd >= 0 && (step == SOURCES_DONE || symfile_open(fd, &f) != 0)) {
		close(fd);
		f = NULL;
	}
	if (f &&
	    (!is_right(p, f, build_id, &unproven) ||
	     (step != SOURCES_ALT && symindex_new(f, SYMINDEX_LARGE, &p->debug_symbols) != 0))) {
		symfile_free(f);
		f = NULL;
	}
	if (wants_another(p, was_file && !f))
		return false;
	switch (step) {
	case SOURCES_BUILD_ID:
	case SOURCES_NAME:
		p->debug = f;
		p->unproven = f && unproven;
		p->unproven_after = refused;
		p->step = f ? SOURCES_ALT : step + 1;
		break;
	case SOURCES_ALT:
		p->alt = f;
		p->step = SOURCES_DONE;
		break;
	case SOURCES_DONE:
		break;
	}
	return f != NULL;
}

unsigned sources_refused(const struct sources *p)
{
	return p->refused;
}

void sources_charge(struct sources *p, uint64_t owner)
{
	p->owner = owner;
}

void sources_give_up(struct sources *p)
{
	p->alone |= p->dwarf != NULL;
	sources_offer(p, -1);
}

bool sources_is_cut(const struct sources *p)
{
	return symfile_is_cut(p->main);
}

const struct fileid *sources_fileid(const struct sources *p)
{
	return &p->fileid;
}

int sources_address(const struct sources *p, uint64_t offset, uint64_t *ret)
{
	return symfile_address(p->main, offset, ret);
}

static void open_dwarf(struct sources *p)
{
	const struct symfile *f = dwarf_file(p);

	p->dwarf_tried = true;
	if (!f || !p->dwarf_max)
		return;
	const int r = dwarfinfo_open(f, p->alt, p->dwarf_max, &p->dwarf);

	p->dwarf_too_large = r == SYMFILE_TOO_LARGE || r == -ENOMEM;
}

/* Stores what the lookup wants. Returns false if the answer is invalid. */
static bool note_want(struct sources *p, const struct names *n)
{
	const struct names_call *c = &n->calls[0];

	if (n->count != 1 || c->line < DWARFINFO_WANTS_PACKAGE ||
	    c->line > DWARFINFO_WANTS_BESIDE || c->name.len != 2 * sizeof(p->want_id) ||
	    !c->source.len || c->source.len > NAMES_TEXT)
		return false;
	for (size_t i = 0; i < sizeof(p->want_id); i++) {
		const int byte = hex_byte(c->name.data + 2 * i);

		if (byte < 0)
			return false;
		p->want_id[i] = (uint8_t)byte;
	}
	memcpy(p->want_name, c->source.data, c->source.len);
	p->want_name[c->source.len] = '\0';
	p->want = (enum dwarfinfo_want)c->line;
	return true;
}

/* Like dwarfinfo_lookup, but gets the files that it wants. */
static int lookup_dwarf(struct sources *p, uint64_t address, struct names *ret)
{
	int r = VERDICT_AGAIN;

	for (unsigned n = 0; r == VERDICT_AGAIN; n++) {
		names_reset(ret);
		p->want = DWARFINFO_WANTS_NOTHING;
		r = dwarfinfo_lookup(p->dwarf, address, ret);
		if (r != VERDICT_AGAIN)
			break;
		if (n == MAX_WANTS || !note_want(p, ret)) {
			dwarfinfo_free(p->dwarf);
			p->dwarf = NULL;
			p->dwarf_lost = true;
			r = SYMFILE_NONE;
		} else if (p->alone || p->asked == MAX_ASKED) {
			offer_split(p, -1);
		} else {
			p->asked++;
			break;
		}
	}
	if (r != VERDICT_AGAIN)
		p->asked = 0;
	if (r)
		names_reset(ret);
	return r == 0 && !ret->count ? SYMFILE_NONE : r;
}

/* Converts an address of the program to one of its debug file. */
static uint64_t debug_address(const struct sources *p, const struct symfile *debug,
			      uint64_t address)
{
	return address - symfile_base(p->main) + symfile_base(debug);
}

static uint64_t debug_address_back(const struct sources *p, const struct symfile *debug,
				   uint64_t address)
{
	return address - symfile_base(debug) + symfile_base(p->main);
}

static int lookup_symbol(struct sources *p, uint64_t address, char name[static SYMFILE_NAME])
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
	       name.data[name.len - symbol.len - 1] == '_' && str_ends_with(name, symbol);
}

/* Replaces DWARF's name of the outermost function by its symbol, if that is better known. */
static int prefer_known(struct sources *p, uint64_t address, struct names *ret)
{
	struct names_call *c = &ret->calls[ret->count - 1];
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

/* Looks up a builtin of V8. It gets the name of its symbol even if the file has no symbols. If
 * there is no memory for V8's tables, only symbols are used. Returns 0 or SYMFILE_NONE. */
static int lookup_builtin(struct sources *p, uint64_t address, struct names *ret)
{
	char name[V8_BUILTIN_NAME];

	if (!p->builtins_tried) {
		p->builtins = keptbuiltins_take(&p->stat);
		if (!p->builtins && v8_builtins_open(p->main, &p->builtins) != 0)
			p->builtins = NULL;
	}
	p->builtins_tried = true;
	if (!p->builtins || v8_builtins_name(p->builtins, p->main, address, name) != 0)
		return SYMFILE_NONE;
	names_reset(ret);
	ret->calls[0] = (struct names_call){ 0 };
	ret->count = 1;
	names_set(ret, &ret->calls[0], name);
	return 0;
}

int sources_lookup(struct sources *p, uint64_t address, struct names *ret)
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
	if (lookup_builtin(p, address, ret) == 0)
		return 0;
	if (p->unproven && prove_debug(p))
		return VERDICT_AGAIN;
	if (!p->dwarf_tried)
		open_dwarf(p);
	names_reset(ret);
	if (p->dwarf) {
		const struct symfile *f = dwarf_file(p);

		r = lookup_dwarf(p, f == p->main ? address : debug_address(p, f, address), ret);
		if (r == VERDICT_AGAIN)
			return VERDICT_AGAIN;
		/* The DWARF takes too much memory: give it up. */
		if (r == SYMFILE_TOO_LARGE || r == -ENOMEM) {
			dwarfinfo_free(p->dwarf);
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
		ret->calls[0] = (struct names_call){ 0 };
		ret->count = 1;
	}
	(slot ? names_set_slot : names_set)(ret, &ret->calls[ret->count - 1], name);
	return 0;
}

int sources_start(struct sources *p, uint64_t address, uint64_t *ret)
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

bool sources_dwarf_lost(const struct sources *p)
{
	return p->dwarf_lost;
}

bool sources_dwarf_too_large(const struct sources *p)
{
	return p->dwarf_too_large;
}

enum sources_step sources_step(const struct sources *p)
{
	return p->step;
}

bool sources_has(const struct sources *p, enum sources_part part, bool *ret_unproven)
{
	*ret_unproven = p->unproven;
	return (part == SOURCES_DEBUG ? p->debug : p->alt) != NULL;
}

void sources_restore(struct sources *p, enum sources_step step, bool unproven, int debug, int alt)
{
	if (debug >= 0 && symfile_open(debug, &p->debug) != 0) {
		close(debug);
		p->debug = NULL;
	}
	if (p->debug && symindex_new(p->debug, SYMINDEX_LARGE, &p->debug_symbols) != 0) {
		symfile_free(p->debug);
		p->debug = NULL;
	}
	if (alt >= 0 && symfile_open(alt, &p->alt) != 0) {
		close(alt);
		p->alt = NULL;
	}
	p->unproven = p->debug && unproven;
	p->step = step;
}

int sources_describe(struct sources *p, struct runtime_build *ret)
{
	const int r = runtime_describe(p->main, ret);

	if (r == RUNTIME_NOT_MINE || (r == 0 && ret->config.runtime != RUNTIME_V8))
		sources_lacks_v8(p);
	return r ? r : runtime_find_mark(p->main, ret);
}

void sources_lacks_v8(struct sources *p)
{
	p->builtins_tried = true;
}

bool sources_is_ready(const struct sources *p)
{
	return p->dwarf_tried && !p->unproven;
}

bool sources_rest(struct sources *p, bool packed)
{
	return p->dwarf && dwarfinfo_rest(p->dwarf, packed);
}

size_t sources_bytes(const struct sources *p)
{
	return sizeof(*p) + symfile_bytes(p->main) + symindex_bytes(p->symbols) +
	       (p->debug ? symfile_bytes(p->debug) + symindex_bytes(p->debug_symbols) : 0) +
	       (p->alt ? symfile_bytes(p->alt) : 0) + (p->dwarf ? dwarfinfo_bytes(p->dwarf) : 0) +
	       (p->go ? gosym_bytes(p->go) : 0) +
	       (p->builtins ? v8_builtins_bytes(p->builtins) : 0) +
	       (p->bounds ? funcbounds_bytes(p->bounds) : 0);
}
