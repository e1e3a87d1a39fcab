/* SPDX-License-Identifier: Apache-2.0 */
#include "common/status/account.h"

#include <criterion/criterion.h>
#include <string.h>
#include "common/wire/msg.h"

static const char *share(uint64_t part, uint64_t whole)
{
	static char text[ACCOUNT_SHARE];

	account_share(text, part, whole);
	return text;
}

Test(account, only_a_complete_share_is_shown_as_100_percent)
{
	cr_assert_str_eq(share(99999, 100000), "99.99 %");
	cr_assert_str_eq(share(100000, 100000), "100.00 %");
	cr_assert_str_eq(share(8242, 10000), "82.42 %");
	cr_assert_str_eq(share(0, 7), "0.00 %");
	cr_assert_str_eq(share(0, 0), "0.00 %");
	cr_assert_str_eq(share(UINT64_MAX, UINT64_MAX), "100.00 %");
}

static struct str scope(const struct status *f)
{
	static struct buf b;

	buf_done(&b);
	b = (struct buf)BUF_INIT(0);
	cr_assert_eq(account_scope(&b, f), 0);
	return (struct str){ .data = (const char *)b.data, .len = (uint32_t)b.len };
}

Test(account, a_count_of_one_has_no_plural)
{
	struct status f = { .samples = 2, .complete = 1, .processes = 1, .threads = 1 };

	cr_assert(str_eq(scope(&f),
			 STR_LIT("of 1 process and 1 thread; 1 stack complete (50.00 %)")));
	f.processes = f.threads = f.complete = 2;
	cr_assert(str_eq(scope(&f),
			 STR_LIT("of 2 processes and 2 threads; 2 stacks complete (100.00 %)")));
	f.processes = 0;
	cr_assert(str_eq(scope(&f),
			 STR_LIT("of 0 processes and 2 threads; 2 stacks complete (100.00 %)")));
}

Test(account, only_a_run_without_losses_says_that_nothing_was_lost)
{
	struct status f = { .samples = 2, .complete = 2 };

	cr_assert_str_eq(account_loss(&f), "nothing was lost");
	f.unsampled_ns = 1;
	cr_assert_str_eq(account_loss(&f), "no sample that was taken was lost");
	f.unsampled_ns = 0;
	f.lost[LOST_SIDEBAND] = 49;
	cr_assert_str_eq(account_loss(&f), "no sample was lost");
	f.lost[LOST_RING_FULL] = 1;
	cr_assert_str_eq(account_loss(&f), "samples were lost");
	f = (struct status){ 0 };
	cr_assert_str_neq(account_loss(&f), "nothing was lost");
}

Test(account, lines_come_by_kind)
{
	struct status f = { .samples = 9 };
	struct account_line l[ACCOUNT_LINES];

	f.lost[LOST_SIDEBAND] = 49;
	f.lost[LOST_LIMIT] = 2;
	f.truncated[WALK_NO_ROWS] = 5;
	f.truncated[0] = 4;
	f.runtime_samples[0] = 500;
	f.runtime_truncated[0] = 50;
	f.runtime_unnamed[0] = 49; /* less than one in ten */
	cr_assert_eq(account_lines(&f, l), 4);
	cr_assert(l[0].kind == ACCOUNT_TRUNCATED && l[0].count == 5 &&
		  strcmp(l[0].word, "no-rows") == 0);
	cr_assert(l[1].kind == ACCOUNT_LOST && l[1].count == 2 && strcmp(l[1].word, "limit") == 0);
	cr_assert(l[2].kind == ACCOUNT_MISSED && l[2].count == 49 &&
		  strcmp(l[2].word, "sideband") == 0);
	cr_assert(l[3].kind == ACCOUNT_REMEDY && l[3].count == 50 &&
		  strcmp(l[3].word, "java") == 0);
	f.runtime_truncated[0] = 49;
	cr_assert_eq(account_lines(&f, l), 3);
	f.runtime_unnamed[0] = 50;
	cr_assert_eq(account_lines(&f, l), 4);
	cr_assert(l[3].kind == ACCOUNT_REMEDY && l[3].count == 50 &&
		  strcmp(l[3].what, "with functions that have no name") == 0);
}

/* The largest values of a status word fit. */
Test(account, everything_at_once_fits)
{
	struct account_line l[ACCOUNT_LINES];
	struct status f;

	memset(&f, 1, sizeof(f));
	cr_assert_leq(account_lines(&f, l), ACCOUNT_LINES);
}

Test(account, notes_are_of_memory_restarts_and_gaps)
{
	char notes[ACCOUNT_NOTES][ACCOUNT_NOTE];
	struct status f = { .samples = 9, .enough = (96 << 20) + 1 };

	cr_assert_eq(account_notes(&f, notes), 0);
	f.truncated[WALK_MEMORY_LIMIT] = 1;
	f.restarts[0] = 1;
	f.restarts[2] = 12;
	f.unsampled_ns = 3161000000;
	f.unsampled = 6263;
	cr_assert_eq(account_notes(&f, notes), 3);
	cr_assert_str_eq(
		notes[0],
		"no stack would have been truncated for lack of memory with --memory-limit 104M");
	cr_assert_str_eq(notes[1], "started again: prof-bpf 1, prof-symd 12");
	cr_assert_str_eq(notes[2],
			 "not sampled: 3.161 s in all while prof-bpf was away, some 6263 samples");
	f.skipped_fields = 2;
	cr_assert_eq(account_notes(&f, notes), 4);
	cr_assert_str_eq(notes[3],
			 "made by a newer version: 0 messages and 2 fields are unknown to "
			 "this one, and were skipped");
	f.left_out = 7;
	cr_assert_eq(account_notes(&f, notes), 5);
	cr_assert_str_eq(notes[3],
			 "left out: 7 samples of other sources than this event, which the formats "
			 "text and otlp show");
}

/* The longest texts that exist. */
Test(account, notes_fit)
{
	char notes[ACCOUNT_NOTES][ACCOUNT_NOTE];
	struct status f;

	memset(&f, 0xff, sizeof(f));
	cr_assert_eq(account_notes(&f, notes), ACCOUNT_NOTES);
	for (size_t i = 0; i < ACCOUNT_NOTES; i++)
		cr_assert_lt(strlen(notes[i]), ACCOUNT_NOTE - 1);
}

Test(account, runtimes_are_known_by_the_names_of_program_and_library)
{
	const struct {
		const char *path;
		bool program, library;
	} some[] = {
		{ "/usr/lib/jvm/java-17-openjdk-amd64/bin/java", true, false },
		{ "java", true, false },
		{ "/usr/bin/mono-sgen", true, false },
		{ "/usr/bin/pypy3.9", true, false },
		{ "/usr/lib/erlang/erts-13.1.5/bin/beam.smp", true, false },
		{ "/usr/bin/node", true, false },
		{ "/usr/bin/php8.2", true, false },
		{ "/usr/bin/nodejs", true, false },
		{ "/usr/bin/poly", true, false },
		{ "/usr/bin/javac", false, false },
		{ "/usr/bin/monodis", false, false },
		{ "/opt/java/prog", false, false },
		{ "/opt/libjvm.so/prog", false, false },
		{ "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so", false, true },
		{ "/usr/lib/libmonosgen-2.0.so.1.0.0", false, true },
		{ "/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2.1.0", false, true },
		{ "/usr/lib/x86_64-linux-gnu/libjvmti.so", false, false },
		{ "/usr/lib/x86_64-linux-gnu/libguile-3.0.so.1", false, true },
		{ "/", false, false },
		{ "", false, false },
	};

	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		cr_assert_eq(account_program(str_from(some[i].path)) < STATUS_RUNTIMES,
			     some[i].program, "%s", some[i].path);
		cr_assert_eq(account_library(str_from(some[i].path)) < STATUS_RUNTIMES,
			     some[i].library, "%s", some[i].path);
	}
}
