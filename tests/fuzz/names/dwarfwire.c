/* SPDX-License-Identifier: Apache-2.0 */
/* Input: an answer of the process that runs libdw. An accepted answer lies within its own text, and
 * is the same after encoding it again. */
#include <stdlib.h>
#include "common/names/dwarf/dwarfwire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
	if (!holds)
		abort();
}

static void within(const struct names *n, struct str s)
{
	check(s.len <= NAMES_TEXT &&
	      (!s.len || (s.data >= n->text && s.data + s.len <= n->text + n->used)));
	check(!s.len || !memchr(s.data, '\0', s.len));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t wire[DWARFWIRE_MAX];
	static struct names names, again;
	uint64_t bytes, bytes_again;
	int verdict, r;

	if (!dwarfwire_take((struct span){ .data = data, .len = size }, &verdict, &bytes, &names))
		return 0;
	check(names.count <= NAMES_MAX && names.used <= size);
	for (unsigned i = 0; i < names.count; i++) {
		within(&names, names.calls[i].name);
		within(&names, names.calls[i].system_name);
		within(&names, names.calls[i].source);
	}
	const size_t n = dwarfwire_put(verdict, bytes, &names, wire, sizeof(wire));

	check(n <= sizeof(wire) &&
	      dwarfwire_take((struct span){ .data = wire, .len = n }, &r, &bytes_again, &again));
	check(r == verdict && bytes == bytes_again && again.count == names.count &&
	      again.used == names.used);
	for (unsigned i = 0; i < names.count; i++)
		check(str_eq(names.calls[i].name, again.calls[i].name) &&
		      str_eq(names.calls[i].source, again.calls[i].source) &&
		      names.calls[i].line == again.calls[i].line &&
		      names.calls[i].bare == again.calls[i].bare);
	/* Without room for calls, none are accepted. */
	check(!dwarfwire_take((struct span){ .data = data, .len = size }, &r, &bytes, NULL) ||
	      !names.count);
	return 0;
}
