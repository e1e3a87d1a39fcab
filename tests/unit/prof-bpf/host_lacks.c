/* SPDX-License-Identifier: Apache-2.0 */
/* What the host does when records were lost, or memory, room or descriptors lack. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "common/wire/msg.h"
#include "tests/host/world.h"
#include "tools/prof-bpf/host/files.h"
#include "tools/prof-bpf/host/maps.h"

TestSuite(host_lacks, .init = set_up, .fini = clean_up);

/* The number of calls for which there is no memory for mappings. */
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
	backing_put(add->backing);
	return -ENOMEM;
}

Test(host_lacks, scan_holds_what_older_records_say)
{
	uint64_t before = clock_mono_ns();

	make_proc(30, "running", 'S', 2, 7 * START_TICK_NS, 0,
		  "400000-401000 r-xp 00001000 08:01 100 /bin/x\n");
	make_proc(31, "zombie", 'Z', 1, 7 * START_TICK_NS, 0, "");
	cr_assert_eq(host_scan(host), 0);
	/* Records from before the scan: replayed after it. */
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
	make_proc(30, "ending", 'R', 1, 7 * START_TICK_NS, 0,
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

Test(host_lacks, lost_records_have_all_read_again)
{
	uint64_t start = start_program(10, 100), other_start = start_program(11, 100);

	settle();
	/* Meanwhile, unheard: 10 mapped more, 11 ended, 12 began. */
	make_proc(10, "program", 'S', 1, start, 0,
		  "400000-401000 r-xp 00001000 08:01 100 /bin/program\n"
		  "500000-501000 r-xp 00000000 08:01 105 /lib/new\n");
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
	expect_published(12, 1, M(0x600000, 0x601000, 0, 106));
	cr_assert(host_settled(host));
}

Test(host_lacks, mappings_that_there_was_no_memory_for_are_read_later)
{
	uint64_t start = start_program(10, 100);

	settle();
	/* One is mapped that is not kept; then not all of them are, or none. */
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
	/* Some without samples gave way. */
	cr_assert_leq(f.processes, HOST_MAX_PROCESSES);
	cr_assert_gt(f.processes, HOST_MAX_PROCESSES - 100);
	cr_assert_geq(f.limit, 500);
	cr_assert_eq(f.limit, gone);
	/* What has ended makes room. */
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
