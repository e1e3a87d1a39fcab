/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/intake/frames.h"

#include <criterion/criterion.h>
#include <stdio.h>

/* Feeds the bytes in pieces of this size, and records the results. */
static const char *fed(const char *bytes, size_t n, size_t piece, bool *ret_end)
{
	static char text[256];
	struct frames f = { .max = 16 };
	size_t at = 0;
	int r;

	text[0] = '\0';
	for (size_t i = 0; i < n; i += piece) {
		struct span in = { .data = (const uint8_t *)bytes + i,
				   .len = n - i < piece ? n - i : piece };
		struct span one;

		while ((r = frames_next(&f, &in, &one)) != FRAMES_MORE)
			at += (size_t)snprintf(text + at, sizeof(text) - at, "[%.*s]",
					       r ? 1 : (int)one.len,
					       r ? "!" : (const char *)one.data);
		cr_assert_eq(in.len, 0);
	}
	*ret_end = frames_at_end(&f);
	frames_done(&f);
	return text;
}

Test(frames, requests_come_whole_in_any_pieces)
{
	static const char bytes[] = "\0\0\0\3abc\0\0\0\0\0\0\0\1d";
	bool end;

	for (size_t piece = 1; piece < sizeof(bytes); piece++) {
		cr_assert_str_eq(fed(bytes, sizeof(bytes) - 1, piece, &end), "[abc][][d]");
		cr_assert(end);
		(void)fed(bytes, sizeof(bytes) - 2, piece, &end);
		cr_assert_not(end);
	}
	(void)fed(bytes, 3, 1, &end);
	cr_assert_not(end, "a head that is cut");
}

Test(frames, a_request_beyond_the_limit_is_skipped)
{
	static const char bytes[] = "\0\0\0\1a\0\0\0\x11xxxxxxxxxxxxxxxxx\0\0\0\1b";
	bool end;

	for (size_t piece = 1; piece < sizeof(bytes); piece++) {
		cr_assert_str_eq(fed(bytes, sizeof(bytes) - 1, piece, &end), "[a][!][b]");
		cr_assert(end);
	}
}
