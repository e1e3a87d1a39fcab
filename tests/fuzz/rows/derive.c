/* SPDX-License-Identifier: Apache-2.0 */
/* Input: the code of a function. The first byte selects how to read it, the rest are
 * instructions. */
#include <stdlib.h>
#include <string.h>
#include "common/rows/x86/flow/flow.h"
#include "common/rows/x86/linear_code.h"
#include "tests/fuzz/rows_hold.h"

#define MAX_CODE 8192u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Jump tables are in the code. */
struct bytes {
	const uint8_t *data;
	uint32_t n;
};

static bool read_code(void *ctx, uint64_t address, void *into, uint32_t n)
{
	const struct bytes *b = ctx;

	if (address < 0x1000 || address - 0x1000 > b->n || n > b->n - (address - 0x1000))
		return false;
	memcpy(into, b->data + (address - 0x1000), n);
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct flow *f; /* of all runs, as for all functions of a file */
	struct flow_result result;
	int r;

	if (!size || size > MAX_CODE)
		return 0;
	must(f || flow_new(MAX_CODE, &f) == 0);

	/* Memory of the exact size, so that a sanitizer sees a read beyond it. */
	uint32_t n = (uint32_t)size - 1;
	uint8_t *code = malloc(n ? n : 1);

	must(code);
	memcpy(code, data + 1, n);
	struct bytes bytes = { code, n };
	int64_t call = 0;
	/* Of one run: it computes at most two fixed points, and reads tables. */
	uint64_t most = 256ull * n + (1 << 22), before = flow_work(f);

	flow_set_reader(f, &(struct flow_reader){ .read = read_code, .ctx = &bytes });
	must(linear_code_padding(code, n) <= n);
	must(linear_code_entry(code, n, &call) <= n);
	must(linear_code_past(code, n) <= n);
	(void)linear_code_argument(code, n, 0x1000);
	const struct flow_code c = { code, n, (uint32_t)((uint64_t)n * (data[0] >> 6) / 4), n,
				     0x1000 };

	r = flow_run(f, &c, data[0] & 63, &result);
	must(r == 0 || r == FLOW_TANGLED || r == FLOW_CONTRADICTS || r == FLOW_MISALIGNED);
	must(flow_work(f) - before <= most);
	if (r)
		r = flow_again(f, &result);
	must(r == 0 || r == FLOW_TANGLED || r == FLOW_CONTRADICTS || r == FLOW_MISALIGNED);
	must(flow_work(f) - before <= 13 * most);
	for (uint32_t at = 0; r == 0 && at < n; at++) {
		struct unwind_rule rule;
		uint32_t len;
		bool known;

		if (!flow_rule(f, at, &len, &known, &rule))
			continue;
		must(len > 0 && len <= 15);
		must(!known || unwind_rule_valid(&rule));
	}
	free(code);
	return 0;
}
