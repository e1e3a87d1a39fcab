/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a program. Covers segments, build ids, hash, debug link, the symbol index, MiniDebugInfo,
 * Go's table, starts of functions from call frame information and code, and PLT slots. The file is
 * also offered as its own debug file. Looks up addresses all over it; each answer must lie within
 * its own text. DWARF has its own target.
 */
#include <stdlib.h>
#include <string.h>
#include "tests/fuzz/memory_file.h"
#include "common/names/program/program.h"
#include "common/names/elf/symindex.h"
#include "tests/fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool within(const struct names *n, struct str s)
{
	return s.len == 0 || (s.len <= NAMES_TEXT && s.data >= n->text &&
			      s.data + s.len <= n->text + sizeof(n->text));
}

/* Looks names up as in a table that is too large to hold in memory. */
static void look_by_pieces(const struct symfile *f, size_t size)
{
	static char name[SYMFILE_NAME];
	struct symindex *x;

	if (symindex_new(f, 1, &x) != 0)
		return;
	for (uint64_t i = 0; i < 64; i++) {
		uint64_t address;

		if (symfile_address(f, i * (size / 64 + 1), &address) != 0)
			address = i * 0x40;
		if (symindex_lookup(x, address, name) == 0)
			must(memchr(name, 0, sizeof(name)) != NULL);
	}
	symindex_free(x);
}

static void check_names(const struct names *n)
{
	must(n->count >= 1 && n->count <= NAMES_MAX);
	for (unsigned k = 0; k < n->count; k++)
		must(within(n, n->calls[k].name) && within(n, n->calls[k].system_name) &&
		     within(n, n->calls[k].source));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct names names;
	struct program *p;
	struct symfile *f;
	struct span id;
	const char *name;

	if (program_open(memory_file_open(data, size), PROGRAM_OF_OTHERS, 0, &p) != 0)
		return 0;
	for (int i = 0; program_wants(p, &id, &name) != PROGRAM_WANTS_NOTHING; i++) {
		must(i < 3 && (!name || name[0]));
		program_offer(p, memory_file_open(data, size));
	}
	for (uint64_t i = 0; i < 64; i++) {
		uint64_t address, start, offset = i * (size / 64 + 1);
		int r;

		if (program_address(p, offset, &address) != 0)
			address = i * 0x40;
		r = program_lookup(p, address, &names);
		if (!r)
			check_names(&names);
		if (program_find(p, offset, &names, &address, &start) == 0)
			must(start <= address);
	}
	must(symfile_open_bytes((struct span){ .data = data, .len = size }, &f) == 0);
	look_by_pieces(f, size);
	symfile_free(f);
	must(fileid_is_sane(program_fileid(p)) && program_bytes(p) > 0);
	program_free(p);
	return 0;
}
