/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include "tools/prof-symd/files/filestore.h"

#define SECOND 1000000000ull

static struct filestore s;
static struct filestore_file a = { .file = 1 }, b = { .file = 2 };
static uint64_t now = 100 * SECOND;

/* Each file is this program, and no file has a debug file. */
static int ask(void *ctx, const struct filestore_request *rq)
{
	(void)ctx;
	filestore_answer(&s, rq->id,
			 rq->want == PROGRAM_WANTS_NOTHING
				 ? open("/proc/self/exe", O_RDONLY | O_CLOEXEC)
				 : -1,
			 now);
	return 0;
}

/* The ELF address of ask, which stands in this file. */
static uint64_t address_of_ask(void)
{
	char line[512];
	unsigned long start, offset;
	FILE *f = fopen("/proc/self/maps", "r");
	uint64_t base = 0;

	cr_assert(f);
	while (!base && fgets(line, sizeof(line), f))
		if (strstr(line, "/filestore\n") &&
		    sscanf(line, "%lx-%*x %*s %lx", &start, &offset) == 2)
			base = start - offset;
	fclose(f);
	return (uint64_t)(uintptr_t)ask - base;
}

static void look_into(struct filestore_file *f)
{
	static struct names n;
	struct program *p;

	cr_assert_eq(filestore_get(&s, f, now, &p), 0);
	cr_assert_not_null(p);
	cr_assert_eq(program_lookup(p, address_of_ask(), &n), 0);
	cr_assert(n.calls[0].name.len == 3 && memcmp(n.calls[0].name.data, "ask", 3) == 0);
	filestore_charge(&s, f);
}

/* The bytes of a file that was looked into. */
static size_t bytes_of_one(void)
{
	filestore_init(&s, 1u << 30, 1u << 30, ask, NULL);
	look_into(&a);
	size_t bytes = s.bytes;

	filestore_drop(&s, &a);
	cr_assert_eq(s.bytes, 0u);
	return bytes;
}

Test(filestore, files_in_use_may_briefly_exceed_the_budget_by_half)
{
	size_t one = bytes_of_one(), budget = one + one / 2;

	filestore_init(&s, budget, 1u << 30, ask, NULL);
	for (int i = 0; i < 10; i++) {
		look_into(&a);
		look_into(&b);
		now += SECOND / 10;
		filestore_tick(&s, now);
	}
	cr_assert_eq(s.bytes, 2 * one);
	now += FILESTORE_BUSY_NS;
	filestore_tick(&s, now);
	cr_assert_leq(s.bytes, budget);
	cr_assert_eq(s.open_count, 2u);
	cr_assert_eq(s.opened, 2u);
	look_into(&a);
	look_into(&b);
	cr_assert_eq(s.opened, 2u);
	filestore_drop(&s, &a);
	filestore_drop(&s, &b);
}

Test(filestore, files_in_use_never_exceed_the_budget_by_more_than_half)
{
	size_t one = bytes_of_one(), budget = one + one / 8;

	filestore_init(&s, budget, 1u << 30, ask, NULL);
	for (int i = 0; i < 10; i++) {
		look_into(&a);
		cr_assert_leq(s.bytes, budget + budget / 2);
		look_into(&b);
		cr_assert_leq(s.bytes, budget + budget / 2);
	}
	filestore_drop(&s, &a);
	filestore_drop(&s, &b);
}

Test(filestore, a_program_rests_once_after_each_use)
{
	(void)bytes_of_one();
	filestore_init(&s, 1u << 30, 1u << 30, ask, NULL);
	look_into(&a);
	const size_t works = s.bytes;

	now += SECOND;
	look_into(&b);
	now += FILESTORE_REST_NS - SECOND;
	filestore_tick(&s, now);
	cr_assert_eq(a.rests, FILESTORE_RESTS);
	cr_assert_eq(b.rests, FILESTORE_WORKS);
	cr_assert_lt(a.bytes, works);
	now += SECOND;
	filestore_tick(&s, now);
	cr_assert_eq(b.rests, FILESTORE_RESTS);
	look_into(&a);
	cr_assert_eq(a.rests, FILESTORE_WORKS);
	now += FILESTORE_REST_NS;
	filestore_tick(&s, now);
	cr_assert_eq(a.rests, FILESTORE_RESTS, "again");
	cr_assert_eq(b.state, FILESTORE_CLOSED);
	cr_assert_eq(s.opened, 2u);
	filestore_drop(&s, &a);
	filestore_drop(&s, &b);
}

Test(filestore, over_the_budget_the_least_recently_used_is_closed)
{
	static struct filestore_file files[4];
	struct program *p;

	filestore_init(&s, 1, 1u << 30, ask, NULL);
	for (int i = 0; i < 4; i++) {
		files[i].file = (uint64_t)i + 1;
		cr_assert_eq(filestore_get(&s, &files[i], now, &p), 0);
		cr_assert_not_null(p);
		filestore_charge(&s, &files[i]);
		cr_expect_eq(s.open_count, 1);
		cr_expect_eq(s.evicted, (uint64_t)i);
	}
	cr_expect_eq(files[0].state, FILESTORE_CLOSED);
	filestore_tick(&s, now + FILESTORE_IDLE_NS);
	cr_expect_eq(s.open_count, 0);
	cr_expect_eq(s.bytes, 0);
}

static unsigned asked, debug_asked;
static bool answers;

/* Each file is a program without debug information, whose debug file comes late or never. */
static int ask_slowly(void *ctx, const struct filestore_request *rq)
{
	(void)ctx;
	if (rq->want == PROGRAM_WANTS_NOTHING) {
		asked++;
		filestore_answer(&s, rq->id, open("/bin/true", O_RDONLY | O_CLOEXEC), now);
		return 0;
	}
	debug_asked++;
	if (answers)
		filestore_answer(&s, rq->id, -1, now);
	return 0;
}

Test(filestore, a_debug_file_that_did_not_come_is_asked_for_again)
{
	struct program *p = NULL;

	filestore_init(&s, 1u << 30, 1u << 30, ask_slowly, NULL);
	cr_assert_eq(filestore_get(&s, &a, now, &p), FILESTORE_WAIT);
	now += FILESTORE_WAIT_NS;
	cr_assert_eq(filestore_get(&s, &a, now, &p), FILESTORE_WAIT, "its answer may be here");
	filestore_tick(&s, now);
	cr_assert_eq(filestore_get(&s, &a, now, &p), 0);
	cr_assert_not_null(p);
	cr_expect(a.late);
	cr_expect_eq(asked, 1);
	cr_expect_eq(debug_asked, 1);

	now += FILESTORE_RETRY_NS - 1;
	cr_assert_eq(filestore_get(&s, &a, now, &p), 0);
	cr_expect_eq(debug_asked, 1);
	answers = true;
	now++;
	cr_assert_eq(filestore_get(&s, &a, now, &p), 0);
	cr_assert_not_null(p);
	cr_expect(!a.late);
	cr_expect_eq(asked, 2);
	cr_expect_gt(debug_asked, 1);
	cr_expect_eq(s.open_count, 1);

	const unsigned all = debug_asked;

	now += FILESTORE_RETRY_NS;
	cr_assert_eq(filestore_get(&s, &a, now, &p), 0);
	cr_expect_eq(debug_asked, all, "it has answered");
}

/* On a busy host, prof-symd itself is late. */
Test(filestore, each_answer_gives_the_next_as_long)
{
	struct program *p = NULL;

	filestore_init(&s, 1u << 30, 1u << 30, ask_slowly, NULL);
	cr_assert_eq(filestore_get(&s, &a, now, &p), FILESTORE_WAIT);
	while (a.state == FILESTORE_ASKED) {
		now += FILESTORE_WAIT_NS - 1;
		filestore_tick(&s, now);
		cr_assert_neq(a.request, 0);
		filestore_answer(&s, a.request, -1, now);
	}
	cr_expect_gt(debug_asked, 1);
	cr_expect_eq(filestore_get(&s, &a, now, &p), 0);
	cr_expect_not_null(p);
	cr_expect(!a.late);
	filestore_drop(&s, &a);
}

/* On a host that is far busier, one turn of its loop takes longer than that. */
Test(filestore, time_of_other_work_does_not_count)
{
	struct program *p = NULL;

	filestore_init(&s, 1u << 30, 1u << 30, ask_slowly, NULL);
	cr_assert_eq(filestore_get(&s, &a, now, &p), FILESTORE_WAIT);
	now += FILESTORE_WAIT_NS / 2;
	filestore_tick(&s, now);
	now += 3 * FILESTORE_WAIT_NS;
	filestore_worked(&s, 3 * FILESTORE_WAIT_NS, now);
	filestore_tick(&s, now);
	cr_expect_eq(filestore_get(&s, &a, now, &p), FILESTORE_WAIT);
	now += FILESTORE_WAIT_NS / 2;
	filestore_tick(&s, now);
	cr_expect_eq(filestore_get(&s, &a, now, &p), 0);
	cr_expect(a.late);
	filestore_drop(&s, &a);
}

Test(filestore, wrong_files_do_not_prolong_the_wait_for_ever)
{
	const uint64_t begun_ns = now;
	struct program *p = NULL;

	filestore_init(&s, 1u << 30, 1u << 30, ask_slowly, NULL);
	cr_assert_eq(filestore_get(&s, &a, now, &p), FILESTORE_WAIT);
	while (a.state == FILESTORE_ASKED) {
		now += FILESTORE_WAIT_NS / 2;
		filestore_tick(&s, now);
		if (a.request)
			filestore_answer(&s, a.request, open("/bin/false", O_RDONLY | O_CLOEXEC),
					 now);
	}
	cr_expect_eq(now - begun_ns, FILESTORE_WAIT_ALL_NS);
	cr_expect(a.late);
	filestore_drop(&s, &a);
}

static bool full;

/* Each file is a program whose debug file is requested. There is no room for a request while the
 * route is full. */
static int ask_if_room(void *ctx, const struct filestore_request *rq)
{
	return full ? -EAGAIN : ask_slowly(ctx, rq);
}

Test(filestore, a_request_without_room_is_repeated)
{
	struct program *p = NULL;

	filestore_init(&s, 1u << 30, 1u << 30, ask_if_room, NULL);
	full = true;
	cr_assert_eq(filestore_get(&s, &a, now, &p), FILESTORE_WAIT);
	filestore_tick(&s, now);
	cr_assert_eq(filestore_get(&s, &a, now, &p), FILESTORE_WAIT);
	full = false;
	filestore_tick(&s, now);
	cr_expect_eq(asked, 1);
	cr_expect_eq(debug_asked, 1);

	full = true;
	filestore_answer(&s, a.request, -1, now);
	cr_assert_eq(filestore_get(&s, &a, now, &p), FILESTORE_WAIT);
	full = false;
	answers = true;
	filestore_tick(&s, now);
	cr_expect_gt(debug_asked, 1);
	cr_expect_eq(filestore_get(&s, &a, now, &p), 0);
	cr_expect_not_null(p);
	filestore_drop(&s, &a);
}

Test(filestore, a_route_that_stays_full_ends_the_wait)
{
	struct program *p = NULL;

	filestore_init(&s, 1u << 30, 1u << 30, ask_if_room, NULL);
	full = true;
	cr_assert_eq(filestore_get(&s, &a, now, &p), FILESTORE_WAIT);
	now += FILESTORE_WAIT_NS;
	filestore_tick(&s, now);
	cr_assert_eq(filestore_get(&s, &a, now, &p), 0);
	cr_assert_null(p);
	full = false;
	now += FILESTORE_RETRY_NS;
	(void)filestore_get(&s, &a, now, &p);
	cr_expect_eq(asked, 1);
	filestore_drop(&s, &a);
}
