/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/profpipe/run/service/probabilistic.h"

#include <criterion/criterion.h>

#define MINUTE 60000000000ull
#define THROWN 20000

static unsigned heads(uint64_t seed, unsigned percent)
{
	unsigned n = 0;

	for (unsigned i = 0; i < THROWN; i++)
		n += probabilistic_samples(seed, i * MINUTE + 7, MINUTE, percent);
	return n;
}

Test(probabilistic, all_of_an_interval_has_one_choice)
{
	for (uint64_t i = 0; i < 1000; i++)
		cr_assert_eq(probabilistic_samples(1, i * MINUTE, MINUTE, 50),
			     probabilistic_samples(1, (i + 1) * MINUTE - 1, MINUTE, 50));
}

Test(probabilistic, as_many_intervals_are_sampled_as_asked_for)
{
	for (unsigned percent = 1; percent < 100; percent += 7) {
		const unsigned n = heads(42, percent), expected = THROWN / 100 * percent;

		cr_assert(n + THROWN / 50 > expected && n < expected + THROWN / 50,
			  "%u of %u at %u %%", n, THROWN, percent);
	}
	cr_assert_eq(heads(42, 100), THROWN);
	cr_assert_eq(heads(42, 0), 0);
}

Test(probabilistic, a_higher_threshold_only_adds_intervals)
{
	for (uint64_t i = 0; i < 1000; i++)
		cr_assert(!probabilistic_samples(9, i * MINUTE, MINUTE, 20) ||
			  probabilistic_samples(9, i * MINUTE, MINUTE, 30));
}

Test(probabilistic, hosts_choose_independently)
{
	unsigned both = 0;

	for (unsigned i = 0; i < THROWN; i++)
		both += probabilistic_samples(1, i * MINUTE, MINUTE, 50) &&
			probabilistic_samples(2, i * MINUTE, MINUTE, 50);
	cr_assert(both > THROWN / 100 * 23 && both < THROWN / 100 * 27, "%u", both);
}

Test(probabilistic, a_boot_keeps_its_seed)
{
	cr_assert_eq(probabilistic_seed(), probabilistic_seed());
}
