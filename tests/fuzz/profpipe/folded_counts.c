/* SPDX-License-Identifier: Apache-2.0 */
/* Input: folded stacks from prof-export, and, if long enough, a check of prof-bpf. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "common/status/check.h"
#include "tools/profpipe/doctor/folded_counts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct folded_counts t = { 0 };
	struct check c = { .magic = 0 };
	static FILE *nowhere;

	folded_counts_add(&t, (const char *)data, size);
	assert(t.complete <= t.samples && t.kernel <= t.samples && t.user_named <= t.samples);
	assert(t.kernel_named <= t.kernel);

	/* Prints the texts of any check. */
	memcpy(&c, data, size < sizeof(c) ? size : sizeof(c));
	c.magic = CHECK_MAGIC;
	c.verdict %= CHECK_VERDICTS + 1;
	if (!nowhere)
		nowhere = fopen("/dev/null", "w");
	if (nowhere && check_valid(&c))
		check_print(nowhere, &c);
	return 0;
}
