/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/answer/answer.h"

#include <criterion/criterion.h>
#include <string.h>

#define NOW 1795251600 /* Sat, 21 Nov 2026 09:00:00 GMT */
/* ExportProfilesServiceResponse with 7 rejected profiles, "old"; the same with only a warning. */
static const uint8_t partial[] = { 10, 7, 8, 7, 18, 3, 'o', 'l', 'd' };
static const uint8_t warning[] = { 10, 5, 18, 3, 'o', 'l', 'd' };

static struct answer of(struct answer_reply reply)
{
	struct answer a;

	reply.now_s = NOW;
	answer_of(&reply, &a);
	return a;
}

#define HTTP(status, ...) of((struct answer_reply){ .http = (status), .whole = true, __VA_ARGS__ })
#define GRPC(code, ...) \
	of((struct answer_reply){ .grpc = true, \
				  .http = 200, \
				  .whole = true, \
				  .grpc_status = str_from(code), \
				  __VA_ARGS__ })

Test(answer, a_status_of_http_decides)
{
	static const unsigned again[] = { 429, 502, 503, 504 };
	static const unsigned refused[] = { 301, 400, 401, 403, 404, 408, 500, 501, 505 };

	cr_assert_eq(HTTP(200).verdict, ANSWER_DELIVERED);
	cr_assert_eq(HTTP(202).verdict, ANSWER_DELIVERED);
	for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++)
		cr_assert_eq(HTTP(again[i]).verdict, ANSWER_AGAIN);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		cr_assert_eq(HTTP(refused[i]).verdict, ANSWER_REFUSED);
	cr_assert_eq(HTTP(413).verdict, ANSWER_TOO_LARGE);
	cr_assert_str_eq(HTTP(413).why, "HTTP status 413");
}

Test(answer, no_reply_at_all_may_be_tried_again)
{
	const struct answer a = of((struct answer_reply){ .grpc = true, .failure = "no route" });

	cr_assert_eq(a.verdict, ANSWER_AGAIN);
	cr_assert_str_eq(a.why, "no route");
}

Test(answer, a_partial_success_is_delivered)
{
	struct answer a = HTTP(200, .body = { partial, sizeof(partial) });

	cr_assert_eq(a.verdict, ANSWER_DELIVERED);
	cr_assert(a.partial);
	cr_assert_eq(a.rejected, 7);
	cr_assert_str_eq(a.why, "the receiver rejected a part: old");
	a = HTTP(200, .body = { warning, sizeof(warning) });
	cr_assert(a.partial);
	cr_assert_eq(a.rejected, 0);
	a = HTTP(200, .body = { partial, sizeof(partial) - 1 });
	cr_assert_eq(a.verdict, ANSWER_DELIVERED, "a broken body changes nothing");
	cr_assert_not(a.partial);
}

Test(answer, retry_after_is_seconds_or_a_date)
{
	static const struct {
		const char *text;
		bool has;
		uint64_t ms;
	} cases[] = {
		{ "0", true, 0 },
		{ "7", true, 7000 },
		{ "99999999999999999999", true, 3600000 },
		{ "Sat, 21 Nov 2026 09:00:30 GMT", true, 30000 },
		{ "Sat, 21 Nov 2026 08:00:00 GMT", true, 0 },
		{ "Sat, 21 Nov 2099 08:00:00 GMT", true, 3600000 },
		{ "", false, 0 },
		{ "-1", false, 0 },
		{ "soon", false, 0 },
		{ "1.5", false, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct answer a = HTTP(503, .retry_after = str_from(cases[i].text));

		cr_assert_eq(a.has_delay, cases[i].has, "%s", cases[i].text);
		cr_assert_eq(a.delay_ms, cases[i].ms, "%s", cases[i].text);
	}
	cr_assert_not(HTTP(400, .retry_after = STR_LIT("7")).has_delay);
}

Test(answer, a_status_of_grpc_decides)
{
	static const char *const again[] = { "1", "4", "10", "11", "14", "15" };
	static const char *const refused[] = {
		"2", "3", "5", "6", "7", "8", "9", "12", "13", "16"
	};

	cr_assert_eq(GRPC("0").verdict, ANSWER_DELIVERED);
	for (size_t i = 0; i < sizeof(again) / sizeof(again[0]); i++)
		cr_assert_eq(GRPC(again[i]).verdict, ANSWER_AGAIN, "%s", again[i]);
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		cr_assert_eq(GRPC(refused[i]).verdict, ANSWER_REFUSED, "%s", refused[i]);
	cr_assert_str_eq(GRPC("7", .grpc_message = STR_LIT("go%20away")).why,
			 "PERMISSION_DENIED: go away");
}

Test(answer, a_reply_of_http_in_place_of_grpc_is_understood)
{
	struct answer a = of((struct answer_reply){
		.grpc = true, .http = 503, .whole = true, .retry_after = STR_LIT("2") });

	cr_assert_eq(a.verdict, ANSWER_AGAIN);
	cr_assert(a.has_delay);
	cr_assert_eq(a.delay_ms, 2000);
	a = of((struct answer_reply){ .grpc = true, .http = 413 });
	cr_assert_eq(a.verdict, ANSWER_TOO_LARGE);
	a = of((struct answer_reply){ .grpc = true, .http = 200 });
	cr_assert_eq(a.verdict, ANSWER_REFUSED);
	cr_assert_str_eq(a.why, "UNKNOWN: HTTP status 200 without a gRPC status");
	a = of((struct answer_reply){
		.grpc = true, .http = 200, .content_type = STR_LIT("text/html") });
	cr_assert_eq(a.verdict, ANSWER_REFUSED);
}

Test(answer, a_receiver_of_grpc_that_breaks_off_may_take_it_later)
{
	const struct answer a = of((struct answer_reply){
		.grpc = true, .http = 200, .content_type = STR_LIT("application/grpc+proto") });

	cr_assert_eq(a.verdict, ANSWER_AGAIN);
	cr_assert_str_eq(a.why, "UNAVAILABLE: HTTP status 200 without a gRPC status");
}

Test(answer, an_endless_reply_is_judged_by_what_was_known_before_it)
{
	struct answer_reply reply = { .http = 200, .endless = true };

	cr_assert_eq(of(reply).verdict, ANSWER_DELIVERED);
	reply.http = 503;
	cr_assert_eq(of(reply).verdict, ANSWER_AGAIN);
	reply = (struct answer_reply){ .grpc = true, .http = 200, .endless = true };
	cr_assert_eq(of(reply).verdict, ANSWER_REFUSED);
}
