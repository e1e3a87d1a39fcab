/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include "tools/profpipe/run/summary/delivery.h"

static struct delivery_sum made(uint64_t requests, uint64_t away, uint64_t slow)
{
	const struct status last = { .requests = requests,
				     .requests_taken = requests - away - slow,
				     .requests_lost = away + slow,
				     .requests_away = away,
				     .requests_samples = 10 * requests,
				     .requests_lost_samples = 10 * (away + slow) };
	struct delivery_sum s = { 0 };

	delivery_add(&s, &last);
	return s;
}

static bool says(const struct delivery *d, const char *what)
{
	struct buf b = BUF_INIT(0);

	cr_assert_eq(delivery_print(&b, d), 0);
	cr_assert_eq(buf_append(&b, "", 1), 0);
	const bool found = strstr((const char *)b.data, what);

	if (!found)
		fprintf(stderr, "%s\n", (const char *)b.data);
	buf_done(&b);
	return found;
}

Test(delivery, nothing_is_missing_if_every_endpoint_took_all)
{
	const struct delivery_sum export = made(5, 0, 0);
	struct delivery_sum send = { 0 };
	struct delivery d;

	delivery_add(&send,
		     &(struct status){ .requests = 10, .requests_taken = 10, .samples = 100 });
	delivery_settle(50, &export, &send, 2, 10, 0, &d);
	cr_assert_eq(delivery_missing(&d), 0);
	cr_assert(says(&d, "OTLP: 5 requests with 50 samples, to each of 2 endpoints; 10 delivered "
			   "with 100 samples"));
}

Test(delivery, a_killed_prof_send_leaves_requests_of_unknown_fate)
{
	const struct delivery_sum export = made(9, 1, 2);
	struct delivery_sum send = { 0 };
	struct delivery d;

	delivery_add(&send, &(struct status){ .requests = 3, .requests_taken = 1, .samples = 10 });
	delivery_add(&send, &(struct status){ .requests = 2,
					      .requests_taken = 1,
					      .requests_lost = 1,
					      .samples = 10 });
	delivery_settle(95, &export, &send, 1, 6, 0, &d);
	cr_assert_eq(d.unknown, 3);
	cr_assert_eq(d.delivered + delivery_missing(&d), 9);
	d.restarts = 1;
	cr_assert(says(
		&d, "2 delivered with 20 samples, 1 lost by prof-send, which says why, "
		    "1 dropped while there was no prof-send, 2 dropped because prof-send was "
		    "too slow, 3 with unknown outcome, because prof-send ended early (30 samples "
		    "dropped); 5 samples in no request; prof-send was started again 1 time"));
}

Test(delivery, a_spool_keeps_what_waits_and_may_bring_more_than_was_made)
{
	const struct delivery_sum export = made(4, 0, 0);
	struct delivery_sum send = { 0 };
	struct delivery d;

	delivery_add(&send, &(struct status){ .requests = 7, .requests_taken = 2 });
	delivery_settle(40, &export, &send, 1, 4, 5, &d);
	cr_assert_eq(d.kept, 5);
	cr_assert_eq(d.unknown, 0);
}

Test(delivery, endpoints_that_were_added_get_only_later_requests)
{
	const struct delivery_sum export = made(9, 0, 0);
	struct delivery_sum send = { 0 };
	struct delivery d;

	delivery_add(&send, &(struct status){ .requests = 4, .requests_taken = 4, .samples = 40 });
	delivery_add(&send,
		     &(struct status){ .requests = 10, .requests_taken = 10, .samples = 100 });
	delivery_settle(90, &export, &send, 2, 4 + 5 * 2, 0, &d);
	cr_assert_eq(delivery_missing(&d), 0);
	cr_assert_eq(d.wanted, 14);
	cr_assert(says(&d, "9 requests with 90 samples, to endpoints that changed; 14 delivered "
			   "with 140 samples"));
}
