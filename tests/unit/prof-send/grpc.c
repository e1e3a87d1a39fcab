/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/answer/grpc.h"

#include <criterion/criterion.h>
#include <string.h>

/* A Status with a RetryInfo, in base64: of 2.5 s, of -1 s, of 10^12 s. */
#define DELAY \
	"CAgaNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIAhCA" \
	"yrXuAQ"
#define DELAY_BELOW_0 "CAgaJwoWeC9nb29nbGUucnBjLlJldHJ5SW5mbxINCgsI////////////AQ"
#define DELAY_ENDLESS "CAgaIwoWeC9nb29nbGUucnBjLlJldHJ5SW5mbxIJCgcIgKCUpY0d"

Test(grpc, a_head_has_the_flag_and_the_length)
{
	uint8_t head[GRPC_HEAD];

	grpc_head(head, true, 0x01020304);
	cr_assert_eq(memcmp(head, "\1\1\2\3\4", 5), 0);
	grpc_head(head, false, 0);
	cr_assert_eq(memcmp(head, "\0\0\0\0\0", 5), 0);
}

static bool body_is(const char *bytes, size_t n, struct span *ret)
{
	return grpc_body((struct span){ .data = (const uint8_t *)bytes, .len = n }, ret);
}

Test(grpc, a_body_is_one_whole_message)
{
	struct span m;

	cr_assert(body_is("\0\0\0\0\2ab", 7, &m));
	cr_assert_eq(m.len, 2);
	cr_assert(body_is("\0\0\0\0\0", 5, &m));
	cr_assert_eq(m.len, 0);
	cr_assert_not(body_is("", 0, &m));
	cr_assert_not(body_is("\0\0\0\0", 4, &m));
	cr_assert_not(body_is("\0\0\0\0\3ab", 7, &m));
	cr_assert_not(body_is("\0\0\0\0\1ab", 7, &m));
	cr_assert_not(body_is("\1\0\0\0\2ab", 7, &m), "compressed");
	cr_assert_not(body_is("\0\xff\xff\xff\xff"
			      "ab",
			      7, &m));
}

Test(grpc, a_status_has_a_code_and_a_message)
{
	struct grpc_status s;

	cr_assert(grpc_status_of(STR_LIT("14"), STR_LIT("not%20now%2"), STR_LIT(""), &s));
	cr_assert_eq(s.code, GRPC_UNAVAILABLE);
	cr_assert_str_eq(s.message, "not now%2");
	cr_assert_not(s.has_delay);
	cr_assert(grpc_status_of(STR_LIT("999"), STR_LIT("%00"), STR_LIT(""), &s));
	cr_assert_str_eq(s.message, "?");
	cr_assert_str_eq(grpc_code_name(s.code), "an unknown code");
	cr_assert_not(grpc_status_of(STR_LIT(""), STR_LIT(""), STR_LIT(""), &s));
	cr_assert_not(grpc_status_of(STR_LIT("1x"), STR_LIT(""), STR_LIT(""), &s));
	cr_assert_not(grpc_status_of(STR_LIT("-1"), STR_LIT(""), STR_LIT(""), &s));
	cr_assert_not(grpc_status_of(STR_LIT("1000"), STR_LIT(""), STR_LIT(""), &s));
}

Test(grpc, a_retry_info_is_found_with_and_without_padding)
{
	struct grpc_status s;

	cr_assert(grpc_status_of(STR_LIT("8"), STR_LIT(""), STR_LIT(DELAY), &s));
	cr_assert(s.has_delay);
	cr_assert_eq(s.delay_ms, 2500);
	cr_assert(grpc_status_of(STR_LIT("8"), STR_LIT(""), STR_LIT(DELAY "=="), &s));
	cr_assert(s.has_delay);
}

Test(grpc, odd_delays_are_bounded)
{
	struct grpc_status s;

	cr_assert(grpc_status_of(STR_LIT("8"), STR_LIT(""), STR_LIT(DELAY_BELOW_0), &s));
	cr_assert(s.has_delay);
	cr_assert_eq(s.delay_ms, 0);
	cr_assert(grpc_status_of(STR_LIT("8"), STR_LIT(""), STR_LIT(DELAY_ENDLESS), &s));
	cr_assert(s.has_delay);
	cr_assert_eq(s.delay_ms, 3600000);
}

Test(grpc, broken_details_are_ignored)
{
	static const char *const broken[] = { "!", "CAga", "////", "=", "CAgaMA" };
	struct grpc_status s;

	for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
		cr_assert(grpc_status_of(STR_LIT("8"), STR_LIT(""), str_from(broken[i]), &s));
		cr_assert_not(s.has_delay, "%s", broken[i]);
	}
}

Test(grpc, a_status_of_http_stands_for_a_missing_one)
{
	cr_assert_eq(grpc_code_of_http(400), GRPC_INTERNAL);
	cr_assert_eq(grpc_code_of_http(401), GRPC_UNAUTHENTICATED);
	cr_assert_eq(grpc_code_of_http(403), GRPC_PERMISSION_DENIED);
	cr_assert_eq(grpc_code_of_http(404), GRPC_UNIMPLEMENTED);
	cr_assert_eq(grpc_code_of_http(429), GRPC_UNAVAILABLE);
	cr_assert_eq(grpc_code_of_http(503), GRPC_UNAVAILABLE);
	cr_assert_eq(grpc_code_of_http(200), GRPC_UNKNOWN);
	cr_assert_eq(grpc_code_of_http(500), GRPC_UNKNOWN);
}
