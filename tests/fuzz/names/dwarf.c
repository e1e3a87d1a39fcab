/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a file with DWARF, read through libdw. If the size is odd, it is also the file with
 * which both share strings (dwz). The client accepts each answer of the worker.
 *
 * An answer comes in bounded time and lies within its own text. The file can be closed and opened
 * again at any time.
 */
#include <stdlib.h>
#include "common/names/dwarf/dwarfinfo.h"
#include "common/names/program/programwire.h"
#include "tests/fuzz/must.h"

#define LOOKUPS 24

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void answer(int verdict, const struct names *found)
{
	static uint8_t wire[PROGRAMWIRE_MAX];
	static struct programwire_answer taken_answer;
	static struct names taken;
	const struct programwire_answer a = { .head.verdict = verdict, .head.bytes = 4096 };
	const size_t n = programwire_put(&a, verdict ? NULL : found, wire);

	must(programwire_take((struct span){ .data = wire, .len = n }, &taken_answer, &taken));
	must(taken_answer.head.verdict == verdict && taken.count == (verdict ? 0 : found->count));
	for (unsigned i = 0; i < taken.count; i++)
		must(str_eq(taken.calls[i].name, found->calls[i].name) &&
		     str_eq(taken.calls[i].source, found->calls[i].source) &&
		     taken.calls[i].line == found->calls[i].line);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct names names;
	struct symfile *f, *alt = NULL;
	struct dwarfinfo *d;

	if (symfile_open_bytes((struct span){ .data = data, .len = size }, &f) != 0)
		return 0;
	if (size & 1)
		must(symfile_open_bytes((struct span){ .data = data, .len = size }, &alt) == 0);
	if (dwarfinfo_open(f, alt, 4 << 20, &d) == 0) {
		for (uint64_t i = 0; i < LOOKUPS; i++) {
			/* Addresses as in small objects of compilers, then as in linked ones. */
			const uint64_t at = i < LOOKUPS / 2 ? i * 8 : 0x1000 + i * 24;
			int r;

			for (int n = 0; (r = dwarfinfo_lookup(d, at, &names)) == VERDICT_AGAIN;
			     n++) {
				struct symfile *own = NULL;

				must(n < 1024 && names.count == 1);
				if (n != 1)
					(void)symfile_open_bytes(
						(struct span){ .data = data, .len = size }, &own);
				dwarfinfo_offer(d, own);
			}
			must(r == 0 || r == SYMFILE_NONE);
			must(r || (names.count >= 1 && names.count <= NAMES_MAX));
			answer(r, &names);
			if (i == LOOKUPS / 3)
				(void)dwarfinfo_rest(d, size & 2);
		}
		must(dwarfinfo_bytes(d) > 0);
		dwarfinfo_free(d);
	}
	symfile_free(alt);
	symfile_free(f);
	return 0;
}
