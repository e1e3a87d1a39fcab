/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/command/cmdline.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "common/base/command/exits.h"
#include "common/base/command/log.h"

/* The text written to fd while it is captured. */
struct caught {
	int fd, saved, pipe[2];
	char text[2048];
};

static void catch_begin(struct caught *c, int fd)
{
	fflush(stdout);
	c->fd = fd;
	c->saved = dup(fd);
	cr_assert_eq(pipe(c->pipe), 0);
	dup2(c->pipe[1], fd);
}

static const char *catch_end(struct caught *c)
{
	fflush(stdout);
	dup2(c->saved, c->fd);
	close(c->saved);
	close(c->pipe[1]);
	const ssize_t n = read(c->pipe[0], c->text, sizeof(c->text) - 1);

	cr_assert(n >= 0);
	c->text[n] = '\0';
	close(c->pipe[0]);
	return c->text;
}

static const struct option longs[] = {
	{ "rate", required_argument, NULL, 'r' },
	{ "quick", no_argument, NULL, 'q' },
	{ "place", required_argument, NULL, 1 },
	CMDLINE_OPTIONS,
	{ 0 },
};

static struct cmdline cmdline_of(char **argv)
{
	struct cmdline c = { .tool = "prof",
			     .usage = "usage: prof\n",
			     .shorts = ":r:qvh",
			     .longs = longs,
			     .argv = argv };

	while (argv[c.argc])
		c.argc++;
	log_init("prof", LOG_WARNING);
	return c;
}

#define LINE(...) cmdline_of((char *[]){ (char[]){ "prof" }, __VA_ARGS__ __VA_OPT__(, ) NULL })
#define WORD(text) ((char[]){ text })

Test(cmdline, options_come_with_their_long_names_and_values)
{
	struct cmdline c = LINE(WORD("-r"), WORD("9"), WORD("file"), WORD("--place=x"), WORD("-q"));

	cr_assert_eq(cmdline_next(&c), 'r');
	cr_assert_str_eq(c.option, "rate");
	cr_assert_str_eq(c.value, "9");
	cr_assert_eq(cmdline_next(&c), 1);
	cr_assert_str_eq(c.option, "place");
	cr_assert_str_eq(c.value, "x");
	cr_assert_eq(cmdline_next(&c), 'q');
	cr_assert_null(c.value);
	cr_assert_eq(cmdline_next(&c), CMDLINE_END);
	cr_assert_str_eq(c.argv[optind], "file");
	cr_assert_eq(optind + 1, c.argc);
}

Test(cmdline, a_second_command_line_is_read_from_its_beginning)
{
	struct cmdline first = LINE(WORD("-q"), WORD("-q")), second = LINE(WORD("-q"));

	while (cmdline_next(&first) != CMDLINE_END)
		;
	cr_assert_eq(cmdline_next(&second), 'q');
	cr_assert_eq(cmdline_next(&second), CMDLINE_END);
}

Test(cmdline, help_and_version_are_printed_on_standard_output)
{
	struct cmdline help = LINE(WORD("-h")), version = LINE(WORD("--version"));
	struct caught out;

	catch_begin(&out, STDOUT_FILENO);
	const int a = cmdline_next(&help);

	cr_assert_str_eq(catch_end(&out), "usage: prof\n");
	cr_assert_eq(a, CMDLINE_EXIT);
	cr_assert_eq(help.status, EXITS_DONE);
	catch_begin(&out, STDOUT_FILENO);
	const int b = cmdline_next(&version);

	cr_assert_str_eq(catch_end(&out), "prof " PROFPIPE_VERSION "\n");
	cr_assert_eq(b, CMDLINE_EXIT);
	cr_assert_eq(version.status, EXITS_DONE);
}

Test(cmdline, verbose_lets_the_log_say_more)
{
	struct cmdline c = LINE(WORD("-v"));
	struct caught said;

	cr_assert_eq(cmdline_next(&c), CMDLINE_END);
	cr_assert(c.verbose);
	catch_begin(&said, STDERR_FILENO);
	log_info("here");
	cr_assert_str_eq(catch_end(&said), "prof: info: here\n");
}

static void expect_refused(struct cmdline c, const char *line)
{
	struct caught said;

	catch_begin(&said, STDERR_FILENO);
	const int r = cmdline_next(&c);

	cr_assert_str_eq(catch_end(&said), line);
	cr_assert_eq(r, CMDLINE_EXIT);
	cr_assert_eq(c.status, EXITS_USAGE);
}

Test(cmdline, unknown_options_are_refused_in_one_line)
{
	expect_refused(LINE(WORD("--bogus=3")),
		       "prof: error: --bogus=3: unknown option; see `prof --help`\n");
	expect_refused(LINE(WORD("-Zq")), "prof: error: -Z: unknown option; see `prof --help`\n");
	expect_refused(LINE(WORD("-r")),
		       "prof: error: --rate: its value is missing; see `prof --help`\n");
	expect_refused(LINE(WORD("--place")),
		       "prof: error: --place: its value is missing; see `prof --help`\n");
	expect_refused(LINE(WORD("--quick=1")),
		       "prof: error: --quick: takes no value; see `prof --help`\n");
	expect_refused(LINE(WORD("--\033[2J")),
		       "prof: error: --\\x1b[2J: unknown option; see `prof --help`\n");
}

static struct cmdline valued(const char *value)
{
	log_init("prof", LOG_WARNING);
	return (struct cmdline){ .tool = "prof", .option = "rate", .value = value };
}

static void expect_line(struct caught *said, int r, const char *value, const char *why)
{
	char line[512];

	snprintf(line, sizeof(line), "prof: error: --rate: %s: %s\n", *value ? value : "\"\"", why);
	cr_assert_str_eq(catch_end(said), line);
	cr_assert_eq(r, EXITS_USAGE);
}

Test(cmdline, numbers_are_decimal_digits_in_their_range)
{
	static const struct {
		const char *value, *why;
	} bad[] = {
		{ "", "not a number; give a whole number from 1 to 10" },
		{ "x", "not a number; give a whole number from 1 to 10" },
		{ "-5", "not a number; give a whole number from 1 to 10" },
		{ " 5", "not a number; give a whole number from 1 to 10" },
		{ "5s", "not a number; give a whole number from 1 to 10" },
		{ "0x5", "not a number; give a whole number from 1 to 10" },
		{ "0", "out of range; give a whole number from 1 to 10" },
		{ "11", "out of range; give a whole number from 1 to 10" },
		{ "18446744073709551621", "out of range; give a whole number from 1 to 10" },
	};
	struct cmdline c = valued("10");
	uint64_t n = 0;

	cr_assert_eq(cmdline_number(&c, 1, 10, &n), EXITS_GO_ON);
	cr_assert_eq(n, 10);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct caught said;

		c = valued(bad[i].value);
		catch_begin(&said, STDERR_FILENO);
		expect_line(&said, cmdline_number(&c, 1, 10, &n), bad[i].value, bad[i].why);
		cr_assert_eq(n, 10);
	}
}

Test(cmdline, processes_and_descriptors_are_numbers_of_their_kind)
{
	struct cmdline pid = valued("4194304"), fd = valued("0");
	struct caught said;
	uint32_t n = 0;
	int f = -1;

	cr_assert_eq(cmdline_pid(&pid, &n), EXITS_GO_ON);
	cr_assert_eq(n, 4194304);
	cr_assert_eq(cmdline_fd(&fd, &f), EXITS_GO_ON);
	cr_assert_eq(f, 0);
	pid.value = "0";
	catch_begin(&said, STDERR_FILENO);
	expect_line(&said, cmdline_pid(&pid, &n), "0",
		    "out of range; give a whole number from 1 to 4194304");
	fd.value = "2147483648";
	catch_begin(&said, STDERR_FILENO);
	expect_line(&said, cmdline_fd(&fd, &f), fd.value,
		    "out of range; give a whole number from 0 to 2147483647");
	cr_assert(n == 4194304 && f == 0);
}

Test(cmdline, sizes_have_units_of_1024)
{
	static const struct {
		const char *value;
		uint64_t bytes;
	} good[] = { { "0", 0 },
		     { "134217728", 128 << 20 },
		     { "128M", 128 << 20 },
		     { "128m", 128 << 20 },
		     { "1GiB", 1 << 30 },
		     { "4KB", 4096 },
		     { "16777215G", 16777215ull << 30 } };
	static const char *const bad[] = { "",	 "M",	"-1M",	"1.5G", "128 M",
					   "1T", "1Mi", "1MBx", "0x10" };
	struct caught said;
	uint64_t n = 1;
	struct cmdline c;

	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		c = valued(good[i].value);
		cr_assert_eq(cmdline_size(&c, 0, UINT64_MAX - 1, &n), EXITS_GO_ON, "%s", c.value);
		cr_assert_eq(n, good[i].bytes, "%s", c.value);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		c = valued(bad[i]);
		catch_begin(&said, STDERR_FILENO);
		expect_line(&said, cmdline_size(&c, 1000, 5 << 20, &n), bad[i],
			    "not a size; give a size from 1000 to 5M");
	}
	static const char *const out[] = { "999", "2048G", "99999999999999999999", "99999999999G" };

	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
		c = valued(out[i]);
		catch_begin(&said, STDERR_FILENO);
		expect_line(&said, cmdline_size(&c, 1000, 1ull << 40, &n), out[i],
			    "out of range; give a size from 1000 to 1024G");
	}
}

Test(cmdline, modes_are_octal)
{
	static const char *const bad[] = {
		"", "8", "1000", "u=rw", "-1", "0x1", "6 0", "777777777"
	};
	struct cmdline c = valued("0640");
	struct caught said;
	unsigned mode = 0;

	cr_assert_eq(cmdline_mode(&c, &mode), EXITS_GO_ON);
	cr_assert_eq(mode, 0640);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		c = valued(bad[i]);
		catch_begin(&said, STDERR_FILENO);
		expect_line(&said, cmdline_mode(&c, &mode), bad[i],
			    "not a mode; give one to three octal digits, as 640");
	}
}

Test(cmdline, durations_are_seconds_above_0)
{
	static const char *const bad[] = { "",	"-1", "nan", "inf",  "5x",  "5ms",
					   "m", " 5", "+5",  "0x10", "1..5" };
	static const char *const beyond[] = { "0", "1e10", "99999999999999" };
	static const char *const minutes[] = { "120", "120s", "2m", "1.2e2" };
	struct cmdline c = valued("0.25");
	struct caught said;
	double d = 0;

	cr_assert_eq(cmdline_seconds(&c, &d), EXITS_GO_ON);
	cr_assert(d > 0.24 && d < 0.26);
	for (size_t i = 0; i < sizeof(minutes) / sizeof(minutes[0]); i++) {
		c = valued(minutes[i]);
		cr_assert_eq(cmdline_seconds(&c, &d), EXITS_GO_ON);
		cr_assert(d > 119.9 && d < 120.1);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		c = valued(bad[i]);
		catch_begin(&said, STDERR_FILENO);
		expect_line(&said, cmdline_seconds(&c, &d), bad[i],
			    "not a duration; give seconds above 0, as 90, 1.5 or 2m");
	}
	for (size_t i = 0; i < sizeof(beyond) / sizeof(beyond[0]); i++) {
		c = valued(beyond[i]);
		catch_begin(&said, STDERR_FILENO);
		expect_line(&said, cmdline_seconds(&c, &d), beyond[i],
			    "out of range; give seconds above 0, as 90, 1.5 or 2m");
	}
}

Test(cmdline, a_value_of_a_file_is_refused_at_its_place)
{
	struct cmdline c = valued("x");
	struct caught said;
	uint64_t n;

	c.place = "a.conf:7";
	catch_begin(&said, STDERR_FILENO);
	cr_assert_eq(cmdline_number(&c, 1, 9, &n), EXITS_USAGE);
	cr_assert_str_eq(catch_end(&said), "prof: error: a.conf:7: rate: x: not a number; "
					   "give a whole number from 1 to 9\n");
}

Test(cmdline, words_are_found_or_all_of_them_are_named)
{
	static const char *const words[] = { "one", "two", "three" };
	struct cmdline c = valued("two");
	struct caught said;
	size_t at = 9;

	cr_assert_eq(cmdline_word(&c, words, 3, &at), EXITS_GO_ON);
	cr_assert_eq(at, 1);
	c = valued("four");
	catch_begin(&said, STDERR_FILENO);
	expect_line(&said, cmdline_word(&c, words, 3, &at), "four",
		    "unknown; give one, two or three");
	cr_assert_eq(at, 1);
}

Test(cmdline, a_path_is_given_once)
{
	struct cmdline c = valued("a");
	const char *path = NULL;
	struct caught said;

	cr_assert_eq(cmdline_path(&c, &path), EXITS_GO_ON);
	cr_assert_str_eq(path, "a");
	c = valued("b");
	catch_begin(&said, STDERR_FILENO);
	expect_line(&said, cmdline_path(&c, &path), "b",
		    "is the second one; give this option once");
	cr_assert_str_eq(path, "a");
}

Test(cmdline, nothing_is_no_path)
{
	struct cmdline c = valued("");
	const char *path = NULL;
	struct caught said;

	catch_begin(&said, STDERR_FILENO);
	expect_line(&said, cmdline_path(&c, &path), "", "is not a path; name a file or a folder");
	cr_assert_null(path);
}
