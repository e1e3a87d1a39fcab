/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"

#include <criterion/criterion.h>

Test(span, a_text_begins_and_ends)
{
	const struct str s = STR_LIT("name.part"), none = { 0 };

	cr_assert(str_starts(s, "name") && str_starts(s, "name.part") && str_starts(s, ""));
	cr_assert_not(str_starts(s, "Name"));
	cr_assert_not(str_starts(s, "name.part."));
	cr_assert(str_ends(s, ".part") && str_ends(s, "name.part") && str_ends(s, ""));
	cr_assert_not(str_ends(s, ".Part"));
	cr_assert_not(str_ends(s, ".name.part"));
	cr_assert(str_starts(none, "") && str_ends(none, "") && str_ends_with(s, none));
	cr_assert_not(str_starts(none, "x"));
	cr_assert_not(str_ends(none, "x"));
	cr_assert(str_ends_with(s, STR_LIT("part")));
	/* A NUL is a byte as others. */
	cr_assert(str_ends_with(STR_LIT("a\0b"), STR_LIT("\0b")));
	cr_assert_not(str_ends(STR_LIT("ab\0"), "b"));
}

Test(span, a_text_is_cut_between_characters)
{
	const struct str s = STR_LIT("a\xc3\xa9z");

	cr_assert_eq(str_cut(s, 4).len, 4);
	cr_assert_eq(str_cut(s, 3).len, 3);
	cr_assert_eq(str_cut(s, 2).len, 1);
	cr_assert_eq(str_cut(s, 0).len, 0);
	/* No UTF-8 */
	cr_assert_eq(str_cut(STR_LIT("\x80\x80\x80\x80\x80"), 4).len, 4);
}

Test(span, a_path_has_a_base_name)
{
	cr_assert(str_eq(str_base_name(STR_LIT("/a/b")), STR_LIT("b")));
	cr_assert(str_eq(str_base_name(STR_LIT("b")), STR_LIT("b")));
	cr_assert(str_eq(str_base_name(STR_LIT("/a/")), STR_LIT("/a/")));
	cr_assert(str_eq(str_base_name((struct str){ 0 }), (struct str){ 0 }));
}

Test(span, bytes_are_taken_within_bounds)
{
	static const uint8_t bytes[] = { 1, 2, 3, 4 };
	struct span s = { .data = bytes, .len = sizeof(bytes) }, part;
	uint16_t v = 0;

	cr_assert_not(span_take(&s, 5, &part));
	cr_assert(span_take(&s, 1, &part));
	cr_assert(part.data == bytes && part.len == 1 && s.len == 3);
	cr_assert(span_read(&s, &v, sizeof(v)));
	cr_assert_eq(v, 0x0302);
	cr_assert_not(span_read(&s, &v, sizeof(v)));
	cr_assert_eq(s.len, 1);
	cr_assert(span_sub(s, 1, 0, &part) && part.len == 0);
	cr_assert_not(span_sub(s, 2, 0, &part));
	cr_assert_not(span_sub(s, 1, UINT64_MAX, &part));
}
