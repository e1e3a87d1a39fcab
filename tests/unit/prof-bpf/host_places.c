/* SPDX-License-Identifier: Apache-2.0 */
/* The places in the map of processes: who loses some when they are scarce, and sweeps of entries
 * that belong to no known process. */
#include "common/base/system/clock.h"
#include "tests/host/world.h"
#include "tools/prof-bpf/host/shares/places.h"
#include "tools/prof-bpf/owners/owners.h"

#define PLACES 300u

TestSuite(host_places, .init = set_up, .fini = clean_up);

static uint64_t entries_of(uint32_t uid)
{
	struct owner *w = owners_get(host_owners(host), (struct owner_key){ .uid = uid });
	const uint64_t n = w->held[OWNER_ENTRIES];

	owner_put(host_owners(host), w);
	return n;
}

/* A program of a user, with a sample. */
static uint64_t sampled_program(uint32_t pid, uint32_t uid)
{
	const uint64_t start = start_program(pid, 100);
	struct sample s = sample_of(pid, pid, start, "program");

	s.owner_uid = uid;
	look(s);
	settle();
	return start;
}

static bool is_entered(uint32_t pid)
{
	return fake_tables_process(tables, pid) != NULL;
}

Test(host_places, entry_is_charged_to_its_owner_until_the_process_ends)
{
	struct sample s = sample_of(10, 10, start_program(10, 100), "program");

	settle();
	cr_assert(is_entered(10));
	s.owner_uid = 1;
	look(s);
	settle();
	cr_assert_eq(entries_of(1), 1);
	/* Its child has one from the kernel's hook; so has its next program. */
	fake_tables_enter(tables, 11);
	fork_of(10, 11);
	cr_assert_eq(entries_of(1), 2);
	exec_of(10, "next");
	map_at(10, 0x400000, 0x1000, 0, 101, "/bin/next");
	cr_assert_eq(entries_of(1), 2);
	exit_of(11, 11);
	cr_assert_eq(entries_of(1), 1);
	exit_of(10, 10);
	cr_assert_eq(entries_of(1), 0);
	let_time_pass(HOST_GRACE_NS + MS);
	cr_assert_eq(entries_of(1), 0);
	cr_assert_eq(fake_tables_processes(tables), 0);
}

Test(host_places, the_owner_with_most_entries_leaves_a_place_at_once)
{
	fake_tables_set_places(tables, PLACES);
	for (uint32_t i = 0; i < PLACES; i++)
		sampled_program(1000 + i, 1);
	cr_assert_eq(entries_of(1), PLACES);
	sampled_program(10, 2);
	cr_assert(is_entered(10));
	cr_assert_eq(entries_of(2), 1);
	cr_assert_lt(entries_of(1), PLACES);
	/* Those that were sampled last keep theirs. */
	cr_assert_not(is_entered(1000));
	cr_assert(is_entered(1000 + PLACES - 1));
}

Test(host_places, kernel_threads_and_processes_without_entry_do_not_make_an_owner_large)
{
	fake_tables_set_places(tables, PLACES);
	sampled_program(10, 0);
	for (uint32_t pid = 20; pid < 20 + 2 * PLACES; pid++) {
		struct sample s = sample_of(pid, pid, tick_start(now), "kworker");

		s.flags |= SAMPLE_KERNEL_THREAD;
		look(s);
	}
	for (uint32_t i = 0; i < PLACES; i++)
		sampled_program(2000 + i, 1);
	sampled_program(11, 2);
	cr_assert(is_entered(10));
	cr_assert(is_entered(11));
}

Test(host_places, places_that_the_hook_filled_are_free_at_the_next_tick)
{
	fake_tables_set_places(tables, PLACES);
	sampled_program(10, 2);
	sampled_program(1000, 1);
	/* The map has some more places than prof-bpf uses. */
	fake_tables_set_places(tables, PLACES + 20);
	for (uint32_t pid = 2000; pid < 2000 + PLACES + 10; pid++) {
		fake_tables_enter(tables, pid);
		fork_of(1000, pid);
	}
	fake_tables_set_places(tables, PLACES);
	cr_assert_gt(fake_tables_processes(tables), PLACES);
	tick();
	cr_assert_leq(fake_tables_processes(tables), PLACES);
	cr_assert(is_entered(10));
}

Test(host_places, children_that_the_hook_could_not_enter_are_not_charged)
{
	fake_tables_set_places(tables, PLACES);
	sampled_program(10, 2);
	for (uint32_t i = 0; i < PLACES - 1; i++)
		sampled_program(1000 + i, 1);
	for (uint32_t pid = 2000; pid < 2100; pid++)
		fork_of(1000, pid);
	cr_assert_eq(entries_of(1), PLACES - 1);
	/* So the entries that are withdrawn for another owner are real ones. */
	sampled_program(11, 3);
	cr_assert(is_entered(11));
}

Test(host_places, process_of_an_owner_below_its_share_does_not_wait_long)
{
	fake_tables_set_places(tables, PLACES);
	/* Nobody knows of the entries that take all places. */
	for (uint32_t pid = 2000; pid < 2000 + PLACES; pid++)
		fake_tables_enter(tables, pid);
	sampled_program(11, 2);
	cr_assert_not(is_entered(11));
	fake_tables_set_places(tables, PLACES + 10);
	tick();
	cr_assert(is_entered(11));
}

Test(host_places, unsampled_processes_take_no_scarce_place)
{
	fake_tables_set_places(tables, PLACES);
	sampled_program(10, 2);
	for (uint32_t i = 0; i < PLACES - 1; i++)
		sampled_program(1000 + i, 1);
	cr_assert_eq(fake_tables_processes(tables), PLACES);
	for (uint32_t pid = 2001; pid < 2100; pid++)
		fork_of(1000 + PLACES - 2, pid);
	fork_of(1000 + PLACES - 2, 2000);
	const uint64_t start = tick_start(now);
	settle();
	for (uint32_t i = 0; i < PLACES - 1; i++)
		cr_assert(is_entered(1000 + i));
	cr_assert_leq(fake_tables_processes(tables), PLACES);
	/* But one with a sample does. */
	struct sample s = sample_of(2000, 2000, start, "program");
	s.owner_uid = 1;
	look(s);
	settle();
	cr_assert(is_entered(2000));
	cr_assert(is_entered(10));
}

Test(host_places, run_for_selected_programs_withdraws_nothing)
{
	make_host(true, true);
	fake_tables_set_places(tables, 2);
	for (uint32_t pid = 10; pid < 13; pid++) {
		make_proc(pid, "program", 'S', 1, tick_start(now), 0, "");
		(void)host_select(host, pid);
	}
	settle();
	cr_assert(is_entered(10));
	cr_assert(is_entered(11));
	cr_assert_not(is_entered(12));
}

Test(host_places, entry_of_a_refused_fork_goes)
{
	make_host_with(64 << 10);
	const uint64_t start = start_program(10, 100);
	look(sample_of(10, 10, start, "program"));
	settle();
	unsigned refused = 0;
	for (uint32_t pid = 1000; pid < 1400; pid++) {
		fake_tables_enter(tables, pid);
		fork_of(10, pid);
	}
	settle();
	struct host_figures f;
	host_figures(host, &f);
	for (uint32_t pid = 1000; pid < 1400; pid++)
		refused += is_entered(pid);
	cr_assert_leq(refused, f.processes);
}

Test(host_places, entry_of_a_fork_by_an_unknown_parent_goes)
{
	fake_tables_enter(tables, 11);
	fork_of(10, 11);
	cr_assert_not(is_entered(11));
	/* It can only be sampled with an entry. */
	make_host(true, true);
	fake_tables_enter(tables, 11);
	fork_of(10, 11);
	cr_assert(is_entered(11));
}

Test(host_places, entry_of_an_unknown_process_goes_with_the_exit_of_its_leader)
{
	fake_tables_enter(tables, 11);
	exit_of(11, 12);
	cr_assert(is_entered(11));
	exit_of(11, 11);
	cr_assert_not(is_entered(11));
}

static uint64_t boot_now(void)
{
	return now + (clock_ns(CLOCK_BOOTTIME) - clock_mono_ns());
}

Test(host_places, sweep_drops_entries_of_unknown_processes_but_not_new_ones)
{
	sampled_program(10, 1);
	for (uint32_t pid = 1000; pid < 1300; pid++)
		fake_tables_enter(tables, pid);
	settle();
	cr_assert(is_entered(1000));
	let_time_pass(PLACES_SWEEP_NS);
	/* The record of its fork may still come. */
	fake_tables_enter_at(tables, 20, boot_now());
	settle();
	cr_assert(is_entered(10));
	cr_assert(is_entered(20));
	cr_assert_eq(fake_tables_processes(tables), 2);
	let_time_pass(PLACES_SWEEP_NS);
	cr_assert_not(is_entered(20));
	cr_assert(is_entered(10));
}

Test(host_places, sweep_comes_soon_when_a_process_found_no_place)
{
	fake_tables_set_places(tables, PLACES);
	for (uint32_t pid = 1000; pid < 1000 + PLACES; pid++)
		fake_tables_enter(tables, pid);
	sampled_program(10, 1);
	cr_assert_not(is_entered(10));
	let_time_pass(3100 * MS);
	settle();
	let_time_pass(3100 * MS);
	settle();
	cr_assert(is_entered(10));
	cr_assert_eq(fake_tables_processes(tables), 1);
}

Test(host_places, sweep_charges_an_entry_that_the_host_did_not_know_of)
{
	make_proc(10, "program", 'S', 1, tick_start(now), 1, "");
	cr_assert_eq(host_scan(host), 0);
	settle();
	cr_assert_eq(entries_of(1), 0);
	fake_tables_enter(tables, 10);
	let_time_pass(PLACES_SWEEP_NS + MS);
	settle();
	let_time_pass(PLACES_SWEEP_NS + MS);
	cr_assert(is_entered(10));
	cr_assert_eq(entries_of(1), 1);
}

Test(host_places, sweep_of_a_run_for_selected_programs_keeps_what_runs)
{
	make_host(true, true);
	make_proc(11, "program", 'S', 1, tick_start(now), 0, "");
	fake_tables_enter(tables, 11);
	fake_tables_enter(tables, 12);
	settle();
	let_time_pass(PLACES_SWEEP_NS + MS);
	settle();
	cr_assert(is_entered(11));
	cr_assert_not(is_entered(12));
}
