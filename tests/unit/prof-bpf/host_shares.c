/* SPDX-License-Identifier: Apache-2.0 */
/* The shares of owners: files, slots, mappings, processes and time. */
#include "common/base/system/clock.h"
#include "tests/host/world.h"
#include "tools/prof-bpf/host/processes/processes.h"
#include "tools/prof-bpf/host/publish/publish.h"
#include "tools/prof-bpf/host/shares/mapping_turns.h"
#include "tools/prof-bpf/owners/owners.h"

TestSuite(host_shares, .init = set_up, .fini = clean_up);

/* A process of a user that maps n files and is sampled in all of them. */
static void use_files(uint32_t pid, uint32_t uid, uint64_t first_inode, unsigned n)
{
	uint64_t start = start_program(pid, first_inode);
	struct sample s = sample_of(pid, pid, start, "program");

	s.owner_uid = uid;
	look(s);
	for (unsigned i = 1; i < n; i++)
		map_at(pid, 0x70000000 + i * 0x10000ull, 0x1000, 0, first_inode + i, "/lib/a");
	settle();
	struct host_sample_ref ref = look(s);
	for (unsigned i = 1; i < n; i++) {
		const uint64_t at = 0x70000000 + i * 0x10000ull;

		publish_wants(host, ref.process, &at, 1);
	}
	settle();
}

static uint64_t held_by(uint32_t uid, enum owner_resource thing)
{
	struct owner *w = owners_get(host_owners(host), (struct owner_key){ .uid = uid });
	const uint64_t n = w->held[thing];

	owner_put(host_owners(host), w);
	return n;
}

static uint64_t slots_of(uint32_t uid)
{
	return held_by(uid, OWNER_SLOTS);
}

static uint64_t mappings_of(uint32_t uid)
{
	return held_by(uid, OWNER_MAPPINGS);
}

Test(host_shares, the_owner_with_most_slots_leaves_some_and_gives_up_first)
{
	eager = false;
	use_files(10, 1, 1000, 5000);
	use_files(11, 1, 10000, 3100);
	const uint64_t most = slots_of(1);
	cr_assert_geq(most, 7600);
	cr_assert_lt(most, 7700);
	use_files(12, 2, 20000, 60);
	cr_assert_eq(slots_of(2), 59);
	let_time_pass(15000 * MS);
	settle();
	cr_assert_eq(slots_of(2), 59);
	cr_assert_leq(slots_of(1), 7678 - 60);
}

Test(host_shares, the_smallest_owner_of_a_file_pays_for_it)
{
	const uint64_t lib = 0x700000;
	uint64_t start;

	eager = false;
	use_files(10, 1, 1000, 10);
	start = start_program(11, 1001);
	map_at(11, lib, 0x1000, 0, 1002, "/lib/b");
	settle();
	struct sample s = sample_of(11, 11, start, "program");
	s.owner_uid = 2;
	struct host_sample_ref ref = look(s);
	cr_assert_eq(slots_of(1), 9);
	const struct fake_process *p = fake_tables_process(tables, 11);
	host_slot_used(host, p->at[0].slot, ref.process);
	cr_assert_eq(slots_of(1), 8);
	cr_assert_eq(slots_of(2), 1);
}

Test(host_shares, process_is_published_again_when_a_file_of_it_lost_its_slot)
{
	eager = false;
	use_files(9, 1, 100, 2);
	const struct fake_process *p = fake_tables_process(tables, 9);
	const uint16_t slot = p->at[p->len - 1].slot;
	cr_assert_gt(slot, TABLES_UNASKED);
	now = clock_mono_ns();
	for (unsigned i = 0; i < TABLES_MAX_FILES; i++)
		fake_tables_touch(tables, (uint16_t)i, now + 1);
	fake_tables_touch(tables, slot, 1);
	use_files(10, 1, 1000, 5000);
	use_files(11, 3, 10000, 3100);
	let_time_pass(15000 * MS);
	settle();
	p = fake_tables_process(tables, 9);
	cr_assert_eq(p->at[p->len - 1].slot, TABLES_UNASKED);
}

Test(host_shares, an_owner_with_too_many_files_makes_room_for_others)
{
	struct host_figures f;

	eager = false;
	use_files(10, 1, 1000, 5000);
	use_files(11, 1, 10000, 5000);
	host_figures(host, &f);
	cr_assert_leq(f.files, HOST_MAX_FILES - 500);
	/* Even if many owners below their share have taken the rest. */
	for (uint32_t i = 0; i < 20; i++)
		use_files(20 + i, 20 + i, 20000 + 100 * i, 60);
	use_files(12, 2, 30000, 60);
	host_figures(host, &f);
	cr_assert_leq(f.files, HOST_MAX_FILES);
	cr_assert_eq(held_by(2, OWNER_FILES), 59);
	cr_assert_eq(slots_of(2), 59);
}

Test(host_shares, files_that_several_users_map_make_room_for_others)
{
	eager = false;
	for (uint32_t i = 0; i < 3; i++)
		use_files(10 + i, 1 + i, 1000, 8000);
	/* The owners below their share take the rest. */
	for (uint32_t i = 0; i < 10; i++)
		use_files(20 + i, 20 + i, 20000 + 100 * i, 60);
	use_files(40, 40, 30000, 60);
	cr_assert_eq(held_by(40, OWNER_FILES), 59);
	cr_assert_eq(slots_of(40), 59);
}

/* Files of ended processes are in use for a while, whatever others lose. */
Test(host_shares, an_owner_with_few_mappings_makes_no_room_for_others)
{
	struct host_figures f;

	eager = false;
	use_files(5, 50, 500, 3);
	const uint64_t before = mappings_of(50);

	const size_t published = fake_tables_process(tables, 5)->len;

	for (uint32_t i = 0; i < 100; i++)
		use_files(10 + i, 100 + i, 1000 + 100 * i, 100);
	for (uint32_t i = 0; i < 100; i++)
		exit_of(10 + i, 10 + i);
	use_files(200, 3, 30000, 2);
	host_figures(host, &f);
	cr_assert_gt(f.limit, 0);
	cr_assert_eq(mappings_of(50), before);
	cr_assert_eq(fake_tables_process(tables, 5)->len, published);
}

static void map_many(uint32_t pid, uint32_t uid, unsigned n)
{
	struct sample s = sample_of(pid, pid, start_program(pid, 100), "program");

	s.owner_uid = uid;
	look(s);
	for (unsigned i = 0; i < n; i++)
		map_at(pid, 0x70000000 + i * 0x2000ull, 0x1000, 0, 0, "//anon");
	settle();
}

Test(host_shares, the_owner_with_most_mappings_loses_some_for_others)
{
	struct host_figures f;

	map_many(10, 1, 100000);
	map_many(11, 1, 100000);
	map_many(12, 1, 100000);
	cr_assert_leq(mappings_of(1), HOST_ALL_MAPPINGS / 16 * 15);
	cr_assert_gt(mappings_of(1), HOST_ALL_MAPPINGS / 16 * 15 - 100);
	host_figures(host, &f);
	cr_assert_gt(f.limit, 30000);
	map_many(13, 2, 2000);
	cr_assert_eq(mappings_of(2), 2001);
	cr_assert_eq(fake_tables_process(tables, 13)->len, 2001);
	cr_assert_leq(mappings_of(1), HOST_ALL_MAPPINGS - 2001);
	exit_of(13, 13);
	let_time_pass(HOST_GRACE_NS + MS);
	cr_assert_eq(mappings_of(2), 0);
}

/* An owner for each of many ids, as in a user's namespace, takes all mappings with idle processes.
 * An owner above its share then still has room for what is sampled, as have others. */
Test(host_shares, idle_processes_of_many_owners_give_way_to_sampled_ones)
{
	for (uint32_t i = 0; i < 260; i++) {
		fork_of(1, 1000 + i);
		struct sample s = sample_of(1000 + i, 1000 + i, tick_start(now), "idle");

		s.owner_uid = 100000 + i;
		look(s);
		for (unsigned k = 0; k < 1000; k++)
			map_at(1000 + i, 0x70000000 + k * 0x2000ull, 0x1000, 0, 0, "//anon");
		/* A process that is forgotten and known again has no sample yet. */
		process_find(host, 1000 + i)->sampled = false;
	}
	settle();
	map_many(10, 2, 5000);
	map_many(11, 2, 5000);
	map_many(12, 3, 300);
	cr_assert_eq(process_find(host, 10)->maps->len, 5001);
	cr_assert_eq(process_find(host, 11)->maps->len, 5001);
	cr_assert_eq(process_find(host, 12)->maps->len, 301);
}

/* Otherwise each record would search all processes, at the priority of the main thread. */
Test(host_shares, mappings_beyond_the_limit_cost_little_beside_many_processes)
{
	for (uint32_t i = 0; i < 8000; i++)
		start_program(1000 + i, 100);
	for (uint32_t pid = 10; pid < 13; pid++)
		map_many(pid, 1, 100000);
	const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	map_many(13, 1, 100000);
	const uint64_t took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;

	cr_assert_lt(took_ns, 1500000000ull, "%llu ms", (unsigned long long)took_ns / 1000000);
}

Test(host_shares, large_processes_leave_mappings_to_small_ones_of_the_same_owner)
{
	map_many(10, 1, 100000);
	map_many(11, 1, 100000);
	map_many(12, 1, 100000);
	for (uint32_t pid = 20; pid < 30; pid++) {
		map_many(pid, 1, 1000);
		cr_assert_eq(fake_tables_process(tables, pid)->len, 1001);
	}
}

Test(host_shares, the_owner_with_most_processes_loses_unsampled_ones)
{
	fork_of(1, 5);
	struct sample s = sample_of(5, 5, tick_start(now), "many");
	s.owner_uid = 1;
	look(s);
	fork_of(1, 6);
	s = sample_of(6, 6, tick_start(now), "few");
	s.owner_uid = 2;
	look(s);
	for (uint32_t i = 0; i < HOST_MAX_PROCESSES - 10; i++)
		fork_of(5, 1000 + i);
	for (uint32_t i = 0; i < 100; i++)
		fork_of(6, 100000 + i);
	cr_assert_eq(held_by(2, OWNER_PROCESSES), 101);
	cr_assert_leq(held_by(1, OWNER_PROCESSES), HOST_MAX_PROCESSES - 101);
	cr_assert_gt(held_by(1, OWNER_PROCESSES), HOST_MAX_PROCESSES - 300);
	s = sample_of(5, 5, s.start_ns, "many");
	cr_assert_gt(held_by(1, OWNER_PROCESSES), 0);
}

Test(host_shares, an_owner_that_spent_too_much_time_waits_alone)
{
	struct owners *o = host_owners(host);
	struct owner *busy = owners_get(o, (struct owner_key){ .uid = 1 }),
		     *calm = owners_get(o, (struct owner_key){ .uid = 2 });
	const uint64_t at = clock_mono_ns();

	mapping_turns_spend(host, calm, false, 1 * MS, at);
	cr_assert(mapping_turns_may(host, busy, false, at));
	/* Its small processes wait only for the cost of small ones, not for that of its large
	 * ones. */
	mapping_turns_spend(host, busy, true, 300 * MS, at);
	cr_assert_not(mapping_turns_may(host, busy, true, at + 500 * MS));
	cr_assert(mapping_turns_may(host, busy, false, at));
	mapping_turns_spend(host, busy, false, 300 * MS, at);
	cr_assert_not(mapping_turns_may(host, busy, false, at + 1000 * MS));
	cr_assert(mapping_turns_may(host, calm, false, at));
	cr_assert(mapping_turns_may(host, busy, false, at + 20000 * MS));
	owner_put(o, busy);
	owner_put(o, calm);
}

/* 300 processes of a user whose time is used up wait for a turn. */
Test(host_shares, many_waiting_processes_are_checked_rarely_and_delay_no_other)
{
	struct owners *o = host_owners(host);
	struct owner *busy = owners_get(o, (struct owner_key){ .uid = 1 });
	struct host_figures f;

	start_program(10, 200);
	for (uint32_t pid = 1000; pid < 1300; pid++) {
		struct sample s = sample_of(pid, pid, start_program(pid, 100), "program");

		s.owner_uid = 1;
		look(s);
	}
	settle();
	mapping_turns_spend(host, busy, true, 20000 * MS, now);
	mapping_turns_spend(host, busy, false, 20000 * MS, now);
	for (uint32_t pid = 1000; pid < 1300; pid++)
		map_at(pid, 0x70000000, 0x1000, 0, 101, "/lib/a");
	host_tick(host, now, now);
	host_tick(host, now, now);
	host_figures(host, &f);
	const uint64_t published = f.publishes, refused = busy->refused[OWNER_MAPS_CPU],
		       looked_ns = now;

	cr_assert_geq(refused, 300);
	/* The next check of them is 300 us later. The process of another user does not wait for
	 * it. */
	map_at(10, 0x70000000, 0x1000, 0, 200, "/bin/program");
	host_tick(host, looked_ns + 100000, now);
	host_figures(host, &f);
	cr_assert_gt(f.publishes, published);
	cr_assert_eq(busy->refused[OWNER_MAPS_CPU], refused);
	host_tick(host, looked_ns + 400000, now);
	cr_assert_geq(busy->refused[OWNER_MAPS_CPU], refused + 300);
	owner_put(o, busy);
}

/* A failing publication can take a thousand times as long as usual. */
Test(host_shares, slow_publications_are_charged_and_bounded_in_each_tick)
{
	struct owner *busy, *calm;

	for (uint32_t pid = 1000; pid < 1030; pid++) {
		struct sample s = sample_of(pid, pid, start_program(pid, 100), "program");

		s.owner_uid = 1;
		look(s);
	}
	struct sample s = sample_of(10, 10, start_program(10, 101), "program");
	s.owner_uid = 2;
	look(s);
	settle();
	busy = owners_get(host_owners(host), (struct owner_key){ .uid = 1 });
	calm = owners_get(host_owners(host), (struct owner_key){ .uid = 2 });
	const uint64_t spent = owner_spent(busy, OWNER_MAPS_CPU, now);

	/* Dirty processes are published in the reverse order. */
	map_at(10, 0x70000000, 0x1000, 0, 101, "/lib/a");
	for (uint32_t pid = 1000; pid < 1030; pid++)
		map_at(pid, 0x70000000, 0x1000, 0, 101, "/lib/a");
	now = now > clock_mono_ns() ? now : clock_mono_ns();
	now += 5 * MS;
	fake_tables_slow(tables, 2 * MS);
	const unsigned before = fake_tables_process(tables, 10)->sets;
	const uint64_t began_ns = clock_mono_ns();
	host_tick(host, now, now);
	const uint64_t took_ns = clock_mono_ns() - began_ns;
	unsigned sets = 0;
	for (uint32_t pid = 1000; pid < 1030; pid++)
		sets += fake_tables_process(tables, pid)->len == 2;
	cr_assert(sets > 0 && sets <= 10, "%u", sets);
	/* It may only wait if the machine that runs the test is busy. */
	cr_assert(fake_tables_process(tables, 10)->sets > before ||
		  took_ns >= MAPPING_TURNS_SMALL_TICK_NS);
	sets = 0;
	cr_assert_geq(owner_spent(busy, OWNER_MAPS_CPU, now) - spent, 9 * MS);
	/* The rest follows in the order of arrival. */
	fake_tables_slow(tables, 0);
	let_time_pass(10 * MS);
	for (uint32_t pid = 1000; pid < 1030; pid++)
		sets += fake_tables_process(tables, pid)->len == 2;
	cr_assert_eq(sets, 30);
	owner_put(host_owners(host), busy);
	owner_put(host_owners(host), calm);
}

/* --- processes without a leader --- */

/* A process of a user whose leader has exited. */
static uint64_t leave_threads(uint32_t pid, uint32_t uid)
{
	const uint64_t start = start_program(pid, 100);
	struct sample s = sample_of(pid, pid + 1, start, "thread");

	begin_thread(pid, pid + 1);
	begin_thread(pid, pid + 2);
	s.owner_uid = uid;
	look(s);
	settle();
	exit_of(pid, pid);
	make_proc(pid, "program", 'Z', 3, start, uid, "");
	return start;
}

static bool is_known(uint32_t pid)
{
	return fake_tables_process(tables, pid) != NULL;
}

static void pass_seconds(unsigned n)
{
	for (unsigned i = 0; i < 10 * n; i++)
		let_time_pass(100 * MS);
}

Test(host_shares, an_idle_process_without_a_leader_is_checked_less_and_less_often)
{
	const uint64_t start = leave_threads(10, 1);

	pass_seconds(70);
	make_proc(10, "program", 'Z', 1, start, 1, "");
	pass_seconds(5);
	cr_assert(is_known(10));
	pass_seconds(64);
	cr_assert_not(is_known(10));
}

Test(host_shares, a_process_without_a_leader_is_checked_soon_after_an_exit)
{
	const uint64_t start = leave_threads(10, 1);

	pass_seconds(70);
	/* The record of the other thread is lost. */
	exit_of(10, 11);
	make_proc(10, "program", 'Z', 1, start, 1, "");
	cr_assert(is_known(10));
	pass_seconds(1);
	cr_assert_not(is_known(10));
}

Test(host_shares, a_process_without_a_leader_is_checked_soon_after_samples)
{
	const uint64_t start = leave_threads(10, 1);

	pass_seconds(70);
	for (unsigned i = 0; i < 100; i++) {
		struct sample s = sample_of(10, 11, start, "thread");

		s.owner_uid = 1;
		look(s);
		let_time_pass(100 * MS);
	}
	make_proc(10, "program", 'Z', 1, start, 1, "");
	pass_seconds(2);
	cr_assert_not(is_known(10));
}

Test(host_shares, many_processes_without_a_leader_are_checked_a_few_at_a_time)
{
	uint64_t start[200];
	unsigned known = 0;

	for (uint32_t i = 0; i < 200; i++)
		start[i] = leave_threads(1000 + 10 * i, 1);
	for (uint32_t i = 0; i < 200; i++)
		make_proc(1000 + 10 * i, "program", 'Z', 1, start[i], 1, "");
	now += 1000 * MS;
	host_tick(host, now, now);
	for (uint32_t i = 0; i < 200; i++)
		known += is_known(1000 + 10 * i);
	cr_assert_geq(known, 200 - 64);
	pass_seconds(3);
	for (uint32_t i = 0; i < 200; i++)
		cr_assert_not(is_known(1000 + 10 * i));
}

Test(host_shares, checks_of_processes_without_a_leader_wait_for_their_owner_alone)
{
	struct owner *busy = owners_get(host_owners(host), (struct owner_key){ .uid = 1 });
	const uint64_t of_busy = leave_threads(10, 1), of_calm = leave_threads(20, 2);

	mapping_turns_spend(host, busy, true, 2000 * MS, now);
	make_proc(10, "program", 'Z', 1, of_busy, 1, "");
	make_proc(20, "program", 'Z', 1, of_calm, 2, "");
	/* A test that was interrupted has also spent some time. */
	pass_seconds(4);
	cr_assert(is_known(10));
	cr_assert_not(is_known(20));
	pass_seconds(64);
	cr_assert_not(is_known(10));
	owner_put(host_owners(host), busy);
}
