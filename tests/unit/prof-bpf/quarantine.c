/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include "tools/prof-bpf/peers/quarantine.h"

#define SECOND 1000000000ull

static struct quarantine *q;
static uint64_t now = 1000 * SECOND;

static void make(void)
{
	cr_assert_eq(quarantine_new(&q), 0);
}

static void end(void)
{
	quarantine_free(q);
}

TestSuite(quarantine, .init = make, .fini = end);

static struct quarantine_key file(uint64_t inode, uint32_t uid)
{
	return (struct quarantine_key){ .dev = 8, .inode = inode, .size = 100, .uid = uid };
}

static enum quarantine_verdict died(struct quarantine_key k, enum lastword_end how)
{
	return quarantine_blame(q, QUARANTINE_NAMES, &k, how, now);
}

static enum quarantine_verdict check(struct quarantine_key k)
{
	return quarantine_check(q, QUARANTINE_NAMES, &k, now);
}

Test(quarantine, second_crash_gives_a_file_up_and_says_so_once)
{
	cr_assert(quarantine_is_empty(q));
	cr_assert_eq(died(file(1, 0), LASTWORD_CRASH), QUARANTINE_FREE);
	cr_assert_eq(check(file(1, 0)), QUARANTINE_FREE);
	cr_assert_eq(died(file(1, 0), LASTWORD_CRASH), QUARANTINE_GIVEN_UP);
	cr_assert_eq(check(file(1, 0)), QUARANTINE_GIVEN_UP);
	cr_assert_eq(died(file(1, 0), LASTWORD_CRASH), QUARANTINE_FREE);
	now += 10000 * SECOND;
	cr_assert_eq(check(file(1, 0)), QUARANTINE_GIVEN_UP, "permanently");
	cr_assert_not(quarantine_is_empty(q));
}

Test(quarantine, another_file_or_content_or_parser_is_free)
{
	struct quarantine_key changed = file(1, 0);

	died(file(1, 0), LASTWORD_CRASH);
	died(file(1, 0), LASTWORD_CRASH);
	changed.ctime_ns = 5;
	cr_assert_eq(check(changed), QUARANTINE_FREE);
	cr_assert_eq(check(file(2, 0)), QUARANTINE_FREE);
	changed = file(1, 0);
	cr_assert_eq(quarantine_check(q, QUARANTINE_ROWS, &changed, now), QUARANTINE_FREE);
}

Test(quarantine, slow_file_is_given_up_at_once)
{
	cr_assert_eq(died(file(1, 1000), LASTWORD_SLOW), QUARANTINE_GIVEN_UP);
	cr_assert_eq(died(file(2, 1000), LASTWORD_SLOW), QUARANTINE_OF_USER);
}

Test(quarantine, killed_parser_blames_a_file_only_when_it_happens_in_a_row)
{
	for (int i = 0; i < 100; i++)
		cr_assert_eq(died(file(1 + (uint64_t)i % 2, 1000 + (uint32_t)i % 2), LASTWORD_NONE),
			     QUARANTINE_FREE);
	cr_assert_eq(check(file(1, 1001)), QUARANTINE_FREE);
	for (int i = 1; i < 2 * QUARANTINE_USER_DEATHS; i++)
		cr_assert_eq(died(file(10 + (uint64_t)i, 1000), LASTWORD_NONE), QUARANTINE_FREE);
	cr_assert_eq(died(file(9, 1000), LASTWORD_NONE), QUARANTINE_OF_USER);
}

Test(quarantine, file_given_up_in_doubt_is_tried_again_less_and_less_often)
{
	for (int i = 0; i < 4; i++)
		cr_assert_eq(died(file(1, 0), LASTWORD_NONE), QUARANTINE_FREE);
	cr_assert_eq(died(file(1, 0), LASTWORD_NONE), QUARANTINE_GIVEN_UP);
	for (uint64_t wait = 1; wait <= 64; wait *= 2) {
		enum quarantine_parser parser;
		struct quarantine_key of;

		now += wait * SECOND - 1;
		cr_assert_eq(check(file(1, 0)), QUARANTINE_GIVEN_UP);
		cr_assert(!quarantine_freed(q, now, &parser, &of));
		now += 2;
		cr_assert_eq(check(file(1, 0)), QUARANTINE_FREE);
		cr_assert(quarantine_freed(q, now, &parser, &of));
		cr_assert(parser == QUARANTINE_NAMES && of.inode == file(1, 0).inode &&
			  of.size == file(1, 0).size);
		cr_assert(!quarantine_freed(q, now, &parser, &of), "said once");
		cr_assert_eq(died(file(1, 0), LASTWORD_NONE), QUARANTINE_FREE, "it was said");
	}
}

Test(quarantine, a_user_of_endless_new_files_is_given_up_alone)
{
	for (uint64_t i = 1; i < QUARANTINE_USER_DEATHS; i++)
		cr_assert_eq(died(file(i, 1000), LASTWORD_CRASH), QUARANTINE_FREE);
	cr_assert_eq(check(file(99, 1000)), QUARANTINE_FREE);
	cr_assert_eq(died(file(50, 1000), LASTWORD_CRASH), QUARANTINE_OF_USER);
	cr_assert_eq(check(file(99, 1000)), QUARANTINE_OF_USER);
	cr_assert_eq(check(file(99, 1001)), QUARANTINE_FREE);
	cr_assert_eq(check(file(99, 0)), QUARANTINE_FREE);
	cr_assert_eq(died(file(51, 1000), LASTWORD_CRASH), QUARANTINE_FREE, "said once");
	now += QUARANTINE_USER_NS;
	cr_assert_eq(check(file(99, 1000)), QUARANTINE_FREE);
	cr_assert_eq(died(file(52, 1000), LASTWORD_CRASH), QUARANTINE_OF_USER,
		     "after an hour once more is enough");
}

Test(quarantine, user_namespace_with_many_users_is_one_group)
{
	uint64_t i = 1;

	while (died(file(i, 100000 + (uint32_t)i), LASTWORD_CRASH) == QUARANTINE_FREE)
		cr_assert_lt(++i, 1000);
	cr_assert_eq(i, QUARANTINE_GROUP_DEATHS);
	cr_assert_eq(check(file(5000, 105000)), QUARANTINE_OF_USER);
	cr_assert_eq(check(file(5000, 1000)), QUARANTINE_FREE);
	cr_assert_eq(check(file(5000, 900000)), QUARANTINE_FREE);
}

Test(quarantine, roots_files_count_by_file_system)
{
	struct quarantine_key elsewhere = file(1, 0);

	for (uint64_t i = 1; i < QUARANTINE_GROUP_DEATHS; i++)
		died(file(i, 0), LASTWORD_CRASH);
	cr_assert_eq(check(file(9999, 0)), QUARANTINE_FREE);
	died(file(5000, 0), LASTWORD_CRASH);
	cr_assert_eq(check(file(9999, 0)), QUARANTINE_OF_USER);
	elsewhere.dev = 9;
	cr_assert_eq(check(elsewhere), QUARANTINE_FREE);
}

Test(quarantine, a_file_server_blames_no_other_user)
{
	struct quarantine_key k = file(1, 1000);

	k.foreign_owner = 1;
	for (uint64_t i = 1; i <= QUARANTINE_USER_DEATHS; i++) {
		k.inode = i;
		died(k, LASTWORD_CRASH);
	}
	k.inode = 999;
	cr_assert_eq(check(k), QUARANTINE_OF_USER);
	cr_assert_eq(check(file(999, 1000)), QUARANTINE_FREE);
}

/* Its root can give a file any owner, and can mount it on any of its devices. */
Test(quarantine, a_container_blames_no_process_outside)
{
	for (uint64_t i = 1; i <= QUARANTINE_USER_DEATHS; i++) {
		struct quarantine_key k = file(i, i % 2 ? 0 : 1000);

		cr_assert_eq(check(k), QUARANTINE_FREE);
		k.container = 5;
		k.foreign_owner = i % 3 == 0;
		cr_assert_eq(died(k, LASTWORD_CRASH),
			     i < QUARANTINE_USER_DEATHS ? QUARANTINE_FREE : QUARANTINE_OF_USER);
	}
	struct quarantine_key inside = file(99, 1000);

	inside.container = 5;
	cr_assert_eq(check(inside), QUARANTINE_OF_USER);
	inside.container = 6;
	cr_assert_eq(check(inside), QUARANTINE_FREE);
	cr_assert_eq(check(file(99, 1000)), QUARANTINE_FREE);
	cr_assert_eq(check(file(99, 0)), QUARANTINE_FREE);
}

Test(quarantine, memory_is_bounded)
{
	for (uint64_t i = 1; i <= 3 * QUARANTINE_FILES_MAX; i++)
		died(file(i, (uint32_t)i), LASTWORD_CRASH);
	cr_assert_eq(check(file(1, 77)), QUARANTINE_FREE);
}
