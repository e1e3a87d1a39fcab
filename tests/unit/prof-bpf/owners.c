/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include "common/cell/deploy.h"
#include "tools/prof-bpf/owners/owners.h"

#define SECOND 1000000000ull

static struct owners *o;

static void make(void)
{
	cr_assert_eq(owners_new(&o), 0);
}

static void end(void)
{
	owners_free(o);
}

TestSuite(owners, .init = make, .fini = end);

static struct owner *user(uint32_t uid)
{
	return owners_get(o, (struct owner_key){ .uid = uid });
}

Test(owners, one_for_each_user_and_container)
{
	struct owner *a = user(1000);

	cr_assert_eq(a, user(1000));
	cr_assert_neq(a, user(1001));
	cr_assert_neq(a, owners_get(o, (struct owner_key){ .uid = 1000, .container = 5 }));
	cr_assert_eq(owners_numbered(o, a->number), a);
	cr_assert_neq(a->number, 0);
}

Test(owners, an_owner_without_processes_stays_until_its_place_is_needed)
{
	struct owner *a = user(1);

	owner_spend(a, OWNER_ROWS_CPU, SECOND, 0);
	owner_put(o, a);
	cr_assert_eq(user(1), a);
	cr_assert_eq(owner_spent(a, OWNER_ROWS_CPU, 0), SECOND);
	owner_put(o, a);
	for (uint32_t uid = 2; uid <= OWNERS_MAX; uid++)
		cr_assert_neq(user(uid)->number, 0);
	cr_assert_eq(user(1)->number, 0, "all places are taken by owners with processes");
	cr_assert_eq(user(2)->key.uid, 2);
}

Test(owners, an_owner_that_holds_something_is_not_forgotten)
{
	struct owner *a = user(1);

	owner_hold(o, a, OWNER_SLOTS, 3);
	owner_put(o, a);
	for (uint32_t uid = 2; uid < OWNERS_MAX; uid++)
		user(uid);
	cr_assert_eq(user(5000)->number, 0);
	cr_assert_eq(a->held[OWNER_SLOTS], 3);
	owner_release(o, a, OWNER_SLOTS, 7);
	cr_assert_eq(a->held[OWNER_SLOTS], 0);
	cr_assert_neq(user(5000)->number, 0, "its place is free now");
}

Test(owners, spent_time_decays)
{
	struct owner *a = user(1);

	owner_spend(a, OWNER_ROWS_CPU, 8 * SECOND, 0);
	cr_assert_eq(owner_spent(a, OWNER_ROWS_CPU, OWNERS_HALVED_NS - 1), 8 * SECOND);
	cr_assert_eq(owner_spent(a, OWNER_ROWS_CPU, 2 * OWNERS_HALVED_NS), 2 * SECOND);
	owner_spend(a, OWNER_ROWS_CPU, SECOND, 2 * OWNERS_HALVED_NS);
	cr_assert_eq(owner_spent(a, OWNER_ROWS_CPU, 2 * OWNERS_HALVED_NS), 3 * SECOND);
	cr_assert_eq(owner_spent(a, OWNER_ROWS_CPU, 1000 * OWNERS_HALVED_NS), 0);
}

Test(owners, others_share_the_rest_of_a_small_holder)
{
	struct owner *a = user(1), *b = user(2), *c = user(3);

	cr_assert_eq(owners_share(o, a, OWNER_SLOTS, 900), 900, "alone");
	owner_hold(o, b, OWNER_SLOTS, 890);
	cr_assert_eq(owners_share(o, a, OWNER_SLOTS, 900), 450);
	owner_hold(o, c, OWNER_SLOTS, 100);
	cr_assert_eq(owners_share(o, a, OWNER_SLOTS, 900), 400);
	cr_assert_eq(owners_largest(o, OWNER_SLOTS), b);
	owner_release(o, b, OWNER_SLOTS, 890);
	cr_assert_eq(owners_largest(o, OWNER_SLOTS), c);
	cr_assert_eq(owners_share(o, a, OWNER_SLOTS, 900), 800);
	cr_assert_null(owners_largest(o, OWNER_RULES));
}

static void note_loss(void *ctx, const struct owner *w, enum owner_loss l, uint64_t n)
{
	((uint64_t(*)[OWNER_LOSSES])ctx)[w->key.uid][l] += n;
}

Test(owners, a_loss_is_reported_once)
{
	uint64_t told[3][OWNER_LOSSES] = { 0 };

	owner_put(o, user(1));
	for (uint32_t uid = 1; uid <= 2; uid++)
		owners_lose(o, (struct owner_key){ .uid = uid }, OWNER_LOST_LIMIT);
	owners_lose(o, (struct owner_key){ .uid = 1 }, OWNER_LOST_QUEUE_FULL);
	owners_tell_losses(o, note_loss, told);
	owners_lose(o, (struct owner_key){ .uid = 2 }, OWNER_LOST_LIMIT);
	owners_tell_losses(o, note_loss, told);
	cr_expect_eq(told[1][OWNER_LOST_LIMIT], 1);
	cr_expect_eq(told[1][OWNER_LOST_QUEUE_FULL], 1);
	cr_expect_eq(told[2][OWNER_LOST_LIMIT], 2);
	cr_expect_eq(told[2][OWNER_LOST_QUEUE_FULL], 0);
}

Test(owners, tools_of_profpipe_are_told_from_users)
{
	char text[OWNER_TEXT];
	struct owner w = { .key = { .uid = 62001 } };

	cr_expect_str_eq(owner_text(&w, text), "user 62001");
	w.key.container = 7;
	cr_expect_str_eq(owner_text(&w, text), "user 62001 (container 7)");
	w.key = (struct owner_key){ .uid = DEPLOY_IDS_DUMP };
	cr_expect_str_eq(owner_text(&w, text), "profpipe (user 2134217728)");
}
