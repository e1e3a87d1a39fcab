/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a byte that says which request was sent, and the answer of a process that reads perf maps
 * and jitdumps. An accepted answer lies within its own text, answers that request, and is the same
 * after encoding it again. */
#include <stdlib.h>
#include "common/names/jit/codewire.h"
#include "tests/fuzz/names_hold.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t wire[CODEWIRE_MAX];
	static struct codewire_answer answer, second;
	static struct names names, again;
	struct codewire_ask to = { .kind = CODEWIRE_FIND, .time_ns = 1000 };
	unsigned found = 0;

	if (!size)
		return 0;
	/* 0 to 32 addresses; or another request. */
	if (data[0] <= CODEWIRE_BATCH)
		to.count = data[0];
	else
		to = (struct codewire_ask){ .kind = data[0] & 1 ? CODEWIRE_READ : CODEWIRE_FLUSH,
					    .value = 1 << 20 };
	must(codewire_is_ask(&to, codewire_size(&to)));
	if (!codewire_take((struct span){ .data = data + 1, .len = size - 1 }, &to, &answer,
			   &names))
		return 0;
	must(names.used <= size && answer.head.read <= to.value + CODEFILE_CHUNK);
	must(answer.head.count == (answer.head.verdict ? 0 : to.count));
	for (unsigned i = 0; i < answer.head.count; i++) {
		const struct codefile_answer *a = &answer.results[i];

		found += a->found;
		must(a->since_ns <= to.time_ns && to.time_ns < a->until_ns);
	}
	must(found == names.count);
	names_hold(&names);

	const size_t n = codewire_put(&answer, &names, wire);

	must(n <= sizeof(wire) &&
	     codewire_take((struct span){ .data = wire, .len = n }, &to, &second, &again));
	must(second.head.verdict == answer.head.verdict && second.head.bytes == answer.head.bytes &&
	     again.count == names.count && again.used == names.used);
	for (unsigned i = 0; i < names.count; i++)
		must(str_eq(names.calls[i].name, again.calls[i].name) &&
		     str_eq(names.calls[i].source, again.calls[i].source) &&
		     names.calls[i].line == again.calls[i].line);
	return 0;
}
