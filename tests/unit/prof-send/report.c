/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/report.h"

#include <criterion/criterion.h>
#include <string.h>

static const char *print(const struct queue_counts *c)
{
	static char text[512];
	struct buf b = BUF_INIT(0);

	cr_assert_eq(report_print(&b, "http://h:1", c), 0);
	cr_assert_lt(b.len, sizeof(text));
	memcpy(text, b.data, b.len);
	text[b.len] = '\0';
	buf_done(&b);
	return text;
}

Test(report, a_line_has_only_what_happened)
{
	const struct queue_counts good = { .taken = 1, .delivered = 1, .samples = 5 };
	const struct queue_counts bad = { .taken = 9,
					  .delivered = 4,
					  .partial = 1,
					  .rejected = 2,
					  .lost = { [QUEUE_FULL] = 1, [QUEUE_REFUSED] = 2 },
					  .lost_samples = 30,
					  .kept = 2 };

	cr_assert_str_eq(print(&good), "http://h:1: 1 request, 1 delivered with 5 samples");
	cr_assert_str_eq(print(&bad),
			 "http://h:1: 9 requests, 4 delivered, 1 of them in part (2 profiles "
			 "rejected), 1 dropped from the full queue, 2 refused by the receiver "
			 "(30 samples lost), 2 kept in the spool");
	cr_assert(report_is_good(&good));
	cr_assert_not(report_is_good(&bad));
	cr_assert(report_is_good(&(struct queue_counts){ .taken = 0 }));
	cr_assert_not(report_is_good(
		&(struct queue_counts){ .taken = 1, .delivered = 1, .partial = 1, .rejected = 1 }));
}
