/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/processes/bootclock.h"

#include <criterion/criterion.h>
#include "common/base/system/clock.h"

#define S 1000000000ull

static struct bootclock b;

static void expect(uint64_t mono_ns, uint64_t boot_ns, uint64_t vague_ns)
{
	uint64_t vague;

	cr_expect_eq(bootclock_at(&b, mono_ns, &vague), boot_ns);
	cr_expect_eq(vague, vague_ns);
}

Test(bootclock, clocks_that_stay_together_are_one_offset_apart)
{
	bootclock_note(&b, 10 * S, 15 * S);
	expect(9 * S, 14 * S, 0);
	bootclock_note(&b, 20 * S, 25 * S);
	expect(9 * S, 14 * S, 0);
	expect(21 * S, 26 * S, 0);
}

Test(bootclock, times_before_a_suspend_keep_their_offset)
{
	bootclock_note(&b, 10 * S, 10 * S);
	bootclock_note(&b, 20 * S, 20 * S);
	/* Eight seconds of sleep, somewhere between 20 and 21. */
	bootclock_note(&b, 21 * S, 29 * S);
	expect(19 * S, 19 * S, 0);
	expect(20 * S, 20 * S, 0);
	expect(20 * S + 1, 28 * S + 1, 8 * S);
	expect(21 * S, 29 * S, 8 * S);
	expect(22 * S, 30 * S, 0);
	bootclock_note(&b, 30 * S, 38 * S);
	expect(20 * S, 20 * S, 0);
	expect(22 * S, 30 * S, 0);
}

Test(bootclock, readings_a_moment_apart_are_no_suspend)
{
	bootclock_note(&b, 10 * S, 15 * S);
	bootclock_note(&b, 20 * S, 25 * S + 20000);
	expect(9 * S, 14 * S + 20000, 0);
	bootclock_note(&b, 21 * S, 26 * S);
	expect(21 * S, 26 * S, 0);
}

Test(bootclock, is_what_the_host_says)
{
	uint64_t vague;

	for (int i = 0; i < 100; i++)
		bootclock_read(&b);
	const uint64_t mono_ns = clock_mono_ns(), boot_ns = clock_boot_ns(),
		       at_ns = bootclock_at(&b, mono_ns, &vague);

	cr_expect_eq(vague, 0);
	cr_expect_lt(at_ns > boot_ns ? at_ns - boot_ns : boot_ns - at_ns, S / 100);
}
