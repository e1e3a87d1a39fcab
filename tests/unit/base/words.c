/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/command/words.h"

#include <criterion/criterion.h>

Test(words, a_command_line_holds_copies_and_ends_with_null)
{
	struct words w = WORDS_NONE;
	char word[] = "tool";

	words_add(&w, word);
	word[0] = 'x';
	for (int i = 0; i < 3000; i++)
		words_print(&w, "-%d", i);
	cr_assert_eq(words_end(&w), 0);
	cr_assert_str_eq(w.argv[0], "tool");
	cr_assert_str_eq(w.argv[3000], "-2999");
	cr_assert_null(w.argv[3001]);
	words_done(&w);
}

Test(words, none_is_an_empty_command_line)
{
	struct words w = WORDS_NONE;

	cr_assert_eq(words_end(&w), 0);
	cr_assert_null(w.argv[0]);
	words_done(&w);
}
