/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/run/wakeups.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#define MS 1000000ull
#define HZ 20 /* a tick each 250 ms */

static struct wakeups w;
static int ends[2];

static void open_both(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	cr_assert_eq(wakeups_open(&w, HZ), 0);
	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(write(ends[1], "x", 1), 1);
}

TestSuite(wakeups, .init = open_both, .timeout = 10);

/* The sources that wake within this many ms, as 1 << enum wakeups_source. */
static unsigned woken(int ms)
{
	struct epoll_event e[8];
	const int n = epoll_wait(w.epoll, e, 8, ms);
	unsigned ret = 0;

	for (int i = 0; i < n; i++)
		ret |= 1u << e[i].data.u32;
	return ret;
}

Test(wakeups, the_timer_is_faster_at_higher_rates_within_bounds)
{
	cr_expect_eq(wakeups_drain_ms(1), 250);
	cr_expect_eq(wakeups_drain_ms(20), 250);
	cr_expect_eq(wakeups_drain_ms(99), 50);
	cr_expect_eq(wakeups_drain_ms(400), 12);
	cr_expect_eq(wakeups_drain_ms(1999), 10);
}

Test(wakeups, a_descriptor_wakes_while_it_is_heard)
{
	cr_assert_eq(wakeups_add(&w, ends[0], WAKEUPS_LIFE, WAKEUPS_ALWAYS), 0);
	cr_expect_eq(woken(0), 1u << WAKEUPS_LIFE);
	cr_expect_eq(woken(0), 1u << WAKEUPS_LIFE);
	wakeups_listen(&w, ends[0], WAKEUPS_LIFE, false);
	cr_expect_eq(woken(0), 0);
	wakeups_listen(&w, ends[0], WAKEUPS_LIFE, true);
	cr_expect_eq(woken(0), 1u << WAKEUPS_LIFE);
}

Test(wakeups, one_that_wakes_once_waits_to_be_heard_again)
{
	cr_assert_eq(wakeups_add(&w, ends[0], WAKEUPS_SIDEBAND, WAKEUPS_ONCE), 0);
	cr_expect_eq(woken(0), 1u << WAKEUPS_SIDEBAND);
	cr_expect_eq(woken(0), 0);
	wakeups_listen_again(&w, ends[0], WAKEUPS_SIDEBAND);
	cr_expect_eq(woken(0), 1u << WAKEUPS_SIDEBAND);
	cr_expect_eq(woken(0), 0);
}

Test(wakeups, one_with_an_edge_wakes_for_what_is_new)
{
	cr_assert_eq(wakeups_add(&w, ends[0], WAKEUPS_CPUS, WAKEUPS_EDGE), 0);
	cr_expect_eq(woken(0), 1u << WAKEUPS_CPUS);
	cr_expect_eq(woken(0), 0);
	cr_assert_eq(write(ends[1], "y", 1), 1);
	cr_expect_eq(woken(0), 1u << WAKEUPS_CPUS);
}

Test(wakeups, a_missing_descriptor_is_no_error)
{
	cr_expect_eq(wakeups_add(&w, -1, WAKEUPS_LIFE, WAKEUPS_ALWAYS), 0);
}

Test(wakeups, a_tick_can_come_earlier_and_the_next_ones_keep_their_distance)
{
	cr_expect(!wakeups_ticked(&w));
	wakeups_tick_after(&w, 5 * MS);
	cr_expect_leq(wakeups_next_ns(&w), 5 * MS);
	cr_expect_eq(woken(5000), 1u << WAKEUPS_TIMER);
	cr_expect(wakeups_ticked(&w));
	cr_expect_gt(wakeups_next_ns(&w), 5 * MS);
	cr_expect_leq(wakeups_next_ns(&w), 250 * MS);
}

Test(wakeups, a_signal_wakes)
{
	cr_expect(!wakeups_signalled(&w));
	cr_assert_eq(raise(SIGTERM), 0);
	cr_expect(woken(0) & 1u << WAKEUPS_SIGNAL);
	cr_expect(wakeups_signalled(&w));
	cr_expect(!wakeups_signalled(&w));
}
