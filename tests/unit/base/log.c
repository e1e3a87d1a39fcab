/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/command/log.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include "common/base/bytes/buf.h"

static void expect(const char *in, size_t len, size_t max, const char *out)
{
	struct buf b = BUF_INIT(0);

	cr_assert_eq(log_escape(&b, (struct str){ .data = in, .len = (uint32_t)len }, max), 0);
	cr_assert_eq(b.len, strlen(out), "%.*s for %s", (int)b.len, (const char *)b.data, out);
	cr_assert(!b.len || memcmp(b.data, out, b.len) == 0, "%.*s for %s", (int)b.len,
		  (const char *)b.data, out);
	buf_done(&b);
}

#define EXPECT(in, out) expect(in, sizeof(in) - 1, 1000, out)

Test(log, printable_text_is_left_alone)
{
	EXPECT("plain text 1;2", "plain text 1;2");
	EXPECT("größe 日本 🦀", "größe 日本 🦀");
	EXPECT("", "");
}

Test(log, control_characters_are_escaped)
{
	EXPECT("a\033[2Jb", "a\\x1b[2Jb");
	EXPECT("line\nnext\ttab\r\177", "line\\x0anext\\x09tab\\x0d\\x7f");
	EXPECT("nul\0here", "nul\\x00here");
	EXPECT("c1 \xc2\x9b", "c1 \\xc2\\x9b");
}

Test(log, backslash_is_doubled)
{
	EXPECT("a\\x1b", "a\\\\x1b");
}

Test(log, escaping_again_keeps_existing_escapes)
{
	struct buf b = BUF_INIT(0);

	cr_assert_eq(log_escape_again(&b, STR_LIT("App\\Foo \\x1b \033"), 100), 0);
	cr_assert(str_eq((struct str){ .data = (const char *)b.data, .len = (uint32_t)b.len },
			 STR_LIT("App\\Foo \\x1b \\x1b")));
	buf_done(&b);
}

Test(log, text_that_turns_or_hides_itself_is_escaped)
{
	EXPECT("\u202e", "\\xe2\\x80\\xae");
	EXPECT("\u2066x\u2069", "\\xe2\\x81\\xa6x\\xe2\\x81\\xa9");
	EXPECT("\u200b", "\\xe2\\x80\\x8b");
	EXPECT("\ufeff", "\\xef\\xbb\\xbf");
	EXPECT("\U000e0041", "\\xf3\\xa0\\x81\\x81");
}

Test(log, broken_utf8_is_escaped_byte_by_byte)
{
	EXPECT("\xff\xfe", "\\xff\\xfe");
	EXPECT("\xc3", "\\xc3");
	EXPECT("\xc0\x80", "\\xc0\\x80");
	EXPECT("\xe0\x80\xaf", "\\xe0\\x80\\xaf");
	EXPECT("\xed\xa0\x80", "\\xed\\xa0\\x80");
	EXPECT("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80");
	EXPECT("\xf0\x9f\xa6", "\\xf0\\x9f\\xa6");
	EXPECT("\xc3(", "\\xc3(");
	EXPECT("\xef\xbf\xbf", "\\xef\\xbf\\xbf");
}

Test(log, long_text_is_cut_between_characters)
{
	expect("abcdef", 6, 3, "abc…");
	expect("ab\xc3\xa4z", 5, 3, "ab…");
	expect("ab\xf0\x9f\xa6\x80", 6, 5, "ab…");
	expect("ab\xf0\x9f\xa6\x80", 6, 6, "ab🦀");
	expect("\x80\x80\x80\x80\x80\x80", 6, 4, "\\x80\\x80\\x80\\x80…");
	expect("xyz", 3, 0, "…");
}

Test(log, ceiling_of_the_buffer_is_handed_up)
{
	struct buf b = BUF_INIT(3);

	cr_assert_eq(log_escape(&b, STR_LIT("abcdef"), 100), -ENOBUFS);
	buf_done(&b);
}

static size_t logged(char *text, size_t size, enum log_level most, enum log_level level,
		     const char *arg)
{
	int p[2];
	const int saved = dup(STDERR_FILENO);

	cr_assert_eq(pipe(p), 0);
	dup2(p[1], STDERR_FILENO);
	log_init("prof-test", most);
	errno = ERANGE;
	log_print(level, "%s", arg);
	cr_assert_eq(errno, ERANGE);
	dup2(saved, STDERR_FILENO);
	close(p[1]);
	const ssize_t n = read(p[0], text, size);

	close(p[0]);
	close(saved);
	return n < 0 ? 0 : (size_t)n;
}

Test(log, line_carries_tool_and_level_and_no_control_character)
{
	char text[200];
	const size_t n = logged(text, sizeof(text), LOG_WARNING, LOG_WARNING, "a\nb \\x1b");

	cr_assert_eq(n, strlen("prof-test: warning: a\\x0ab \\x1b\n"));
	cr_assert_eq(memcmp(text, "prof-test: warning: a\\x0ab \\x1b\n", n), 0);
}

Test(log, quieter_levels_are_not_printed)
{
	char text[200];

	cr_assert_eq(logged(text, sizeof(text), LOG_WARNING, LOG_INFO, "x"), 0);
	cr_assert_gt(logged(text, sizeof(text), LOG_INFO, LOG_INFO, "x"), 0);
}

Test(log, overlong_line_is_cut_in_its_middle_and_keeps_its_reason)
{
	static const char reason[] = "y: is no file; name one\n";
	char text[8192], arg[6000], more[40000];

	memset(arg, 'y', sizeof(arg));
	strcpy(arg + sizeof(arg) - sizeof(reason), reason);
	arg[sizeof(arg) - 2] = '\0';
	size_t n = logged(text, sizeof(text) - 1, LOG_WARNING, LOG_ERROR, arg);

	text[n] = '\0';
	cr_assert_lt(n, 2200);
	cr_assert_not_null(strstr(text, "y…y"));
	cr_assert_str_eq(text + n - strlen(reason), reason);
	/* Not within a character; and a line of any length ends. */
	for (size_t i = 0; i + 1 < sizeof(more); i += 2)
		memcpy(more + i, "ä", 2);
	more[sizeof(more) - 2] = '\0';
	n = logged(text, sizeof(text) - 1, LOG_WARNING, LOG_ERROR, more);
	text[n] = '\0';
	cr_assert(n > 2000 && n < 2300);
	cr_assert_not_null(strstr(text, "ä…ä"));
}
