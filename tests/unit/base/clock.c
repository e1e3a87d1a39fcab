/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/system/clock.h"

#include <criterion/criterion.h>
#include <unistd.h>

Test(clock, times_are_converted)
{
	const struct timespec t = clock_timespec(1234567890123456789u);

	cr_assert_eq(t.tv_sec, 1234567890);
	cr_assert_eq(t.tv_nsec, 123456789);
	cr_assert_eq(clock_timespec_ns(t), 1234567890123456789u);
	cr_assert_eq(clock_timespec_ns((struct timespec){ 0 }), 0);
	cr_assert_eq(clock_timeval_ns((struct timeval){ .tv_sec = 5, .tv_usec = 6 }), 5000006000u);
	/* More than 32 bits of ns. */
	cr_assert_eq(clock_timespec_ns((struct timespec){ .tv_sec = 5, .tv_nsec = 999999999 }),
		     5999999999u);
	cr_assert_eq(clock_timespec(999999999).tv_sec, 0);
}

Test(clock, clocks_advance)
{
	const uint64_t mono_ns = clock_mono_ns(), boot_ns = clock_boot_ns();

	cr_assert(mono_ns && boot_ns >= mono_ns);
	cr_assert(clock_mono_ns() >= mono_ns && clock_boot_ns() >= boot_ns);
	cr_assert_gt(clock_wall_ns(), 1500000000u * UINT64_C(1000000000));
}

Test(clock, one_moment_is_near_on_all_clocks)
{
	const struct clock_moment a = clock_moment_now();

	usleep(1000);
	const struct clock_moment b = clock_moment_now();
	const uint64_t mono = b.mono_ns - a.mono_ns, wall = b.wall_ns - a.wall_ns;

	cr_assert_geq(mono, 1000000);
	cr_assert_lt(mono > wall ? mono - wall : wall - mono, 2000000, "%llu %llu",
		     (unsigned long long)mono, (unsigned long long)wall);
	cr_assert_eq(b.boot_ns - b.mono_ns - (a.boot_ns - a.mono_ns) + 2000000 < 4000000, 1);
}

Test(clock, another_process_has_cpu_time)
{
	cr_assert_gt(clock_cpu_ns(getpid()), 0);
	cr_assert_eq(clock_cpu_ns(0), 0);
	cr_assert_eq(clock_cpu_ns(-1), 0);
}
