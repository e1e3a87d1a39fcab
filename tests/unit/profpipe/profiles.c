/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/store/profiles.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BEGIN 1795284000 /* 2026-11-21 18:00:00 UTC */

static char folder[32];

static void enter(void)
{
	strcpy(folder, "/tmp/profiles-XXXXXX");
	cr_assert(mkdtemp(folder));
	cr_assert_eq(chdir(folder), 0);
}

static void leave(void)
{
	cr_assert_eq(chdir("/"), 0);
	char command[64];

	snprintf(command, sizeof(command), "rm -r %s", folder);
	cr_assert_eq(system(command), 0);
}

static struct profiles limits(unsigned max, uint64_t max_bytes)
{
	struct profiles p = PROFILES_NONE;

	p.max = max;
	p.max_bytes = max_bytes;
	return p;
}

static bool there(const char *name)
{
	return faccessat(AT_FDCWD, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void make(const char *name, size_t bytes)
{
	const int fd = open(name, O_WRONLY | O_CREAT | O_EXCL, 0600);

	cr_assert(fd >= 0);
	cr_assert_eq(ftruncate(fd, (off_t)bytes), 0);
	close(fd);
}

TestSuite(profiles, .init = enter, .fini = leave);

Test(profiles, a_file_has_its_name_when_it_is_whole)
{
	struct profiles p = limits(3, 1000);

	cr_assert_eq(profiles_begin(&p, folder, ".pb.gz", BEGIN, true), 0);
	cr_assert(there("20261121T180000Z.pb.gz.part"));
	cr_assert_eq(write(p.fd, "x", 1), 1);
	cr_assert_eq(profiles_end(&p, PROFILES_WHOLE), 0);
	cr_assert(there("20261121T180000Z.pb.gz"));
	cr_assert(!there("20261121T180000Z.pb.gz.part"));
	cr_assert_eq(p.fd, -1);
	cr_assert_eq(profiles_begin(&p, folder, ".pb.gz", BEGIN, true), -EEXIST);
}

Test(profiles, an_empty_failed_file_is_removed_and_a_partial_one_kept)
{
	struct profiles p = limits(3, 1000);

	cr_assert_eq(profiles_begin(&p, folder, ".html", BEGIN, true), 0);
	cr_assert_eq(profiles_end(&p, PROFILES_FAILED), 0);
	cr_assert(!there("20261121T180000Z.html.part"));
	cr_assert(!there("20261121T180000Z.html"));
	cr_assert_eq(profiles_begin(&p, folder, ".html", BEGIN, true), 0);
	cr_assert_eq(write(p.fd, "x", 1), 1);
	cr_assert_eq(profiles_end(&p, PROFILES_FAILED), 0);
	cr_assert(there("20261121T180000Z.html.part"));
	cr_assert(!there("20261121T180000Z.html"));
}

Test(profiles, the_oldest_go_beyond_the_number)
{
	struct profiles p = limits(2, 1000);

	make("20261121T150000Z.pb.gz", 1);
	make("20261121T160000Z.html.part", 1);
	make("20261121T170000Z.pb.gz", 1);
	cr_assert_eq(profiles_begin(&p, folder, ".pb.gz", BEGIN, true), 0);
	cr_assert_eq(profiles_end(&p, PROFILES_WHOLE), 0);
	cr_assert(there("20261121T170000Z.pb.gz"));
	cr_assert(there("20261121T180000Z.pb.gz"));
	cr_assert(!there("20261121T150000Z.pb.gz"));
	cr_assert(!there("20261121T160000Z.html.part"));
}

/* A file that follows another one begins before the former is whole. */
Test(profiles, files_being_written_are_not_evicted)
{
	struct profiles p = limits(2, 1000), next = limits(2, 1000);

	make("20261121T150000Z.pb.gz", 1);
	make("20261121T160000Z.pb.gz", 1);
	cr_assert_eq(profiles_begin(&p, folder, ".pb.gz", BEGIN, true), 0);
	cr_assert_eq(write(p.journal, "x", 1), 1);
	cr_assert_eq(profiles_begin(&next, folder, ".pb.gz", BEGIN + 1, false), 0);
	cr_assert(!next.resumed);
	cr_assert(there("20261121T150000Z.pb.gz") && there("20261121T160000Z.pb.gz"));
	cr_assert(there(p.part) && there(p.journal_name));
	cr_assert_eq(profiles_end(&p, PROFILES_WHOLE), 0);
	cr_assert(!there("20261121T150000Z.pb.gz") && there("20261121T160000Z.pb.gz"));
	cr_assert(there(p.name) && there(next.part));
	struct profiles one = limits(1, 1000);

	cr_assert_eq(profiles_begin(&one, folder, ".pb.gz", BEGIN + 2, false), 0);
	cr_assert(there(next.part) && there(next.journal_name), "somebody writes them");
	cr_assert(there(p.name) && !there("20261121T160000Z.pb.gz"));
}

Test(profiles, the_oldest_go_beyond_the_size_and_never_the_newest)
{
	struct profiles p = limits(100, 1000);

	make("20261121T150000Z.pb.gz", 400);
	make("20261121T160000Z.pb.gz", 400);
	cr_assert_eq(profiles_begin(&p, folder, ".pb.gz", BEGIN, true), 0);
	cr_assert_eq(ftruncate(p.fd, 500), 0);
	cr_assert_eq(profiles_end(&p, PROFILES_WHOLE), 0);
	cr_assert(!there("20261121T150000Z.pb.gz"));
	cr_assert(there("20261121T160000Z.pb.gz"));
	cr_assert_eq(profiles_begin(&p, folder, ".pb.gz", BEGIN + 1, true), 0);
	cr_assert_eq(ftruncate(p.fd, 2000), 0);
	cr_assert_eq(profiles_end(&p, PROFILES_WHOLE), 0);
	cr_assert(!there("20261121T180000Z.pb.gz"));
	cr_assert(there("20261121T180001Z.pb.gz"));
}

Test(profiles, other_files_are_not_touched)
{
	static const char *const others[] = { "README", "20261121", "20261121T150000Z",
					      "x20261121T150000Z.pb.gz", "20261121T15000Z.pb.gz" };
	struct profiles p = limits(1, 1);

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		make(others[i], 10);
	cr_assert_eq(mkdir("20261121T150000Z.d", 0700), 0);
	cr_assert_eq(symlink("README", "20261121T150000Z.link"), 0);
	cr_assert_eq(profiles_begin(&p, folder, ".pb.gz", BEGIN, true), 0);
	cr_assert_eq(profiles_end(&p, PROFILES_WHOLE), 0);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_assert(there(others[i]));
	cr_assert(there("20261121T150000Z.d") && there("20261121T150000Z.link"));
}

Test(profiles, a_planted_link_is_not_followed)
{
	struct profiles p = limits(1, 1000);

	make("victim", 10);
	cr_assert_eq(symlink("victim", "20261121T180000Z.pb.gz.part"), 0);
	cr_assert_eq(profiles_begin(&p, folder, ".pb.gz", BEGIN, true), -EEXIST);
	cr_assert_eq(profiles_begin(&p, "/nowhere", ".pb.gz", BEGIN, true), -ENOENT);
}

Test(profiles, an_unused_empty_part_is_removed)
{
	struct profiles p = limits(100, 1000), other = limits(100, 1000);

	make("20261121T150000Z.pb.gz.part", 0);
	make("20261121T160000Z.pb.gz.part", 1);
	cr_assert_eq(profiles_begin(&p, folder, ".pb.gz", BEGIN, true), 0);
	cr_assert(!there("20261121T150000Z.pb.gz.part"));
	cr_assert(there("20261121T160000Z.pb.gz.part"));
	cr_assert_eq(profiles_begin(&other, folder, ".pb.gz", BEGIN + 1, true), 0);
	cr_assert(there("20261121T180000Z.pb.gz.part"));
	cr_assert_eq(profiles_end(&p, PROFILES_WHOLE), 0);
	cr_assert_eq(profiles_end(&other, PROFILES_WHOLE), 0);
	cr_assert(there("20261121T180000Z.pb.gz") && there("20261121T180001Z.pb.gz"));
}

Test(profiles, a_killed_profile_is_resumed)
{
	struct profiles p = limits(9, 1000), next = limits(9, 1000);

	cr_assert_eq(profiles_begin(&p, folder, ".pb.gz", BEGIN, true), 0);
	cr_assert(there("20261121T180000Z.pb.gz.journal") && !p.resumed);
	cr_assert_eq(write(p.journal, "x", 1), 1);
	/* It still runs, so nobody else takes its journal. */
	cr_assert_eq(profiles_begin(&next, folder, ".html", BEGIN + 1, true), 0);
	cr_assert(!next.resumed);
	cr_assert_eq(profiles_end(&next, PROFILES_FAILED), 0);
	cr_assert_eq(profiles_end(&p, PROFILES_KILLED), 0);
	/* Another format cannot continue it. */
	cr_assert_eq(profiles_begin(&next, folder, ".html", BEGIN + 1, true), 0);
	cr_assert(!next.resumed);
	cr_assert_eq(profiles_end(&next, PROFILES_FAILED), 0);
	for (int i = 1; i <= 8; i++) {
		struct profiles q = limits(9, 1000);
		char name[64];

		snprintf(name, sizeof(name), "20261121T180000Z.pb.gz.journal%d", i);
		cr_assert_eq(profiles_begin(&q, folder, ".pb.gz", BEGIN + 2, true), 0);
		cr_assert(q.resumed && there(name), "%s", name);
		cr_assert(there("20261121T180000Z.pb.gz.part"));
		cr_assert_eq(profiles_end(&q, PROFILES_KILLED), 0);
		cr_assert(there(name));
	}
	cr_assert_eq(profiles_begin(&next, folder, ".pb.gz", BEGIN + 3, true), 0);
	cr_assert(!next.resumed && there("20261121T180000Z.pb.gz.journal8"));
	cr_assert_eq(profiles_end(&next, PROFILES_WHOLE), 0);
	cr_assert(there("20261121T180003Z.pb.gz") && !there("20261121T180003Z.pb.gz.journal"));
}

Test(profiles, a_resumed_profile_becomes_whole_without_a_journal)
{
	struct profiles p = limits(3, 1000);

	make("20261121T170000Z.pb.gz.journal", 10);
	make("20261121T170000Z.pb.gz.part", 10);
	make("20261121T160000Z.pb.gz.journal", 0);
	cr_assert_eq(profiles_begin(&p, folder, ".pb.gz", BEGIN, true), 0);
	cr_assert(p.resumed && p.journal >= 0 && p.fd >= 0);
	cr_assert(!there("20261121T160000Z.pb.gz.journal"));
	cr_assert_eq(profiles_end(&p, PROFILES_WHOLE), 0);
	cr_assert(there("20261121T170000Z.pb.gz") && !there("20261121T170000Z.pb.gz.part"));
	cr_assert(!there("20261121T170000Z.pb.gz.journal1"));
}

Test(profiles, a_profile_killed_long_ago_is_not_resumed)
{
	const struct timespec then[2] = { { .tv_sec = BEGIN - 3600 }, { .tv_sec = BEGIN - 3600 } };
	struct profiles p = limits(3, 1000);

	make("20261121T160000Z.pb.gz.journal", 10);
	cr_assert_eq(utimensat(AT_FDCWD, "20261121T160000Z.pb.gz.journal", then, 0), 0);
	cr_assert_eq(profiles_begin(&p, folder, ".pb.gz", BEGIN, true), 0);
	cr_assert(!p.resumed && there("20261121T160000Z.pb.gz.journal"));
	cr_assert_eq(profiles_end(&p, PROFILES_WHOLE), 0);
}
