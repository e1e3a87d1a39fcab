/* SPDX-License-Identifier: Apache-2.0 */
/* Objects of several owners: none takes the place of another's. */
#include <errno.h>
#include "tests/unit/prof-symd/objects_bench.h"
#include "tools/prof-symd/objects/copies.h"

static uint64_t owner_of(void *ctx, uint64_t process)
{
	return process == Q;
}

#define MANY_PROCESSES (2 * OBJECTS_PROCESSES)

/* An object of process Q, which has a different owner from all others. */
static int look_other(struct bench *b)
{
	return objects_lookup(b->o, &b->k->build, Q, PID, b->k->objects[0].address, mark_of(b, 0),
			      false, SECOND, &b->names);
}

Test(objects_owners, an_owner_that_uses_all_reads_leaves_room_for_others)
{
	struct bench *b = bench_new();

	objects_owners(b->o, owner_of, b);
	for (uint64_t i = 0; i < OBJECTS_READING; i++)
		objects_want(b->o, &b->k->build, P, PID, 0x10000 + i * 64, i << RUNTIME_CHECK_SHIFT,
			     SECOND);
	cr_expect_eq(look(b, 0, false, SECOND), OBJECTS_LATER);
	cr_expect_eq(look_other(b), OBJECTS_LATER);
	settle(b, SECOND);
	cr_expect_eq(look_other(b), 0);
	cr_expect(is_called(b, b->k->objects[0].name));
	objects_drop(b->o, Q);
	bench_free(b);
}

static void drop_many(struct bench *b, uint64_t count)
{
	for (uint64_t process = 1000; process < 1000 + count; process++)
		objects_drop(b->o, process);
	objects_drop(b->o, Q);
}

Test(objects_owners, processes_that_never_answer_leave_requests_to_others)
{
	struct bench *b = bench_new();

	objects_owners(b->o, owner_of, b);
	for (uint64_t process = 1000; process < 1000 + OBJECTS_IN_FLIGHT; process++)
		objects_want(b->o, &b->k->build, process, PID, b->k->objects[0].address,
			     mark_of(b, 0), SECOND);
	cr_assert_eq(objects_send(b->o, SECOND), 0);
	cr_expect_eq(b->count, OBJECTS_IN_FLIGHT / 2);
	/* These are never answered. */
	b->count = 0;
	cr_expect_eq(look_other(b), OBJECTS_LATER);
	settle(b, SECOND);
	cr_expect_eq(look_other(b), 0);
	drop_many(b, OBJECTS_IN_FLIGHT);
	bench_free(b);
}

Test(objects_owners, an_owner_of_many_processes_evicts_its_own)
{
	struct bench *b = bench_new();

	objects_owners(b->o, owner_of, b);
	(void)look_other(b);
	settle(b, SECOND);
	for (uint64_t process = 1000; process < 1000 + MANY_PROCESSES; process++) {
		objects_want(b->o, &b->k->build, process, PID, b->k->objects[0].address,
			     mark_of(b, 0), SECOND);
		if (process % 100 == 0)
			settle(b, SECOND);
	}
	cr_expect_eq(look_other(b), 0, "its name is still known");
	settle(b, SECOND);
	cr_expect_eq(objects_lookup(b->o, &b->k->build, 1000 + MANY_PROCESSES - 1, PID,
				    b->k->objects[0].address, mark_of(b, 0), false, SECOND,
				    &b->names),
		     0);
	drop_many(b, MANY_PROCESSES);
	bench_free(b);
}

Test(objects_owners, an_owner_of_many_copies_evicts_its_own)
{
	struct bench *b = bench_new();
	uint64_t at = 0x1000, len = 8;

	objects_owners(b->o, owner_of, b);
	take_of(b, Q, 0, 1024);
	for (uint64_t i = 0; i < 2 * COPIES_MAX; i++)
		cr_assert_eq(
			objects_take(b->o, &(struct msg_object){ .process = P,
								 .address = i,
								 .check = 1,
								 .addresses = { &at, 1 },
								 .lengths = { &len, 1 },
								 .bytes = { (uint8_t *)&at, 8 } }),
			0);
	take(b, 1, 1024);
	cr_expect_eq(look_other(b), 0);
	cr_expect_eq(look(b, 1, false, SECOND), 0, "the newest of the other owner is there too");
	objects_drop(b->o, Q);
	bench_free(b);
}

Test(objects_owners, eviction_hits_the_owner_with_most_objects)
{
	for (int owners = 0; owners <= 1; owners++) {
		struct bench *b = bench_new();

		if (owners)
			objects_owners(b->o, owner_of, b);
		/* One object of the other process, which is the oldest. */
		(void)objects_lookup(b->o, &b->k->build, Q, PID, b->k->objects[0].address,
				     mark_of(b, 0), false, SECOND, &b->names);
		settle(b, SECOND);
		for (size_t i = 0; i < b->k->object_count; i++)
			(void)look(b, i, false, SECOND);
		settle(b, SECOND);
		objects_budget(b->o, objects_counts(b->o).held_bytes * 3 / 4);
		objects_want(b->o, &b->k->build, P, PID, b->k->objects[0].address,
			     (uint64_t)5 << RUNTIME_CHECK_SHIFT, SECOND);
		cr_expect_gt(objects_counts(b->o).evicted, 0);
		const int r = objects_lookup(b->o, &b->k->build, Q, PID, b->k->objects[0].address,
					     mark_of(b, 0), false, SECOND, &b->names);

		cr_expect_eq(r, owners ? 0 : OBJECTS_LATER);
		settle(b, SECOND);
		objects_drop(b->o, Q);
		bench_free(b);
	}
}
