/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/limit/thinning.h"

#include <criterion/criterion.h>
#include "tools/prof-bpf/limit/cpulimit.h"
#include "tools/prof-bpf/owners/owners.h"

static struct owners *ledger;

static void make_owners(void)
{
	cr_assert_eq(owners_new(&ledger), 0);
}

static void free_owners(void)
{
	owners_free(ledger);
}

TestSuite(thinning, .init = make_owners, .fini = free_owners);

/* Feeds samples of owners 0, 1, ... in each of `count` steps. kept: how many are kept. */
static void steps(struct thinning *d, unsigned count, unsigned drop, uint32_t least,
		  const unsigned *samples, unsigned owners, unsigned *kept)
{
	for (unsigned o = 0; o < owners; o++)
		kept[o] = 0;
	for (unsigned i = 0; i < count; i++) {
		for (unsigned o = 0; o < owners; o++)
			for (unsigned k = 0; k < samples[o]; k++)
				kept[o] += !thinning_drops(d, 1000 + o, 0);
		thinning_step(d, drop, least, ledger);
	}
}

Test(thinning, without_need_all_are_kept)
{
	struct thinning d = { .random = 1 };
	unsigned kept[2];

	steps(&d, 20, 0, 10, (unsigned[]){ 1000, 25 }, 2, kept);
	cr_assert(kept[0] == 20000 && kept[1] == 500);
}

Test(thinning, an_owner_of_few_samples_loses_none)
{
	struct thinning d = { .random = 1 };
	unsigned kept[2];

	steps(&d, 20, CPULIMIT_ALL * 9 / 10, 0, (unsigned[]){ 1000, 25 }, 2, kept);
	steps(&d, 20, CPULIMIT_ALL * 9 / 10, 0, (unsigned[]){ 1000, 25 }, 2, kept);
	cr_assert_eq(kept[1], 500);
	/* A tenth of all samples is kept. */
	cr_assert(kept[0] > 1300 && kept[0] < 1900, "%u", kept[0]);
}

Test(thinning, owners_of_many_samples_keep_as_many_as_each_other)
{
	struct thinning d = { .random = 1 };
	unsigned kept[3];

	steps(&d, 20, CPULIMIT_ALL / 2, 0, (unsigned[]){ 2000, 500, 10 }, 3, kept);
	steps(&d, 20, CPULIMIT_ALL / 2, 0, (unsigned[]){ 2000, 500, 10 }, 3, kept);
	/* 1,255 of 2,510 in a step: ten, then all 500, and the rest. */
	cr_assert(kept[2] == 200 && kept[1] == 10000, "%u %u", kept[2], kept[1]);
	cr_assert(kept[0] > 13500 && kept[0] < 16000, "%u", kept[0]);
	steps(&d, 20, CPULIMIT_ALL * 3 / 4, 0, (unsigned[]){ 2000, 500, 10 }, 3, kept);
	steps(&d, 20, CPULIMIT_ALL * 3 / 4, 0, (unsigned[]){ 2000, 500, 10 }, 3, kept);
	cr_assert_eq(kept[2], 200);
	cr_assert(kept[1] > 5400 && kept[1] < 6800 && kept[0] > 5400 && kept[0] < 6800, "%u %u",
		  kept[1], kept[0]);
}

Test(thinning, a_few_are_kept_even_at_the_limit)
{
	struct thinning d = { .random = 1 };
	unsigned kept[2];

	steps(&d, 20, CPULIMIT_ALL, 60, (unsigned[]){ 1000, 25 }, 2, kept);
	steps(&d, 20, CPULIMIT_ALL, 60, (unsigned[]){ 1000, 25 }, 2, kept);
	cr_assert_eq(kept[1], 500);
	cr_assert(kept[0] > 500 && kept[0] < 900, "%u", kept[0]);
	steps(&d, 20, CPULIMIT_ALL, 0, (unsigned[]){ 1000, 25 }, 2, kept);
	steps(&d, 20, CPULIMIT_ALL, 0, (unsigned[]){ 1000, 25 }, 2, kept);
	cr_assert(kept[0] == 0 && kept[1] == 0);
}

Test(thinning, a_new_owner_is_bounded_in_its_first_step)
{
	struct thinning d = { .random = 1 };
	unsigned kept[2], fresh = 0;

	steps(&d, 20, CPULIMIT_ALL * 9 / 10, 0, (unsigned[]){ 1000, 25 }, 2, kept);
	for (unsigned i = 0; i < 1000; i++)
		fresh += !thinning_drops(&d, 77, 5);
	cr_assert(fresh < 500, "%u", fresh);
}

Test(thinning, the_same_user_in_another_container_is_another_owner)
{
	struct thinning d = { .random = 1 };
	unsigned lost = 0;

	for (unsigned s = 0; s < 20; s++) {
		for (unsigned i = 0; i < 1000; i++) {
			lost += i % 50 == 0 && thinning_drops(&d, 0, 7);
			(void)thinning_drops(&d, 0, 0);
		}
		thinning_step(&d, CPULIMIT_ALL * 9 / 10, 0, ledger);
	}
	cr_assert_eq(lost, 0);
}

Test(thinning, thousands_of_owners_share_a_place_and_idle_ones_go)
{
	static struct thinning d = { .random = 1 };
	unsigned kept[1];

	for (unsigned i = 0; i < 100000; i++)
		(void)thinning_drops(&d, i, 1);
	cr_assert_eq(d.len, THINNING_OWNERS);
	thinning_step(&d, CPULIMIT_ALL, 1, ledger);
	for (unsigned s = 0; s < 100; s++)
		thinning_step(&d, CPULIMIT_ALL / 2, 1, ledger);
	cr_assert_eq(d.len, 0);
	steps(&d, 20, CPULIMIT_ALL / 2, 1, (unsigned[]){ 10 }, 1, kept);
	cr_assert_eq(d.len, 1);
}

Test(thinning, owners_of_costly_samples_keep_fewer)
{
	struct thinning d = { .random = 1 };
	struct owner *costly = owners_get(ledger, (struct owner_key){ .uid = 1 }),
		     *cheap = owners_get(ledger, (struct owner_key){ .uid = 2 });
	unsigned kept[2] = { 0 };

	/* 20 samples of 100 units, and 20 of one; samples of 100 units in all may be kept. */
	for (unsigned s = 0; s < 60; s++) {
		for (unsigned i = 0; i < 20; i++) {
			const bool keeps = !thinning_drops(&d, 1, 0);

			costly->caused += keeps ? 99 * THINNING_BYTES : 0;
			kept[0] += s >= 20 && keeps;
			kept[1] += !thinning_drops(&d, 2, 0) && s >= 20;
		}
		thinning_step(&d, CPULIMIT_ALL, 100, ledger);
	}
	/* In 40 steps: 0.8 samples of a step, and all. */
	cr_expect(kept[0] > 15 && kept[0] < 60, "%u", kept[0]);
	cr_expect_eq(kept[1], 40 * 20);
	owner_put(ledger, costly);
	owner_put(ledger, cheap);
}

Test(thinning, an_owner_whose_samples_become_cheap_keeps_them_again)
{
	struct thinning d = { .random = 1 };
	struct owner *w = owners_get(ledger, (struct owner_key){ .uid = 1 });
	unsigned kept = 0;

	for (unsigned s = 0; s < 200; s++) {
		for (unsigned i = 0; i < 20; i++) {
			const bool keeps = !thinning_drops(&d, 1, 0);

			w->caused += s < 20 && keeps ? 99 * THINNING_BYTES : 0;
			kept += s >= 180 && keeps;
		}
		thinning_step(&d, CPULIMIT_ALL, 100, ledger);
	}
	cr_expect_eq(kept, 20 * 20);
	owner_put(ledger, w);
}
