/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a list of attributes. Pairs have keys and values no longer than the list, and each part of
 * the list is a pair, skipped, or nothing. */
#include "tests/fuzz/must.h"
#include "tools/prof-export/otlp/key_values.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str list = { .data = (const char *)data, .len = (uint32_t)size };
	uint32_t skipped = 0, pairs = 0, parts = 1;
	struct key_value pair;

	for (size_t i = 0; i < size; i++)
		parts += data[i] == ',';
	while (key_values_next(&list, &pair, &skipped)) {
		must(pair.key_len && pair.key_len <= KEY_VALUES_TEXT && pair.key_len <= size);
		must(pair.value_len && pair.value_len <= KEY_VALUES_TEXT && pair.value_len <= size);
		pairs++;
	}
	must(!list.len && pairs + skipped <= parts);
	return 0;
}
