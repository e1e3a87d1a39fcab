/* SPDX-License-Identifier: Apache-2.0 */
/* Which requests must wait, and who is harmed when somebody makes workers hang. */
#include <criterion/criterion.h>
#include "tools/prof-bpf/open/workers/workerpool_internal.h"

#define DEVICE 7

static struct workerpool pool;
static struct owner owners[WORKERPOOL_WORKERS + 1];
static unsigned next;

/* Another worker is busy for an owner, or hangs. */
static void occupy(enum workerpool_lane lane, unsigned owner, uint64_t dev, bool hung)
{
	struct workerpool_worker *w = &pool.workers[next++];

	*w = (struct workerpool_worker){ .fd = 0,
					 .hung = hung,
					 .count = 1,
					 .claim = { .lane = lane,
						    .owner = &owners[owner],
						    .devs = { dev },
						    .dev_count = lane != WORKERPOOL_MEMORY,
						    .pid = lane == WORKERPOOL_MEMORY ? (uint32_t)dev
										     : 0 } };
}

static enum workerpool_claims_may may(enum workerpool_lane lane, unsigned owner, uint64_t dev)
{
	const struct workerpool_job j = { .lane = lane,
					  .owner = &owners[owner],
					  .devs = { dev },
					  .dev_count = lane != WORKERPOOL_MEMORY,
					  .pid = lane == WORKERPOOL_MEMORY ? (uint32_t)dev : 0 };

	return workerpool_claims_may_begin(&pool, &j);
}

static void begin(void)
{
	next = 0;
	for (unsigned i = 0; i < WORKERPOOL_WORKERS; i++)
		pool.workers[i] = (struct workerpool_worker){ .fd = -1 };
}

Test(workerpool_claims, an_unknown_device_belongs_to_no_owner)
{
	begin();
	occupy(WORKERPOOL_FOREIGN, 0, 0, true);
	cr_expect_eq(may(WORKERPOOL_FOREIGN, 1, 0), WORKERPOOL_CLAIMS_MAY_BEGIN);
	occupy(WORKERPOOL_FOREIGN, 0, DEVICE, true);
	cr_expect_eq(may(WORKERPOOL_FOREIGN, 1, DEVICE), WORKERPOOL_CLAIMS_MAY_NEVER);
	cr_expect_eq(may(WORKERPOOL_FOREIGN, 1, DEVICE + 1), WORKERPOOL_CLAIMS_MAY_BEGIN);
}

Test(workerpool_claims, an_owner_that_hangs_two_workers_harms_only_itself)
{
	begin();
	occupy(WORKERPOOL_FOREIGN, 0, 1, true);
	cr_expect_eq(may(WORKERPOOL_FOREIGN, 0, 2), WORKERPOOL_CLAIMS_MAY_BEGIN);
	occupy(WORKERPOOL_MEMORY, 0, 1, true);
	cr_expect_eq(may(WORKERPOOL_FOREIGN, 0, 2), WORKERPOOL_CLAIMS_MAY_NEVER);
	cr_expect_eq(may(WORKERPOOL_MEMORY, 0, 2), WORKERPOOL_CLAIMS_MAY_NEVER);
	cr_expect_eq(may(WORKERPOOL_FOREIGN, 1, 2), WORKERPOOL_CLAIMS_MAY_BEGIN);
	cr_expect_eq(may(WORKERPOOL_SAFE, 0, 2), WORKERPOOL_CLAIMS_MAY_BEGIN);
}

Test(workerpool_claims, workers_that_hang_in_one_lane_leave_the_others)
{
	for (int lane = 0; lane < WORKERPOOL_LANES; lane++) {
		const unsigned most = lane == WORKERPOOL_SAFE ? WORKERPOOL_SAFE_HANGING
							      : WORKERPOOL_SLOW_HANGING;

		begin();
		for (unsigned i = 0; i < most + WORKERPOOL_SPARE; i++) {
			cr_expect_eq(may((enum workerpool_lane)lane, i, DEVICE + i),
				     WORKERPOOL_CLAIMS_MAY_BEGIN);
			occupy((enum workerpool_lane)lane, i, DEVICE + i, true);
			/* The spare places are for owners that make no worker hang. */
			if (i + 1 >= most)
				cr_expect_eq(may((enum workerpool_lane)lane, i, 1),
					     WORKERPOOL_CLAIMS_MAY_NEVER);
		}
		for (int other = 0; other < WORKERPOOL_LANES; other++)
			cr_expect_eq(may((enum workerpool_lane)other, most + WORKERPOOL_SPARE, 1),
				     other == lane ? WORKERPOOL_CLAIMS_MAY_NEVER
						   : WORKERPOOL_CLAIMS_MAY_BEGIN,
				     "%d beside %d", other, lane);
	}
}

Test(workerpool_claims, when_many_hang_an_owner_may_make_only_one_hang)
{
	begin();
	for (unsigned i = 0; i < WORKERPOOL_SLOW_HANGING / 2 - 1; i++)
		occupy(WORKERPOOL_FOREIGN, i, DEVICE + i, true);
	cr_expect_eq(may(WORKERPOOL_FOREIGN, 0, 1), WORKERPOOL_CLAIMS_MAY_BEGIN);
	occupy(WORKERPOOL_FOREIGN, WORKERPOOL_WORKERS, 2, true);
	cr_expect_eq(may(WORKERPOOL_FOREIGN, 0, 1), WORKERPOOL_CLAIMS_MAY_NEVER);
	cr_expect_eq(may(WORKERPOOL_FOREIGN, WORKERPOOL_SLOW_HANGING, 1),
		     WORKERPOOL_CLAIMS_MAY_BEGIN);
}

Test(workerpool_claims, one_slow_lane_does_not_keep_the_other_waiting)
{
	for (int lane = WORKERPOOL_FOREIGN; lane <= WORKERPOOL_MEMORY; lane++) {
		const enum workerpool_lane other = lane == WORKERPOOL_FOREIGN ? WORKERPOOL_MEMORY
									      : WORKERPOOL_FOREIGN;

		begin();
		for (unsigned i = 0; i < WORKERPOOL_OF_LANE; i++) {
			cr_expect_eq(may((enum workerpool_lane)lane, i, DEVICE + i),
				     WORKERPOOL_CLAIMS_MAY_BEGIN);
			occupy((enum workerpool_lane)lane, i, DEVICE + i, false);
		}
		cr_expect_eq(may((enum workerpool_lane)lane, WORKERPOOL_OF_LANE, 1),
			     WORKERPOOL_CLAIMS_MAY_WAIT);
		cr_expect_eq(may(other, WORKERPOOL_OF_LANE, 1), WORKERPOOL_CLAIMS_MAY_BEGIN);
	}
}

/* A worker that began a while ago. */
static void occupy_slowly(unsigned owner, uint64_t pid)
{
	occupy(WORKERPOOL_MEMORY, owner, pid, false);
	pool.workers[next - 1].slow = true;
	pool.workers[next - 1].since_ns = 1;
}

Test(workerpool_claims, slow_workers_hold_up_only_their_owners)
{
	begin();
	pool.now_ns = 2 * WORKERPOOL_SLOW_NS;
	for (unsigned i = 0; i < WORKERPOOL_SLOW_HANGING / 2; i++)
		occupy_slowly(i, DEVICE + i);
	cr_expect_eq(may(WORKERPOOL_MEMORY, WORKERPOOL_WORKERS, 1), WORKERPOOL_CLAIMS_MAY_BEGIN);
	/* Half of the places are taken, so one worker of an owner is enough. */
	cr_expect_eq(may(WORKERPOOL_MEMORY, 0, 1), WORKERPOOL_CLAIMS_MAY_WAIT);
	for (unsigned i = 0; i < WORKERPOOL_SLOW_HANGING / 2; i++)
		occupy_slowly(DEVICE + i, 100 + i);
	/* Each of them will end, or hang and be given up. */
	cr_expect_eq(may(WORKERPOOL_MEMORY, WORKERPOOL_WORKERS, 1), WORKERPOOL_CLAIMS_MAY_WAIT);
}

Test(workerpool_claims, subordinate_ids_of_one_block_count_as_one_user)
{
	begin();
	for (unsigned i = 0; i < 4; i++)
		owners[i].key.uid = 100000 + i;
	for (unsigned i = 0; i < 2; i++) {
		cr_expect_eq(may(WORKERPOOL_FOREIGN, i, DEVICE + i), WORKERPOOL_CLAIMS_MAY_BEGIN);
		occupy(WORKERPOOL_FOREIGN, i, DEVICE + i, true);
	}
	cr_expect_eq(may(WORKERPOOL_FOREIGN, 2, 1), WORKERPOOL_CLAIMS_MAY_NEVER);
	owners[3].key.uid = 1000;
	cr_expect_eq(may(WORKERPOOL_FOREIGN, 3, 1), WORKERPOOL_CLAIMS_MAY_BEGIN);
	owners[2].key.container = 5;
	cr_expect_eq(may(WORKERPOOL_FOREIGN, 2, 1), WORKERPOOL_CLAIMS_MAY_BEGIN);
	for (unsigned i = 0; i < 4; i++)
		owners[i].key = (struct owner_key){ 0 };
}
