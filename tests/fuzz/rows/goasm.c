/* SPDX-License-Identifier: Apache-2.0 */
/* Input: an assembly function. The first byte is its role and the number of stack depths before the
 * code, two bytes each. Rows must cover it without gaps, and be valid for the walker. */
#include <stdlib.h>
#include <string.h>
#include "common/rows/x86/go/goasm.h"
#include "tests/fuzz/must.h"

#define MAX_DELTAS 15

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct goasm *a;
	struct goasm_curg curg = { .known = true, .tls = -8, .m = 48, .curg = 192 };
	struct goasm_delta deltas[MAX_DELTAS];
	const struct goasm_row *rows;
	uint32_t n, deltas_n = 0, at = 0;

	if (!size)
		return 0;
	must(a || goasm_new(&a) == 0);

	uint8_t head = data[0];

	data++;
	size--;
	for (; deltas_n < head >> 4 && size > 2; data += 2, size -= 2) {
		at += deltas_n ? data[0] : 0;
		deltas[deltas_n++] = (struct goasm_delta){ .at = at, .delta = (int8_t)data[1] * 8 };
	}

	/* Memory of the exact size, so that a sanitizer sees a read beyond it. */
	uint8_t *code = malloc(size ? size : 1);

	must(code);
	if (size)
		memcpy(code, data, size);

	int r = goasm_rows(a, code, (uint32_t)size, (uint64_t)size << (head & 31), deltas, deltas_n,
			   (enum goasm_role)(head & 3), &curg, &rows, &n);

	must(r == 0 || r == GOASM_GIVEN_UP);
	at = 0;
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		must(rows[i].at == at && rows[i].len);
		must(!rows[i].known || unwind_rule_valid(&rows[i].rule));
		at += rows[i].len;
	}
	must(r || at == size);
	free(code);
	return 0;
}
