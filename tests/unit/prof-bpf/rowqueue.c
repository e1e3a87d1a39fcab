/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/peers/rowqueue.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include "common/walk/tables/tables.h"
#include "tests/memory_tables.h"
#include "tools/prof-bpf/owners/owners.h"

#define SECOND 1000000000ull

static struct tables *tables;
static struct owners *owners;
static struct rowqueue queue;
static struct owner *alice, *bob;

static void setup(void)
{
	const struct tables_config t = memory_tables(TABLES_SLAB_BYTES);

	cr_assert_eq(tables_new(&t, &tables), 0);
	tables_tick(tables, 1);
	cr_assert_eq(owners_new(&owners), 0);
	queue = (struct rowqueue){ .tables = tables };
	alice = owners_get(owners, (struct owner_key){ .uid = 1000 });
	bob = owners_get(owners, (struct owner_key){ .uid = 1001 });
}

static void teardown(void)
{
	rowqueue_done(&queue);
	owners_free(owners);
	tables_free(tables);
}

TestSuite(rowqueue, .init = setup, .fini = teardown);

static struct rowqueue_request *ask(struct owner *owner, int fd)
{
	struct rowqueue_request *r = calloc(1, sizeof(*r));

	cr_assert_not_null(r);
	cr_assert_eq(tables_file_new(tables, &r->slot), 0);
	r->serial = tables_file_serial(tables, r->slot);
	r->owner = owner;
	r->fd = fd;
	r->spare_fd = -1;
	cr_assert(rowqueue_add(&queue, r));
	return r;
}

/* The next request, which takes this long. */
static struct rowqueue_request *serve(uint64_t ns, uint64_t now_ns)
{
	struct rowqueue_request *r = rowqueue_next(&queue, true, now_ns);

	cr_assert_not_null(r);
	rowqueue_take(&queue, r);
	owner_spend(r->owner, OWNER_ROWS_CPU, ns, now_ns);
	return r;
}

/* Both have spent nothing yet, and the larger file has more samples. */
Test(rowqueue, a_small_file_does_not_wait_for_a_large_one_of_another_owner)
{
	struct rowqueue_request *large = ask(alice, -1), *small = ask(bob, -1);

	large->of.size = 100 << 20;
	small->of.size = 20000;
	for (uint64_t i = 2; i < 10; i++)
		tables_file_touch(tables, large->slot, i);
	cr_expect_eq(rowqueue_guess(large), ROWQUEUE_GUESS_MAX_NS);
	cr_expect_eq(rowqueue_next(&queue, true, 10), small);
	/* But its owner comes first if the other one has spent more. */
	owner_spend(bob, OWNER_ROWS_CPU, 2 * ROWQUEUE_GUESS_MAX_NS, 10);
	cr_expect_eq(rowqueue_next(&queue, true, 10), large);
}

Test(rowqueue, the_owner_that_spent_least_comes_first)
{
	unsigned first_of_bob = 0;

	for (int i = 0; i < 50; i++)
		ask(alice, -1);
	rowqueue_request_free(serve(SECOND, 1));
	ask(bob, -1);
	ask(bob, -1);
	for (unsigned i = 0; i < 2; i++) {
		struct rowqueue_request *r = serve(SECOND / 4, 1);

		first_of_bob += r->owner == bob;
		rowqueue_request_free(r);
	}
	cr_assert_eq(first_of_bob, 2);
	/* Spent time decays. */
	cr_assert_eq(rowqueue_spent(alice, 64 * OWNERS_HALVED_NS), 0);
}

Test(rowqueue, the_file_with_the_most_samples_comes_first_within_an_owner)
{
	struct rowqueue_request *seldom, *often;

	ask(alice, -1);
	seldom = ask(alice, -1);
	often = ask(alice, -1);
	tables_file_touch(tables, seldom->slot, 2);
	for (uint64_t t = 2; t < 5; t++)
		tables_file_touch(tables, often->slot, t);
	cr_assert_eq(rowqueue_next(&queue, true, 5), often);
	rowqueue_request_free(serve(0, 5));
	cr_assert_eq(rowqueue_next(&queue, true, 5), seldom);
}

Test(rowqueue, a_request_put_aside_runs_when_no_other_waits)
{
	struct rowqueue_request *aside = ask(alice, -1), *r;

	aside->stops = 1;
	cr_assert_eq(rowqueue_poorer(&queue, bob, SECOND, 1), 0, "it makes no other give way");
	owner_spend(bob, OWNER_ROWS_CPU, SECOND, 1);
	cr_assert_eq(rowqueue_poorer(&queue, bob, SECOND, 1), 1, "bob has spent far more");
	r = ask(bob, -1);
	cr_assert_eq(rowqueue_poorer(&queue, alice, 2 * SECOND, 1), 1);
	cr_assert_eq(rowqueue_poorer(&queue, alice, SECOND / 2, 1), 0, "alice has spent more");
	cr_assert_eq(rowqueue_next(&queue, false, 1), r, "something is in flight");
	cr_assert_eq(rowqueue_next(&queue, true, 1), aside, "bob has spent more");
	owner_spend(alice, OWNER_ROWS_CPU, 2 * SECOND, 1);
	cr_assert_eq(rowqueue_next(&queue, true, 1), r);
	rowqueue_request_free(serve(0, 1));
	cr_assert_null(rowqueue_next(&queue, false, 1), "something is in flight");
	cr_assert_eq(rowqueue_next(&queue, true, 1), aside);
}

Test(rowqueue, the_owner_with_most_descriptors_gives_one_up)
{
	struct rowqueue_request *mine = ask(bob, open("/dev/null", O_RDONLY | O_CLOEXEC)),
				*last = NULL;
	unsigned held = 0;

	for (int i = 0; i < ROWQUEUE_HELD + 10; i++)
		last = ask(alice, open("/dev/null", O_RDONLY | O_CLOEXEC));
	cr_assert(mine->fd >= 0 && last->fd < 0);
	cr_assert_eq(queue.held, ROWQUEUE_HELD);
	for (const struct rowqueue_request *r = mine; queue.count;) {
		r = rowqueue_next(&queue, true, 1);
		held += r->fd >= 0;
		rowqueue_take(&queue, (struct rowqueue_request *)r);
		rowqueue_request_free((struct rowqueue_request *)r);
	}
	cr_assert_eq(held, ROWQUEUE_HELD);
	cr_assert_eq(queue.held, 0);
}

Test(rowqueue, a_request_moves_to_another_line)
{
	struct rowqueue_request *r = ask(alice, -1), *other = ask(alice, -1);

	owner_spend(alice, OWNER_ROWS_CPU, SECOND, 1);
	cr_assert_eq(rowqueue_find(&queue, r->slot, r->serial), r);
	cr_assert_null(rowqueue_find(&queue, r->slot, r->serial + 1));
	cr_assert(rowqueue_move(&queue, other, bob));
	cr_assert_eq(rowqueue_next(&queue, true, 1), other);
	cr_assert_eq(queue.count, 2);
}

Test(rowqueue, files_of_root_come_first_after_a_users_file_kept_the_extractor_waiting)
{
	struct rowqueue_request *first = ask(alice, -1), *second = ask(alice, -1),
				*third = ask(bob, -1);

	first->of.uid = second->of.uid = third->of.uid = 1000;
	second->of.uid = 0;
	owner_spend(alice, OWNER_ROWS_CPU, SECOND, SECOND);
	cr_expect_eq(rowqueue_next(&queue, true, SECOND), third);
	queue.wary_until_ns = 2 * SECOND;
	cr_expect_eq(rowqueue_next(&queue, true, SECOND), second);
	cr_expect_eq(rowqueue_next(&queue, true, 2 * SECOND), third);
}
