/* SPDX-License-Identifier: Apache-2.0 */
/* Processes and threads over time. */
#include <errno.h>
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "tests/host/world.h"
#include "tools/prof-bpf/kernel/record.h"

TestSuite(host, .init = set_up, .fini = clean_up);

Test(host, program_is_published_with_its_file_once_that_is_open)
{
	uint64_t start = start_program(10, 100);

	tick();
	cr_assert_null(fake_tables_process(tables, 10));
	cr_assert_eq(job_count, 1);
	cr_assert_eq(jobs[0].q.kind, OPENER_MAPPING);
	cr_assert_eq(jobs[0].q.pid, 10);
	cr_assert_eq(jobs[0].q.start, 0x400000);
	cr_assert_eq(jobs[0].q.end, 0x401000);
	cr_assert(!host_settled(host));
	answer_all();
	tick();
	expect_published(10, 1, M(0x400000, 0x401000, 0x1000, 100));
	cr_assert_eq(fake_tables_process(tables, 10)->start_ns, start);
	cr_assert_eq(rows_asked, 1);
	cr_assert(host_settled(host));
}

Test(host, code_in_no_file_is_published_while_a_file_is_still_awaited)
{
	start_program(10, 100);
	settle();
	map_at(10, 0x700000, 0x1000, 0, 0, "//anon");
	map_at(10, 0x800000, 0x1000, 0, 101, "/lib/a");
	tick();
	expect_published(10, 2, M(0x400000, 0x401000, 0x1000, 100), M(0x700000, 0x701000, 0, 0));
	answer_all();
	tick();
	expect_published(10, 3, M(0x400000, 0x401000, 0x1000, 100), M(0x700000, 0x701000, 0, 0),
			 M(0x800000, 0x801000, 0, 101));
}

Test(host, sample_gets_the_process_of_its_time)
{
	uint64_t start = start_program(10, 100), between;

	between = now;
	exec_of(10, "second");
	struct sample s = sample_of(10, 10, start, "program");
	s.time_ns = between;
	struct host_sample_ref old = look(s);
	s.time_ns = now + 1;
	struct host_sample_ref new = look(s);
	cr_assert_neq(old.process->id, new.process->id);
	cr_assert_eq(old.process->execs, 1);
	cr_assert_eq(new.process->execs, 2);
	cr_assert_eq(new.process->start_ns, start);
	cr_assert_arr_eq(new.process->comm, "second", 7);
	cr_assert_neq(old.thread->id, new.thread->id);
}

Test(host, a_sample_walked_with_former_mappings_is_recognized)
{
	uint64_t start = start_program(10, 100);

	settle();
	struct host_process *p = look(sample_of(10, 10, start, "program")).process;
	const uint32_t first = p->generation;
	cr_assert(host_walked_with(p, first));
	map_at(10, 0x700000, 0x1000, 0, 101, "/lib/a");
	settle();
	const uint32_t second = p->generation;
	cr_assert_neq(first, second);
	cr_assert(host_walked_with(p, first) && host_walked_with(p, second));
	/* A forked process has its parent's mappings until it has its own. */
	fork_of(10, 11);
	struct host_process *child = look(sample_of(11, 11, tick_start(now), "program")).process;
	cr_assert(host_walked_with(child, second));
	exec_of(10, "second");
	p = look(sample_of(10, 10, start, "second")).process;
	cr_assert(!host_walked_with(p, first) && !host_walked_with(p, second));
	map_at(10, 0x400000, 0x1000, 0x1000, 102, "/bin/second");
	settle();
	cr_assert_neq(p->generation, second);
	cr_assert(host_walked_with(p, p->generation) && !host_walked_with(p, second));
}

Test(host, published_mappings_say_when_execs_were_last_read)
{
	start_program(10, 100);
	settle();
	const uint64_t heard = now;
	map_at(10, 0x700000, 0x1000, 0, 101, "/lib/a");
	/* A file was opened and published at once, while records still wait in the rings. */
	for (int i = 0; i < 5; i++) {
		now += 5 * MS;
		answer_all();
		host_tick(host, now, heard);
	}
	cr_assert_eq(fake_tables_process(tables, 10)->len, 2);
	cr_assert_eq(fake_tables_process(tables, 10)->heard_ns, heard);
}

Test(host, reused_pid_is_another_process)
{
	uint64_t start = start_program(10, 100);
	struct host_sample_ref a = look(sample_of(10, 10, start, "program"));
	uint32_t id = a.process->id;
	uint64_t before = now;

	exit_of(10, 10);
	cr_assert_neq(a.process->end_ns, 0);
	now += 20 * MS;
	uint64_t second_start = start_program(10, 100);
	struct sample s = sample_of(10, 10, start, "program");
	s.time_ns = before;
	cr_assert_eq(look(s).process->id, id);
	s.time_ns = now;
	s.start_ns = second_start;
	struct host_sample_ref b = look(s);
	cr_assert_neq(b.process->id, id);
	cr_assert_eq(b.process->end_ns, 0);
	cr_assert_eq(gone, 0);
	let_time_pass(HOST_GRACE_NS * 2);
	cr_assert_eq(last_gone_pid, 10);
	s.time_ns = now;
	cr_assert_eq(look(s).process->id, b.process->id);
}

Test(host, lost_exit_is_made_up_for_by_the_next_fork_of_the_pid)
{
	uint64_t start = start_program(10, 100);
	uint32_t id = look(sample_of(10, 10, start, "program")).process->id;

	now += 50 * MS;
	fork_of(1, 10);
	cr_assert_neq(look(sample_of(10, 10, tick_start(now), "x")).process->id, id);
}

Test(host, the_end_is_reported_after_the_grace_period)
{
	struct host_figures f;

	start_program(10, 100);
	settle();
	cr_assert_not_null(fake_tables_process(tables, 10));
	exit_of(10, 10);
	cr_assert_null(fake_tables_process(tables, 10));
	tick();
	cr_assert_eq(gone, 0);
	let_time_pass(HOST_GRACE_NS + MS);
	cr_assert_eq(gone, 2);
	cr_assert_eq(last_gone_execs, 1);
	let_time_pass(HOST_IDLE_FILE_NS + HOST_GRACE_NS);
	let_time_pass(HOST_IDLE_FILE_NS + HOST_GRACE_NS);
	host_figures(host, &f);
	cr_assert_eq(f.processes, 0);
	cr_assert_eq(f.threads, 0);
	/* The vDSO's. */
	cr_assert_eq(f.files, 1);
	cr_assert_eq(f.open_fds, 1);
	cr_assert_eq(fake_tables_slots(tables), 1);
}

Test(host, leader_may_go_before_its_threads)
{
	uint64_t start = start_program(10, 100);

	begin_thread(10, 11);
	begin_thread(10, 12);
	settle();
	exit_of(10, 10);
	/* Its threads still exist, so /proc has a zombie with threads. */
	make_proc(10, "program", 'Z', 3, start, 0, "");
	let_time_pass(1000 * MS);
	cr_assert_not_null(fake_tables_process(tables, 10));
	exit_of(10, 12);
	cr_assert_eq(look(sample_of(10, 11, start, "t")).process->end_ns, 0);
	exit_of(10, 11);
	cr_assert_null(fake_tables_process(tables, 10));
}

Test(host, a_leader_whose_threads_ended_unseen_ends)
{
	uint64_t start = start_program(10, 100);

	/* A thread whose exit record was lost. */
	begin_thread(10, 11);
	settle();
	exit_of(10, 10);
	cr_assert_not_null(fake_tables_process(tables, 10));
	make_proc(10, "program", 'Z', 1, start, 0, "");
	let_time_pass(1000 * MS);
	cr_assert_null(fake_tables_process(tables, 10));
}

Test(host, exec_by_a_thread_goes_on_as_the_leader)
{
	uint64_t start = start_program(10, 100);

	begin_thread(10, 11);
	/* The kernel ends all other threads, also the old leader; then this thread takes the
	 * leader's id. */
	exit_of(10, 10);
	exec_of(10, "second");
	map_at(10, 0x500000, 0x1000, 0, 101, "/bin/second");
	settle();
	expect_published(10, 1, M(0x500000, 0x501000, 0, 101));
	struct host_sample_ref r = look(sample_of(10, 10, start, "second"));
	cr_assert_eq(r.process->execs, 2);
	let_time_pass(5000 * MS);
	cr_assert_not_null(fake_tables_process(tables, 10));
	exit_of(10, 10);
	cr_assert_null(fake_tables_process(tables, 10));
}

/* The kernel writes this record when a process becomes undumpable by its exec. */
Test(host, exit_that_is_a_part_of_an_exec_ends_nothing)
{
	uint64_t start = start_program(10, 100);

	settle();
	make_proc(10, "setid", 'R', 1, start, 0, "");
	exec_of(10, "setid");
	exit_of(10, 10);
	map_at(10, 0x500000, 0x1000, 0, 101, "/bin/setid");
	settle();
	expect_published(10, 1, M(0x500000, 0x501000, 0, 101));
	cr_assert_eq(look(sample_of(10, 10, start, "setid")).process->end_ns, 0);
	begin_thread(10, 11);
	let_time_pass(5000 * MS);
	exit_of(10, 11);
	cr_assert_not_null(fake_tables_process(tables, 10));
	exit_of(10, 10);
	cr_assert_null(fake_tables_process(tables, 10));
}

Test(host, exit_in_the_middle_of_an_exec_is_looked_for_in_proc)
{
	start_program(10, 100);
	settle();
	exec_of(10, "killed");
	exit_of(10, 10);
	let_time_pass(1000 * MS);
	cr_assert_null(fake_tables_process(tables, 10));
	struct host_figures f;
	host_figures(host, &f);
	cr_assert_eq(f.processes, 0);
}

Test(host, selected_one_stays_selected_when_its_exec_looks_like_its_end)
{
	make_host(true, true);
	make_proc(10, "program", 'R', 1, 7 * SAMPLE_START_TICK_NS, 0,
		  "400000-401000 r-xp 00000000 08:01 100 /bin/program\n");
	cr_assert_eq(host_select(host, 10), 0);
	now = clock_mono_ns() + MS;
	settle();
	exec_of(10, "setid");
	exit_of(10, 10);
	settle();
	struct host_figures f;
	host_figures(host, &f);
	cr_assert_eq(f.processes, 1);
	map_at(10, 0x500000, 0x1000, 0, 101, "/bin/setid");
	settle();
	expect_published(10, 1, M(0x500000, 0x501000, 0, 101));
}

static void title(uint64_t start, const char *text, bool is_virtual)
{
	const struct sample s = sample_of(10, 11, start, "java");
	struct record_title t = { .len = (uint8_t)strlen(text), .is_virtual = is_virtual };

	memcpy(t.text, text, t.len);
	host_title(host, &s, &t);
}

static const struct host_thread *titled(uint64_t start, bool is_sure)
{
	struct sample s = sample_of(10, 11, start, "java");

	s.flags |= is_sure ? SAMPLE_TITLED : 0;
	return look(s).thread;
}

Test(host, a_thread_has_an_id_for_each_of_its_titles)
{
	const uint64_t start = start_program(10, 100);
	const uint32_t plain = titled(start, false)->id;

	title(start, "main", false);
	const struct host_thread *a = titled(start, true);
	cr_expect_neq(a->id, plain);
	cr_expect_eq(a->title_len, 4);
	cr_expect_arr_eq(a->title, "main", 4);
	cr_expect_eq(titled(start, false)->id, a->id);
	title(start, "virtual", true);
	const struct host_thread *b = titled(start, true);
	cr_expect_neq(b->id, a->id);
	cr_expect_arr_eq(b->title, "virtual", 7);
	/* It may run another program by now. */
	cr_expect_eq(titled(start, false)->id, plain);
	title(start, "main", false);
	cr_expect_eq(titled(start, true)->id, a->id);
	title(start, "", true);
	cr_expect_eq(titled(start, true)->id, plain);
	exit_of(10, 11);
	now += MS;
	cr_expect_eq(titled(start, true)->title_len, 0, "another thread");
}

static unsigned titles_reported(void)
{
	const uint64_t start = start_program(10, 100);
	const uint32_t plain = titled(start, false)->id;
	unsigned told = 0;
	char text[32];

	for (int i = 0; i < 1000; i++) {
		snprintf(text, sizeof(text), "title %d", i);
		title(start, text, true);
		const struct host_thread *t = titled(start, true);

		told += t->id != plain;
		cr_expect(t->id == plain || !memcmp(t->title, text, strlen(text)));
	}
	return told;
}

Test(host, endless_titles_are_not_reported)
{
	cr_expect_eq(titles_reported(), 256);
}

Test(host, titles_are_reported_though_another_process_has_threads_without_end)
{
	const uint64_t many = start_program(20, 100);

	for (uint32_t i = 0; i < HOST_MAX_THREADS + 10; i++)
		look(sample_of(20, 1000000 + i, many, "many"));
	cr_expect_eq(titles_reported(), 256);
}

Test(host, a_process_has_all_its_titles_soon_after_boot)
{
	now = MS;
	cr_expect_eq(titles_reported(), 256);
}

Test(host, renamed_thread_is_a_new_one_and_back_again_too)
{
	uint64_t start = start_program(10, 100);
	uint32_t a = look(sample_of(10, 11, start, "a")).thread->id;

	cr_assert_eq(look(sample_of(10, 11, start, "a")).thread->id, a);
	struct host_sample_ref b = look(sample_of(10, 11, start, "b"));
	cr_assert_neq(b.thread->id, a);
	cr_assert_arr_eq(b.thread->comm, "b", 2);
	cr_assert_eq(b.thread->process->pid, 10);
	cr_assert_neq(look(sample_of(10, 11, start, "a")).thread->id, a);
}

Test(host, reused_tid_is_another_thread)
{
	uint64_t start = start_program(10, 100);

	begin_thread(10, 11);
	uint32_t a = look(sample_of(10, 11, start, "w")).thread->id;
	exit_of(10, 11);
	now += MS;
	begin_thread(10, 11);
	cr_assert_neq(look(sample_of(10, 11, start, "w")).thread->id, a);
}

Test(host, unsampled_threads_cost_nothing_and_idle_ones_are_forgotten)
{
	uint64_t start = start_program(10, 100);
	struct host_figures f;

	for (uint32_t i = 0; i < 5000; i++)
		begin_thread(10, 100 + i);
	host_figures(host, &f);
	cr_assert_eq(f.threads, 0);
	for (uint32_t i = 0; i < 500; i++)
		look(sample_of(10, 100 + i, start, "w"));
	host_figures(host, &f);
	cr_assert_eq(f.threads, 500);
	let_time_pass(61000 * MS);
	host_figures(host, &f);
	cr_assert_eq(f.threads, 0);
}

Test(host, process_renames_itself)
{
	uint64_t start = start_program(10, 100);

	event((struct sideband_event){ .type = SIDEBAND_COMM,
				       .pid = 10,
				       .tid = 10,
				       .name = STR_LIT("a;main 9\n is a name too long") });
	struct host_process *p = look(sample_of(10, 10, start, "a")).process;
	cr_assert_eq(p->comm_len, 16);
	cr_assert_arr_eq(p->comm, "a;main 9\n is a n", 16);
	cr_assert_eq(p->execs, 1);
}

Test(host, news_about_a_process_after_a_sample_mark_it_changed)
{
	uint64_t start = start_program(10, 100);
	struct host_process *p = look(sample_of(10, 10, start, "program")).process;

	cr_assert_null(p->exe);
	p->changed = false;
	settle();
	cr_assert(!p->changed);
	p = look(sample_of(10, 10, start, "program")).process;
	cr_assert_not_null(p->exe);
	cr_assert(p->changed);
	p->changed = false;
	event((struct sideband_event){
		.type = SIDEBAND_COMM, .pid = 10, .tid = 10, .name = STR_LIT("b") });
	cr_assert(p->changed);
}

static void note_exe(void *ctx, struct host_process *p)
{
	if (p->pid == 10 && !p->end_ns)
		*(struct host_file **)ctx = p->exe;
}

Test(host, the_executable_is_known_at_the_end_without_further_samples)
{
	uint64_t start = start_program(10, 100);
	struct host_file *exe = NULL;

	(void)look(sample_of(10, 10, start, "program"));
	settle();
	host_each_process(host, note_exe, &exe);
	cr_assert_not_null(exe);
}

/* A fork whose record comes just after a tick of the start time, as the clocks show it. */
static uint64_t start_at_an_edge(uint32_t pid)
{
	uint64_t offset = clock_ns(CLOCK_BOOTTIME) - clock_mono_ns();

	now += SAMPLE_START_TICK_NS - (now + offset) % SAMPLE_START_TICK_NS + MS;
	return start_program(pid, 100);
}

Test(host, guessed_start_is_set_right_by_the_kernels_hook)
{
	uint64_t start = start_at_an_edge(10);

	fake_tables_hook(tables, start - SAMPLE_START_TICK_NS);
	settle();
	cr_assert_eq(fake_tables_process(tables, 10)->start_ns, start - SAMPLE_START_TICK_NS);
}

Test(host, the_hooks_entry_for_a_former_process_is_ignored)
{
	uint64_t start = start_at_an_edge(10);

	fake_tables_hook(tables, start - 2 * SAMPLE_START_TICK_NS);
	settle();
	cr_assert_eq(fake_tables_process(tables, 10)->start_ns, start);
}

Test(host, user_is_the_first_samples)
{
	uint64_t start = start_program(10, 100);
	struct sample s = sample_of(10, 10, start, "program");

	s.uid = 1000;
	cr_assert_eq(look(s).process->uid, 1000);
	s.uid = 1001;
	cr_assert_eq(look(s).process->uid, 1000);
	/* A process that is gone when its sample is drained. */
	s = sample_of(30, 30, SAMPLE_START_TICK_NS, "gone");
	s.uid = 1002;
	cr_assert_eq(look(s).process->uid, 1002);
}

Test(host, guessed_start_is_set_right_by_a_sample)
{
	uint64_t start = start_program(10, 100);

	settle();
	cr_assert_eq(fake_tables_process(tables, 10)->start_ns, start);
	/* The fork's record came just after a tick of the start time. */
	uint32_t id = look(sample_of(10, 10, start - SAMPLE_START_TICK_NS, "program")).process->id;
	tick();
	cr_assert_eq(fake_tables_process(tables, 10)->start_ns, start - SAMPLE_START_TICK_NS);
	/* From now on its start is known, and another start is another process. */
	cr_assert_neq(
		look(sample_of(10, 10, start - 2 * SAMPLE_START_TICK_NS, "program")).process->id,
		id);
	cr_assert_eq(look(sample_of(10, 10, start - SAMPLE_START_TICK_NS, "program")).process->id,
		     id);
}

Test(host, sample_of_an_unknown_process_is_read_from_proc)
{
	make_proc(30, "known) late", 'R', 1, 7 * SAMPLE_START_TICK_NS, 1000,
		  "400000-401000 r-xp 00001000 08:01 100 /bin/x\n"
		  "500000-501000 rw-p 00000000 00:00 0\n600000-601000 r-xp 00000000 00:00 0\n");
	struct host_sample_ref r = look(sample_of(30, 30, 7 * SAMPLE_START_TICK_NS, "thread"));

	cr_assert_eq(r.process->uid, 1000);
	cr_assert_arr_eq(r.process->comm, "known) late", 11);
	cr_assert_arr_eq(r.thread->comm, "thread", 7);
	settle();
	expect_published(30, 2, M(0x400000, 0x401000, 0x1000, 100), M(0x600000, 0x601000, 0, 0));
}

Test(host, sample_of_a_process_that_is_gone_makes_one_that_ends)
{
	struct host_sample_ref r = look(sample_of(30, 31, 7 * SAMPLE_START_TICK_NS, "short"));

	cr_assert_eq(r.process->pid, 30);
	cr_assert_neq(r.process->end_ns, 0);
	cr_assert_arr_eq(r.process->comm, "short", 6);
	cr_assert_eq(look(sample_of(30, 31, 7 * SAMPLE_START_TICK_NS, "short")).process->id,
		     r.process->id);
	let_time_pass(HOST_GRACE_NS * 2);
	cr_assert_eq(gone, 1);
	/* Another process has its pid, with another start time. */
	make_proc(30, "other", 'R', 1, 9 * SAMPLE_START_TICK_NS, 0, "");
	r = look(sample_of(30, 31, 7 * SAMPLE_START_TICK_NS, "short"));
	cr_assert_neq(r.process->end_ns, 0);
	/* A late sample of the older process does not harm the newer one. */
	struct host_sample_ref newer = look(sample_of(30, 30, 9 * SAMPLE_START_TICK_NS, "other"));
	cr_assert_eq(newer.process->end_ns, 0);
	look(sample_of(30, 31, 5 * SAMPLE_START_TICK_NS, "oldest"));
	cr_assert_eq(look(sample_of(30, 30, 9 * SAMPLE_START_TICK_NS, "other")).process->id,
		     newer.process->id);
	cr_assert_eq(newer.process->end_ns, 0);
}

Test(host, kernel_thread_has_no_mappings_and_is_flagged)
{
	struct sample s = sample_of(40, 40, 3 * SAMPLE_START_TICK_NS, "kworker/0:1");

	s.flags = SAMPLE_KERNEL_THREAD;
	struct host_sample_ref r = look(s);
	cr_assert_eq(r.process->flags, MSG_PROCESS_KERNEL);
	cr_assert_eq(r.process->end_ns, 0);
	settle();
	cr_assert_null(fake_tables_process(tables, 40));
	/* A helper program that the kernel starts is not a kernel thread. */
	fork_of(40, 41);
	exec_of(41, "modprobe");
	map_at(41, 0x400000, 0x1000, 0, 100, "/sbin/modprobe");
	settle();
	expect_published(41, 1, M(0x400000, 0x401000, 0, 100));
}

/* --- forks --- */

Test(host, fork_has_its_parents_mappings_until_either_changes)
{
	start_program(10, 100);
	settle();
	unsigned before = (unsigned)job_count;
	fork_of(10, 20);
	tick();
	expect_published(20, 1, M(0x400000, 0x401000, 0x1000, 100));
	map_at(20, 0x800000, 0x1000, 0, 0, "//anon");
	map_at(10, 0x900000, 0x1000, 0, 0, "//anon");
	tick();
	expect_published(20, 2, M(0x400000, 0x401000, 0x1000, 100), M(0x800000, 0x801000, 0, 0));
	expect_published(10, 2, M(0x400000, 0x401000, 0x1000, 100), M(0x900000, 0x901000, 0, 0));
	cr_assert_eq(job_count, before);
	exit_of(10, 10);
	tick();
	expect_published(20, 2, M(0x400000, 0x401000, 0x1000, 100), M(0x800000, 0x801000, 0, 0));
}

Test(host, fork_before_the_file_is_open_is_published_with_it)
{
	start_program(10, 100);
	fork_of(10, 20);
	tick();
	cr_assert_eq(job_count, 1);
	answer_all();
	tick();
	expect_published(10, 1, M(0x400000, 0x401000, 0x1000, 100));
	expect_published(20, 1, M(0x400000, 0x401000, 0x1000, 100));
}

Test(host, short_process_in_one_drain_is_neither_opened_nor_published)
{
	struct host_figures before, after;

	host_figures(host, &before);
	for (unsigned i = 0; i < 100; i++) {
		start_program(10, 100);
		exit_of(10, 10);
	}
	tick();
	host_figures(host, &after);
	cr_assert_eq(open_jobs(), 0);
	cr_assert_eq(after.publishes, before.publishes);
	cr_assert_null(fake_tables_process(tables, 10));
}

Test(host, asker_that_ended_is_replaced_by_its_fork)
{
	start_program(10, 100);
	fork_of(10, 20);
	tick();
	exit_of(10, 10);
	answer(&jobs[0], -ENOENT, &the_file);
	tick();
	cr_assert_eq(job_count, 2);
	cr_assert_eq(jobs[1].q.pid, 20);
	answer_all();
	tick();
	expect_published(20, 1, M(0x400000, 0x401000, 0x1000, 100));
}
