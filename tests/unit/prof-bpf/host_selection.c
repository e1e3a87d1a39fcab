/* SPDX-License-Identifier: Apache-2.0 */
/* The processes that prof-bpf follows if it does not follow all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "tests/host/world.h"

TestSuite(host_selection, .init = set_up, .fini = clean_up);

Test(host_selection, only_selected_processes_and_their_descendants_are_tracked)
{
	uint64_t start = 7 * SAMPLE_START_TICK_NS;

	make_host(true, true);
	make_proc(30, "chosen", 'S', 1, start, 0, "400000-401000 r-xp 00001000 08:01 100 /bin/x\n");
	make_proc(31, "other", 'S', 1, start, 0, "400000-401000 r-xp 00001000 08:01 100 /bin/x\n");
	cr_assert_eq(host_select(host, 30), 0);
	cr_assert_eq(host_select(host, 99), -ESRCH);
	cr_assert_eq(host_scan(host), 0);
	now = clock_mono_ns();
	settle();
	expect_published(30, 1, M(0x400000, 0x401000, 0x1000, 100));
	cr_assert(fake_tables_process(tables, 30)->selected);
	cr_assert_null(fake_tables_process(tables, 31));
	fork_of(30, 40);
	fork_of(40, 41);
	fork_of(31, 50);
	settle();
	cr_assert(fake_tables_process(tables, 40)->selected);
	cr_assert(fake_tables_process(tables, 41)->selected);
	cr_assert_null(fake_tables_process(tables, 50));
}

Test(host_selection, the_end_of_the_last_selected_process_is_noticed)
{
	const uint64_t start = 7 * SAMPLE_START_TICK_NS;
	struct host_figures f;

	make_host(true, true);
	make_proc(30, "chosen", 'S', 1, start, 0, "400000-401000 r-xp 00001000 08:01 100 /bin/x\n");
	cr_assert_eq(host_select(host, 30), 0);
	now = clock_mono_ns();
	settle();
	for (int i = 0; i < 4; i++)
		let_time_pass(2000 * MS);
	host_figures(host, &f);
	cr_assert_eq(f.processes, 1);
	make_proc(30, "chosen", 'Z', 1, start, 0, "");
	let_time_pass(2000 * MS);
	host_figures(host, &f);
	cr_assert_eq(f.processes, 1);
	let_time_pass(2000 * MS);
	host_figures(host, &f);
	cr_assert_eq(f.processes, 0);
}

/* A host on which only 30 is selected. */
static void make_chosen(void)
{
	make_host(true, true);
	make_proc(30, "chosen", 'S', 1, 7 * SAMPLE_START_TICK_NS, 0,
		  "400000-401000 r-xp 00001000 08:01 100 /bin/x\n");
	cr_assert_eq(host_select(host, 30), 0);
	now = clock_mono_ns();
}

Test(host_selection, a_selected_one_is_sampled_before_its_file_is_open)
{
	make_chosen();
	tick();
	cr_assert_eq(open_jobs(), 1);
	cr_assert_not_null(fake_tables_process(tables, 30));
	cr_assert(fake_tables_process(tables, 30)->selected);
	cr_assert_eq(fake_tables_process(tables, 30)->start_ns, 7 * SAMPLE_START_TICK_NS);
	settle();
	expect_published(30, 1, M(0x400000, 0x401000, 0x1000, 100));
}

/* Its stat opens, but reading fails, as for lack of a descriptor or of memory. */
static void make_unreadable(uint32_t pid)
{
	char command[128];

	snprintf(command, sizeof(command), "cd %s/%u && rm stat && mkdir stat", proc, pid);
	cr_assert_eq(system(command), 0);
}

Test(host_selection, one_that_cannot_be_looked_at_now_is_not_taken_for_ended)
{
	struct host_figures f;

	make_chosen();
	settle();
	make_unreadable(30);
	host_event(host, &(struct sideband_event){ .type = SIDEBAND_LOST, .time_ns = now });
	for (int i = 0; i < 4; i++)
		let_time_pass(2000 * MS);
	host_figures(host, &f);
	cr_assert_eq(f.processes, 1);
	cr_assert_not_null(fake_tables_process(tables, 30));
	/* The same holds for a process whose first sample comes then. */
	make_proc(40, "fresh", 'S', 1, 9 * SAMPLE_START_TICK_NS, 0,
		  "400000-401000 r-xp 00001000 08:01 100 /bin/x\n");
	make_unreadable(40);
	cr_assert_eq(look(sample_of(40, 40, 9 * SAMPLE_START_TICK_NS, "fresh")).process->end_ns, 0);
	/* Those that have ended are forgotten. */
	remove_proc(30);
	remove_proc(40);
	let_time_pass(2000 * MS);
	let_time_pass(2000 * MS);
	host_figures(host, &f);
	cr_assert_eq(f.processes, 0);
}

Test(host_selection, a_reused_pid_is_not_selected)
{
	make_chosen();
	fork_of(30, 40);
	settle();
	cr_assert(fake_tables_process(tables, 40)->selected);
	exit_of(40, 40);
	now += 20 * MS;
	/* A process of another tree, whose forks are not reported. */
	exec_of(40, "foreign");
	fork_of(40, 41);
	settle();
	cr_assert_null(fake_tables_process(tables, 40));
	cr_assert_null(fake_tables_process(tables, 41));
}

Test(host_selection, children_of_the_selected_are_not_tracked_unless_asked_for)
{
	make_host(true, false);
	make_proc(30, "chosen", 'S', 1, 7 * SAMPLE_START_TICK_NS, 0,
		  "400000-401000 r-xp 00001000 08:01 100 /bin/x\n");
	cr_assert_eq(host_select(host, 30), 0);
	now = clock_mono_ns();
	fork_of(30, 40);
	settle();
	cr_assert_null(fake_tables_process(tables, 40));
}

Test(host_selection, our_own_are_flagged_by_pid_and_by_user)
{
	static const uint32_t uids[] = { 4242 };
	struct host_config c = { .tables = fake_tables_as_tables(tables),
				 .proc = proc,
				 .file_needs_rows = needs_rows,
				 .process_gone = process_gone,
				 .self_uids = uids,
				 .self_uid_count = 1 };

	host_free(host);
	cr_assert_eq(host_new(&c, &host), 0);
	make_proc(30, "by user", 'S', 1, SAMPLE_START_TICK_NS, 4242, "");
	make_proc(31, "by pid", 'S', 1, SAMPLE_START_TICK_NS, 0, "");
	make_proc(32, "neither", 'S', 1, SAMPLE_START_TICK_NS, 0, "");
	host_mark_self(host, 31);
	cr_assert_eq(host_scan(host), 0);
	now = clock_mono_ns();
	cr_assert_eq(look(sample_of(30, 30, SAMPLE_START_TICK_NS, "x")).process->flags,
		     MSG_PROCESS_SELF);
	cr_assert_eq(look(sample_of(31, 31, SAMPLE_START_TICK_NS, "x")).process->flags,
		     MSG_PROCESS_SELF);
	cr_assert_eq(look(sample_of(32, 32, SAMPLE_START_TICK_NS, "x")).process->flags, 0);
	host_mark_self(host, 32);
	cr_assert_eq(look(sample_of(32, 32, SAMPLE_START_TICK_NS, "x")).process->flags,
		     MSG_PROCESS_SELF);
}

/* --- processes that the kernel's programs select --- */

static uint32_t wanted_pid;

static bool is_wanted(void *ctx, uint32_t pid, uint64_t exec_ns)
{
	(void)ctx;
	cr_assert(exec_ns > 0);
	return pid == wanted_pid;
}

static uint64_t known_processes(void)
{
	struct host_figures f;

	host_figures(host, &f);
	return f.processes;
}

static const char program_maps[] = "400000-401000 r-xp 00001000 08:01 100 /bin/x\n";

Test(host_selection, processes_that_are_not_sampled_are_not_read)
{
	const uint64_t start = 7 * SAMPLE_START_TICK_NS;

	make_host_of_wanted(is_wanted);
	wanted_pid = 0;
	make_proc(30, "a", 'S', 1, start, 0, program_maps);
	cr_assert_eq(host_scan(host), 0);
	fork_of(30, 40);
	exec_of(40, "b");
	map_at(40, 0x400000, 0x1000, 0x1000, 100, "/bin/x");
	settle();
	cr_assert_eq(known_processes(), 0);
	cr_assert_eq(open_jobs(), 0);
	cr_assert_null(fake_tables_process(tables, 30));
	cr_assert_null(fake_tables_process(tables, 40));
	/* Lost records are no reason to read the processes of others. */
	event((struct sideband_event){ .type = SIDEBAND_LOST, .count = 1 });
	let_time_pass(3000 * MS);
	cr_assert_eq(known_processes(), 0);
}

Test(host_selection, a_process_is_known_from_its_first_sample_on_with_all_its_mappings)
{
	const uint64_t start = 7 * SAMPLE_START_TICK_NS;

	make_host_of_wanted(is_wanted);
	wanted_pid = 0;
	make_proc(30, "a", 'S', 1, start, 0, program_maps);
	cr_assert_eq(host_scan(host), 0);
	(void)look(sample_of(30, 30, start, "a"));
	settle();
	expect_published(30, 1, M(0x400000, 0x401000, 0x1000, 100));
	fork_of(30, 40);
	settle();
	cr_assert_eq(known_processes(), 2);
}

Test(host_selection, an_exec_decides_again_whether_a_process_is_known)
{
	const uint64_t start = 7 * SAMPLE_START_TICK_NS;

	make_host_of_wanted(is_wanted);
	make_proc(30, "a", 'S', 1, start, 0, program_maps);
	cr_assert_eq(host_scan(host), 0);
	const uint32_t first = look(sample_of(30, 30, start, "a")).process->id;
	settle();
	/* It is no longer wanted. */
	wanted_pid = 0;
	exec_of(30, "b");
	settle();
	cr_assert_eq(known_processes(), 0);
	cr_assert_null(fake_tables_process(tables, 30));
	/* It is still sampled, because the answer came too late: the third program of this pid
	 * counts as the second one, which is known. */
	struct host_process *p = look(sample_of(30, 30, start, "b")).process;
	cr_assert(p->id != first);
	cr_assert_eq(p->execs, 1);
	settle();
	expect_published(30, 1, M(0x400000, 0x401000, 0x1000, 100));
	/* A process that was unknown is wanted. */
	make_proc(50, "c", 'S', 1, start, 0, program_maps);
	wanted_pid = 50;
	exec_of(50, "c");
	settle();
	expect_published(50, 1, M(0x400000, 0x401000, 0x1000, 100));
}

Test(host_selection, processes_outside_of_our_pid_namespace_have_no_number)
{
	fork_of(0, 0);
	fork_of(0, UINT32_MAX);
	exec_of(0, "a");
	exec_of(UINT32_MAX, "b");
	exit_of(0, 0);
	map_at(0, 0x400000, 0x1000, 0x1000, 100, "/bin/x");
	settle();
	cr_assert_eq(known_processes(), 0);
	/* But a process that enters from there is ours. */
	fork_of(0, 60);
	cr_assert_eq(known_processes(), 1);
}
