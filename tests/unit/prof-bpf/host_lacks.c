/* SPDX-License-Identifier: Apache-2.0 */
/* The host when records are lost, or when memory, room or descriptors are short. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "tests/host/world.h"
#include "tools/prof-bpf/files/files.h"
#include "tools/prof-bpf/host/maps/maps.h"

TestSuite(host_lacks, .init = set_up, .fini = clean_up);

/* The number of calls that fail to get memory for mappings. */
static unsigned starved;

struct maps *__real_maps_new(void);
struct maps *__wrap_maps_new(void);
struct maps *__wrap_maps_new(void)
{
	if (!starved)
		return __real_maps_new();
	starved--;
	return NULL;
}

int __real_maps_add(struct maps **m, const struct map *add);
int __wrap_maps_add(struct maps **m, const struct map *add);
int __wrap_maps_add(struct maps **m, const struct map *add)
{
	if (!starved)
		return __real_maps_add(m, add);
	starved--;
	files_backing_put(add->backing);
	return -ENOMEM;
}

Test(host_lacks, scan_holds_what_older_records_say)
{
	uint64_t before = clock_mono_ns();

	make_proc(30, "running", 'S', 2, 7 * SAMPLE_START_TICK_NS, 0,
		  "400000-401000 r-xp 00001000 08:01 100 /bin/x\n");
	make_proc(31, "zombie", 'Z', 1, 7 * SAMPLE_START_TICK_NS, 0, "");
	cr_assert_eq(host_scan(host), 0);
	/* Records from before the scan are replayed after it. */
	now = before - 50 * MS;
	fork_of(1, 30);
	exec_of(30, "older");
	map_at(30, 0x400000, 0x1000, 0, 999, "/bin/older");
	begin_thread(30, 33);
	exit_of(30, 33);
	now = clock_mono_ns();
	settle();
	expect_published(30, 1, M(0x400000, 0x401000, 0x1000, 100));
	struct host_figures f;
	host_figures(host, &f);
	cr_assert_eq(f.processes, 1);
	exit_of(30, 32);
	cr_assert_not_null(fake_tables_process(tables, 30));
	exit_of(30, 30);
	cr_assert_null(fake_tables_process(tables, 30));
}

Test(host_lacks, exit_recorded_before_the_scan_saw_it_is_not_missed)
{
	uint64_t before = clock_mono_ns();

	/* /proc still shows it running, as it does for a moment. */
	make_proc(30, "ending", 'R', 1, 7 * SAMPLE_START_TICK_NS, 0,
		  "400000-401000 r-xp 00001000 08:01 100 /bin/x\n");
	cr_assert_eq(host_scan(host), 0);
	now = before - MS;
	exit_of(30, 30);
	now = clock_mono_ns();
	remove_proc(30);
	let_time_pass(1000 * MS);
	let_time_pass(1000 * MS);
	cr_assert_null(fake_tables_process(tables, 30));
	struct host_figures f;
	host_figures(host, &f);
	cr_assert_eq(f.processes, 0);
}

Test(host_lacks, lost_records_cause_all_processes_to_be_read_again)
{
	uint64_t start = start_program(10, 100), other_start = start_program(11, 100);

	look(sample_of(10, 10, start, "program"));
	start_program(13, 100);
	settle();
	/* Meanwhile, unnoticed: 10 and 13 mapped more, 11 ended, 12 began. */
	const char *maps = "400000-401000 r-xp 00001000 08:01 100 /bin/program\n"
			   "500000-501000 r-xp 00000000 08:01 105 /lib/new\n";
	make_proc(10, "program", 'S', 1, start, 0, maps);
	make_proc(13, "program", 'S', 1, start, 0, maps);
	make_proc(12, "unheard", 'S', 1, other_start, 0,
		  "600000-601000 r-xp 00000000 08:01 106 /bin/unheard\n");
	event((struct sideband_event){ .type = SIDEBAND_LOST, .count = 9 });
	cr_assert(!host_settled(host));
	now = clock_mono_ns() + 3000 * MS;
	settle();
	now += 2000 * MS;
	settle();
	expect_published(10, 2, M(0x400000, 0x401000, 0x1000, 100), M(0x500000, 0x501000, 0, 105));
	cr_assert_null(fake_tables_process(tables, 11));
	/* These have no samples, and are read when they have some. */
	cr_assert_null(fake_tables_process(tables, 12));
	cr_assert_null(fake_tables_process(tables, 13));
	look(sample_of(12, 12, other_start, "unheard"));
	look(sample_of(13, 13, start, "program"));
	settle();
	expect_published(12, 1, M(0x600000, 0x601000, 0, 106));
	expect_published(13, 2, M(0x400000, 0x401000, 0x1000, 100), M(0x500000, 0x501000, 0, 105));
	cr_assert(host_settled(host));
}

/* A tick comes with each answer of a worker. Such ticks once used a whole cpu, when a user had many
 * processes and made the kernel lose records. */
Test(host_lacks, a_check_after_lost_records_takes_a_part_of_the_time)
{
	struct host_figures f;

	for (uint32_t pid = 100; pid < 300; pid++)
		start_program(pid, 100);
	settle();
	for (uint32_t pid = 100; pid < 300; pid++)
		remove_proc(pid);
	event((struct sideband_event){ .type = SIDEBAND_LOST, .count = 9 });
	now = clock_mono_ns() + 3000 * MS;
	tick();
	host_figures(host, &f);
	const uint64_t left = f.processes;
	cr_assert(left > 0 && left < 200, "%lu", left);
	host_tick(host, now, now);
	host_figures(host, &f);
	cr_assert_eq(f.processes, left, "no time has passed");
	now += 1000 * MS;
	tick();
	host_figures(host, &f);
	cr_assert_lt(f.processes, left);
}

/* Any user can have many of these, and can make the kernel lose records endlessly. */
Test(host_lacks, after_lost_records_processes_without_samples_are_not_read)
{
	struct host_figures f;

	for (uint32_t pid = 99; pid < 200; pid++) {
		const uint64_t start = start_program(pid, 100);

		make_proc(pid, "program", 'S', 1, start, 0,
			  "400000-401000 r-xp 00001000 08:01 100 /bin/program\n");
		if (pid == 99)
			look(sample_of(99, 99, start, "program"));
	}
	settle();
	cr_assert_not_null(fake_tables_process(tables, 120));
	for (uint32_t pid = 200; pid < 300; pid++)
		make_proc(pid, "idle", 'S', 1, pid * SAMPLE_START_TICK_NS, 7,
			  "400000-401000 r-xp 00001000 08:01 100 /bin/x\n");
	host_figures(host, &f);
	const uint64_t seen = f.processes_seen, rescans = f.rescans;

	event((struct sideband_event){ .type = SIDEBAND_LOST, .count = 9 });
	for (int i = 0; i < 5; i++) {
		now += 3000 * MS;
		settle();
	}
	host_figures(host, &f);
	cr_assert_eq(f.processes_seen, seen, "%lu", f.processes_seen);
	cr_assert_leq(f.rescans, rescans + 1, "%lu", f.rescans);
	cr_assert_null(fake_tables_process(tables, 120));
	cr_assert_not_null(fake_tables_process(tables, 99));
}

Test(host_lacks, mappings_that_there_was_no_memory_for_are_read_later)
{
	uint64_t start = start_program(10, 100);

	settle();
	/* If one of a file's mappings is dropped, either the others are kept or none. */
	starved = 1;
	map_at(10, 0x500000, 0x1000, 0, 105, "/lib/new");
	make_proc(10, "program", 'S', 1, start, 0,
		  "400000-401000 r-xp 00001000 08:01 100 /bin/program\n"
		  "500000-501000 r-xp 00000000 08:01 105 /lib/new\n");
	for (int i = 0; i < 2; i++) {
		now += 3000 * MS;
		starved = 1;
		tick();
		cr_assert_eq(starved, 0);
		cr_assert(!host_settled(host));
	}
	now += 3000 * MS;
	settle();
	expect_published(10, 2, M(0x400000, 0x401000, 0x1000, 100), M(0x500000, 0x501000, 0, 105));
	cr_assert(host_settled(host));
}

Test(host_lacks, ceiling_of_processes_is_kept_and_counted)
{
	struct host_figures f;

	for (uint32_t i = 0; i < HOST_MAX_PROCESSES + 500; i++)
		fork_of(1, 1000 + i);
	host_figures(host, &f);
	/* Some processes without samples were evicted. */
	cr_assert_leq(f.processes, HOST_MAX_PROCESSES);
	cr_assert_gt(f.processes, HOST_MAX_PROCESSES - 100);
	cr_assert_geq(f.limit, 500);
	cr_assert_eq(f.limit, gone);
	/* A process that has ended makes room. */
	for (uint32_t i = 0; f.processes + i < HOST_MAX_PROCESSES; i++)
		fork_of(1, 80000 + i);
	const uint64_t limit = f.limit;
	exit_of(80000, 80000);
	fork_of(1, 90000);
	host_figures(host, &f);
	cr_assert_eq(f.limit, limit);
	cr_assert_eq(last_gone_pid, 80000);
}

Test(host_lacks, full_tables_are_tried_again_and_counted)
{
	struct host_figures f;

	look(sample_of(10, 10, start_program(10, 100), "program"));
	fake_tables_set_full(tables, true);
	settle();
	cr_assert_null(fake_tables_process(tables, 10));
	host_figures(host, &f);
	cr_assert_gt(f.limit, 0);
	fake_tables_set_full(tables, false);
	let_time_pass(1500 * MS);
	cr_assert_not_null(fake_tables_process(tables, 10));
}

Test(host_lacks, descriptors_and_objects_are_all_given_back)
{
	int before = dup(0);

	close(before);
	for (unsigned round = 0; round < 20; round++) {
		for (uint32_t i = 0; i < 50; i++) {
			uint64_t start = start_program(100 + i, 100 + i);

			look(sample_of(100 + i, 100 + i, start, "x"));
			if (i % 3 == 0)
				fork_of(100 + i, 500 + i);
		}
		if (round % 2)
			settle();
		for (uint32_t i = 0; i < 50; i++) {
			exit_of(100 + i, 100 + i);
			if (i % 3 == 0)
				exit_of(500 + i, 500 + i);
		}
	}
	settle();
	now = clock_mono_ns() + 2 * HOST_IDLE_FILE_NS;
	let_time_pass(HOST_GRACE_NS);
	let_time_pass(HOST_IDLE_FILE_NS);
	struct host_figures f;
	host_figures(host, &f);
	cr_assert_eq(f.processes, 0);
	cr_assert_eq(f.files, 1);
	int after = dup(0);
	cr_assert_eq(before, after);
	close(after);
}
