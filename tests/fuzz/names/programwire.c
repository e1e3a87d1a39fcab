/* SPDX-License-Identifier: Apache-2.0 */
/* Input: an answer of a process that parses files. An accepted answer lies within its own text, and
 * is the same after encoding it again. */
#include <stdlib.h>
#include "common/names/program/programwire.h"
#include "tests/fuzz/names_hold.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t wire[PROGRAMWIRE_MAX];
	static struct programwire_answer answer, second;
	static struct names names, again;

	if (!programwire_take((struct span){ .data = data, .len = size }, &answer, &names))
		return 0;
	must(names.count <= NAMES_MAX && names.used <= size);
	names_hold(&names);
	if (answer.head.flags & PROGRAMWIRE_FACTS)
		must(strlen(answer.facts.name) == answer.facts.name_len &&
		     answer.facts.id_len <= sizeof(answer.facts.id) &&
		     fileid_is_sane(&answer.facts.file));
	if (answer.more.len) {
		static struct programwire_answer ahead;

		must(answer.more.len <= PROGRAMWIRE_MORE_MAX);
		if (programwire_find(answer.more, 7, &ahead, &again))
			names_hold(&again);
	}
	if (answer.head.flags & PROGRAMWIRE_BUILD)
		must(runtime_is_sane(&answer.build));

	const size_t n = programwire_put(&answer, &names, wire);

	must(n <= sizeof(wire) &&
	     programwire_take((struct span){ .data = wire, .len = n }, &second, &again));
	must(second.head.verdict == answer.head.verdict && second.head.bytes == answer.head.bytes &&
	     second.head.step == answer.head.step && again.count == names.count &&
	     again.used == names.used);
	for (unsigned i = 0; i < names.count; i++)
		must(str_eq(names.calls[i].name, again.calls[i].name) &&
		     str_eq(names.calls[i].source, again.calls[i].source) &&
		     names.calls[i].line == again.calls[i].line &&
		     names.calls[i].bare == again.calls[i].bare);
	return 0;
}
