/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a program: segments, build id, debug link, the symbol index, MiniDebugInfo, Go's
 * table. It is also offered itself as its own debug file. Addresses are looked up all over it; what
 * an answer says must lie within its own text. DWARF has a target of its own.
 */
#include <stdlib.h>
#include "tests/fuzz/memory_file.h"
#include "tools/prof-symd/program.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
	if (!holds)
		abort();
}

static bool within(const struct names *n, struct str s)
{
	return s.len == 0 || (s.len <= NAMES_TEXT && s.data >= n->text &&
			      s.data + s.len <= n->text + sizeof(n->text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct names names;
	struct program *p;
	struct span id;
	const char *name;

	if (program_open(memory_file_open(data, size), 0, &p) != 0)
		return 0;
	for (int i = 0; program_wants(p, &id, &name) != PROGRAM_WANTS_NOTHING; i++) {
		check(i < 3 && (!name || name[0]));
		program_offer(p, memory_file_open(data, size));
	}
	for (uint64_t i = 0; i < 64; i++) {
		uint64_t address, offset = i * (size / 64 + 1);
		int r;

		if (program_address(p, offset, &address) != 0)
			address = i * 0x40;
		r = program_lookup(p, address, &names);
		if (r)
			continue;
		check(names.count >= 1 && names.count <= NAMES_MAX);
		for (unsigned k = 0; k < names.count; k++)
			check(within(&names, names.calls[k].name) &&
			      within(&names, names.calls[k].system_name) &&
			      within(&names, names.calls[k].source));
	}
	check(program_build_id(p).len <= SYMFILE_BUILD_ID && program_bytes(p) > 0);
	program_free(p);
	return 0;
}
