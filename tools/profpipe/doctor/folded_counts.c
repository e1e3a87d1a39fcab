/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/doctor/folded_counts.h"

#include <stdbool.h>
#include <string.h>
#include "common/base/bytes/str.h"
#include "common/base/text/decimal.h"

#define COUNT_DIGITS 12 /* longest count that prof-export writes */

static void count_line(const char *line, size_t n, struct folded_counts *t)
{
	const char *blank = memrchr(line, ' ', n);
	bool truncated = false, kernel = false, kernel_named = false, user_named = false;
	uint64_t count;

	if (!blank)
		return;
	const size_t digits = (size_t)(line + n - blank - 1);

	if (!digits || digits > COUNT_DIGITS || decimal_read(blank + 1, digits, &count) < digits)
		return;
	/* The process name comes before the first frame. */
	const char *at = memchr(line, ';', (size_t)(blank - line));

	while (at) {
		struct str frame = { .data = at + 1 };

		at = memchr(frame.data, ';', (size_t)(blank - frame.data));
		frame.len = (uint32_t)((at ? at : blank) - frame.data);
		const bool in_kernel = str_ends(frame, "_[k]"),
			   named = frame.len && frame.data[0] != '[';

		truncated |= str_starts(frame, "[truncated: ");
		kernel |= in_kernel || str_starts(frame, "[kernel+0x");
		kernel_named |= in_kernel && named;
		user_named |= !in_kernel && named;
	}
	t->samples += count;
	t->complete += truncated ? 0 : count;
	t->kernel += kernel ? count : 0;
	t->kernel_named += kernel_named ? count : 0;
	t->user_named += user_named ? count : 0;
}

void folded_counts_add(struct folded_counts *t, const char *text, size_t n)
{
	while (n) {
		const char *end = memchr(text, '\n', n);
		const size_t len = end ? (size_t)(end - text) : n;

		count_line(text, len, t);
		text += len + (end != NULL);
		n -= len + (end != NULL);
	}
}
