/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/limit/cpulimit.h"

#include <criterion/criterion.h>

#define SECOND 1000000000ull

/* Tools that want this much of a cpu for files, in thousandths, and this much for samples. The
 * limit is 100 thousandths. Returns the thousandths used over the last ten of these seconds. */
static uint64_t wanted(struct cpulimit *c, unsigned files, unsigned samples, unsigned seconds)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < seconds * 4; i++) {
		const uint64_t own = files * CPULIMIT_STEP_NS / 1000,
			       rest = own * 25 / (25 + c->rest_ms),
			       kept = samples * CPULIMIT_STEP_NS / 1000 * (CPULIMIT_ALL - c->drop) /
				      CPULIMIT_ALL;

		cpulimit_step(c, rest + kept);
		if (i >= (seconds - 10) * 4)
			sum += rest + kept;
	}
	return sum / (SECOND / 100);
}

static struct cpulimit begin(void)
{
	struct cpulimit c;

	cpulimit_init(&c, 5, 2);
	return c;
}

Test(cpulimit, a_tool_below_the_limit_does_not_rest)
{
	struct cpulimit c = begin();

	cr_assert_eq(wanted(&c, 10, 30, 30), 40);
	cr_assert(c.rest_ms == 0 && c.drop == 0);
}

Test(cpulimit, files_give_way_before_samples)
{
	struct cpulimit c = begin();
	const uint64_t used = wanted(&c, 1000, 40, 60);

	cr_assert(used > 50 && used <= 100, "%u", (unsigned)used);
	cr_assert(c.rest_ms > 0 && c.drop == 0, "%u %u", (unsigned)c.rest_ms, c.drop);
}

Test(cpulimit, samples_give_way_when_nothing_else_can)
{
	struct cpulimit c = begin();
	const uint64_t used = wanted(&c, 0, 400, 60);

	cr_assert(used > 70 && used <= 102, "%u", (unsigned)used);
	cr_assert(c.drop > 0);
	/* They come back when there is room. */
	(void)wanted(&c, 0, 20, 20);
	cr_assert(c.drop == 0 && c.rest_ms == 0);
}

/* prof-symd works on samples later: most of their cost waits in its queue, and it uses at most one
 * cpu. Draining costs a little, even if all samples are dropped. */
Test(cpulimit, the_limit_holds_though_samples_cost_time_later)
{
	for (unsigned cpus = 1; cpus <= 4; cpus++) {
		struct cpulimit c = begin();
		const uint64_t all = cpus * CPULIMIT_STEP_NS, draining = CPULIMIT_STEP_NS / 50;
		uint64_t queue = 0, used[200], most = 0, sum = 0;

		for (unsigned i = 0; i < 200; i++) {
			const uint64_t kept = all * (CPULIMIT_ALL - c.drop) / CPULIMIT_ALL;

			queue += kept / 5 * 4;
			const uint64_t now = queue < CPULIMIT_STEP_NS ? queue : CPULIMIT_STEP_NS;

			queue -= now;
			used[i] = draining + kept / 5 + now;
			cpulimit_step(&c, used[i]);
			sum += used[i];
			if (i >= 40)
				sum -= used[i - 40];
			if (i >= 80 && sum > most)
				most = sum;
		}
		/* In any ten seconds after the first ten. */
		cr_assert(most <= c.limit_ns + c.limit_ns / 10, "%u: %u of %u ms", cpus,
			  (unsigned)(most / 1000000), (unsigned)(c.limit_ns / 1000000));
		cr_assert(most >= c.limit_ns / 2);
	}
}

Test(cpulimit, without_a_limit_nothing_is_looked_at)
{
	struct cpulimit c;

	cpulimit_init(&c, 0, 2);
	cr_assert(!cpulimit_run(&c, NULL, SECOND));
}

Test(cpulimit, a_limit_that_changes_counts_what_was_used_before)
{
	struct cpulimit c = begin();

	cr_assert_eq(wanted(&c, 0, 60, 30), 60);
	cr_assert_eq(c.drop, 0);
	cpulimit_set(&c, 2);
	cpulimit_step(&c, 0);
	cr_assert_gt(c.drop, 0);
	cpulimit_set(&c, 50);
	cr_assert_eq(wanted(&c, 0, 60, 60), 60);
	cr_assert_eq(c.drop, 0);
}
