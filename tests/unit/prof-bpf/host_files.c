/* SPDX-License-Identifier: Apache-2.0 */
/* The mappings of processes, and the files behind them. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "tests/host/world.h"
#include "tools/prof-bpf/host/lookups/debugsearch.h"
#include "tools/prof-bpf/host/publish/publish.h"
#include "tools/prof-bpf/owners/owners.h"

TestSuite(host_files, .init = set_up, .fini = clean_up);

/* --- mappings --- */

Test(host_files, mapping_over_part_of_another_splits_it)
{
	start_program(10, 100);
	map_at(10, 0x700000, 0x10000, 0x2000, 101, "/lib/a");
	map_at(10, 0x704000, 0x2000, 0, 102, "/lib/b");
	settle();
	expect_published(10, 4, M(0x400000, 0x401000, 0x1000, 100),
			 M(0x700000, 0x704000, 0x2000, 101), M(0x704000, 0x706000, 0, 102),
			 M(0x706000, 0x710000, 0x8000, 101));
}

Test(host_files, thousands_of_mappings_in_one_drain_are_right)
{
	look(sample_of(10, 10, start_program(10, 100), "program"));
	for (unsigned i = 0; i < 3000; i++)
		map_at(10, 0x70000000 - i * 0x2000ull, 0x1000, 0, i % 2 ? 101 : 0,
		       i % 2 ? "/lib/a" : "//anon");
	map_at(10, 0x6f000000, 0x2000000, 0, 103, "/lib/all");
	settle();
	const struct fake_process *p = fake_tables_process(tables, 10);
	cr_assert_not_null(p);
	cr_assert_eq(host_slot_file(host, p->at[p->len - 1].slot)->inode, 103);
	cr_assert_eq(p->at[p->len - 1].end, 0x71000000);
}

Test(host_files, pages_that_a_jit_switches_to_and_fro_are_published_once)
{
	struct host_figures before, after;

	start_program(10, 100);
	map_at(10, 0x700000, 0x10000, 0, 0, "//anon");
	settle();
	host_figures(host, &before);
	for (unsigned i = 0; i < 100; i++) {
		map_at(10, 0x702000, 0x1000, 0, 0, "//anon");
		tick();
	}
	host_figures(host, &after);
	cr_assert_eq(before.publishes, after.publishes);
}

Test(host_files, vdso_is_one_file_of_all_with_offsets_from_its_start)
{
	struct host_file *f = NULL;
	uint64_t size = 0;

	for (unsigned slot = 1; slot < 4 && !f; slot++)
		f = host_slot_file(host, (uint16_t)slot);
	cr_assert(f && f->flags & MSG_FILE_VDSO);
	cr_assert_eq(f->inode, 0);
	size = f->size;
	cr_assert(size && size % 4096 == 0);
	start_program(10, 100);
	map_at(10, 0x7ffff000, size, 0x7ffff000, 0, "[vdso]");
	map_at(10, 0x7fffff000000, size, 0x7fffff000000, 0, "[vdso]");
	settle();
	const struct fake_process *p = fake_tables_process(tables, 10);
	cr_assert_eq(p->len, 3);
	/* Below 4 GiB it belongs to a 32-bit process. */
	cr_assert_eq(p->at[1].slot, 0);
	cr_assert_eq(p->at[2].slot, f->slot);
	cr_assert_eq(p->at[2].offset, 0);
}

Test(host_files, vsyscall_page_is_left_out)
{
	start_program(10, 100);
	map_at(10, 0xffffffffff600000, 0x1000, 0, 0, "[vsyscall]");
	settle();
	expect_published(10, 1, M(0x400000, 0x401000, 0x1000, 100));
}

Test(host_files, unmapped_code_is_found_out_when_much_was_mapped)
{
	uint64_t start = start_program(10, 100);
	char maps[] = "400000-401000 r-xp 00001000 08:01 100 /bin/program\n"
		      "70000000-70001000 r-xp 00000000 00:00 0\n";

	look(sample_of(10, 10, start, "program"));
	settle();
	make_proc(10, "program", 'S', 1, start, 0, maps);
	for (unsigned i = 0; i < 600; i++)
		map_at(10, 0x60000000 + i * 0x2000ull, 0x1000, 0, 0, "//anon");
	tick();
	let_time_pass(1500 * MS);
	let_time_pass(1500 * MS);
	expect_published(10, 2, M(0x400000, 0x401000, 0x1000, 100),
			 M(0x70000000, 0x70001000, 0, 0));
}

/* --- files --- */

Test(host_files, a_file_that_is_mapped_nowhere_is_gone_after_a_while)
{
	struct host_figures before, after;

	host_figures(host, &before);
	start_program(10, 100);
	look(sample_of(20, 20, start_program(20, 200), "program"));
	settle();
	const uint32_t id = host_slot_file(host, fake_tables_process(tables, 20)->at[0].slot)->id;

	exit_of(20, 20);
	tick();
	now = clock_mono_ns();
	let_time_pass(HOST_GRACE_NS + MS); /* for late samples, with its process */
	let_time_pass(HOST_FD_IDLE_NS + MS);
	cr_expect_eq(files_gone, 0);
	let_time_pass(HOST_IDLE_FILE_NS - 2 * HOST_FD_IDLE_NS);
	cr_expect_eq(files_gone, 0, "others may map it again");
	let_time_pass(2 * HOST_IDLE_FILE_NS);
	cr_expect_eq(files_gone, 1);
	cr_expect_eq(last_gone_file, id);
	cr_expect_null(host_file(host, id));
	host_figures(host, &after);
	cr_expect_eq(after.files, before.files + 1);
	make_host(false, false);
	cr_expect_eq(files_gone, 0, "the end of prof-bpf is no end of a file");
}

Test(host_files, thousands_of_files_one_after_another_are_not_kept)
{
	struct host_figures f;

	for (uint32_t i = 0; i < 4000; i++) {
		start_program(10 + i, 1000 + i);
		settle();
		exit_of(10 + i, 10 + i);
		let_time_pass(HOST_GRACE_NS / 10);
		if (i % 200 == 0)
			let_time_pass(2 * HOST_IDLE_FILE_NS);
	}
	host_figures(host, &f);
	cr_expect_leq(f.files, 500);
	cr_expect_geq(files_gone, 3500);
}

Test(host_files, one_file_is_asked_for_once_however_many_map_it)
{
	for (uint32_t pid = 10; pid < 60; pid++)
		start_program(pid, 100);
	tick();
	cr_assert_eq(job_count, 1);
	answer_all();
	tick();
	for (uint32_t pid = 10; pid < 60; pid++)
		expect_published(pid, 1, M(0x400000, 0x401000, 0x1000, 100));
	cr_assert_eq(rows_asked, 1);
}

Test(host_files, file_without_samples_has_neither_slot_nor_rows)
{
	eager = false;
	start_program(10, 100);
	start_program(11, 101);
	settle();
	cr_assert_eq(job_count, 2);
	cr_assert_eq(rows_asked, 0);
	cr_assert_eq(fake_tables_slots(tables), 1, "the vDSO's");
	cr_assert_null(fake_tables_process(tables, 10));
}

Test(host_files, file_gets_slot_and_rows_where_a_sample_got_to_it)
{
	eager = false;
	const uint64_t start = start_program(10, 100), in_lib = 0x700100;

	map_at(10, 0x700000, 0x10000, 0, 101, "/lib/a");
	settle();
	struct host_sample_ref ref = look(sample_of(10, 10, start, "program"));
	settle();
	const struct fake_process *p = fake_tables_process(tables, 10);
	cr_assert_eq(p->len, 2);
	cr_assert_eq(p->at[0].slot, TABLES_UNASKED);
	cr_assert_eq(p->at[1].slot, TABLES_UNASKED);
	cr_assert_eq(rows_asked, 0);

	publish_wants(host, ref.process, &in_lib, 1);
	settle();
	p = fake_tables_process(tables, 10);
	cr_assert_eq(p->at[0].slot, TABLES_UNASKED);
	cr_assert_eq(host_slot_file(host, p->at[1].slot)->inode, 101);
	cr_assert_eq(rows_asked, 1);
	/* Another process finds the rows ready before its first sample. */
	start_program(11, 101);
	settle();
	expect_published(11, 1, M(0x400000, 0x401000, 0x1000, 101));
	cr_assert_eq(rows_asked, 1);
}

Test(host_files, words_of_a_stack_lead_to_a_few_files_at_once)
{
	uint64_t at[200];

	eager = false;
	const uint64_t start = start_program(10, 100);
	for (unsigned i = 0; i < 200; i++) {
		at[i] = 0x70000000 + i * 0x10000ull;
		map_at(10, at[i], 0x1000, 0, 1000 + i, "/lib/a");
	}
	settle();
	struct host_sample_ref ref = look(sample_of(10, 10, start, "program"));
	publish_wants(host, ref.process, at, 200);
	settle();
	cr_assert_eq(fake_tables_slots(tables), 1 + 32);
	publish_wants(host, ref.process, at, 200);
	settle();
	cr_assert_eq(fake_tables_slots(tables), 1 + 64);
}

Test(host_files, entry_of_a_parent_is_withdrawn_from_a_child_that_is_not_published)
{
	const uint64_t start = start_program(10, 100);

	settle();
	look(sample_of(10, 10, start, "program"));
	for (unsigned i = 0; i < 100; i++)
		map_at(10, 0x70000000 + i * 0x2000ull, 0x1000, 0, 0, "//anon");
	settle();
	cr_assert_not_null(fake_tables_process(tables, 10));
	fork_of(10, 11);
	fake_tables_enter(tables, 11);
	tick();
	cr_assert_null(fake_tables_process(tables, 11));
}

Test(host_files, file_of_root_is_not_opened_again_within_a_second)
{
	start_program(10, 100);
	settle();
	start_program(20, 100);
	settle();
	cr_assert_eq(job_count, 1);
	expect_published(20, 1, M(0x400000, 0x401000, 0x1000, 100));
	let_time_pass(HOST_RECHECK_NS + 500 * MS);
	start_program(30, 100);
	settle();
	cr_assert_eq(job_count, 2);
	cr_assert_eq(rows_asked, 1);
}

Test(host_files, file_that_is_open_and_unchanged_is_not_opened_again)
{
	struct opener_file other = the_file;

	the_file.uid = 1000;
	the_file.dev = DEV;
	the_file.inode = 100;
	start_program(10, 100);
	settle();
	the_stat = the_file;
	the_stat_status = 0;
	for (uint32_t i = 0; i < 20; i++) {
		let_time_pass(HOST_RECHECK_NS + MS);
		start_program(20 + i, 100);
		settle();
	}
	cr_assert_eq(job_count, 1);
	cr_assert_eq(rows_asked, 1);
	expect_published(39, 1, M(0x400000, 0x401000, 0x1000, 100));
	/* Changed in place: it counts as another file. */
	the_stat.ctime_ns = the_file.ctime_ns = 6;
	start_program(50, 100);
	settle();
	cr_assert_eq(job_count, 2);
	cr_assert_eq(rows_asked, 2);
	cr_assert_neq(fake_tables_process(tables, 50)->at[0].slot,
		      fake_tables_process(tables, 39)->at[0].slot);
	/* A descriptor that nobody uses is closed anyway, and opened again later. */
	the_file = other;
	let_time_pass(HOST_FD_IDLE_NS + MS);
	let_time_pass(HOST_RECHECK_NS + MS);
	start_program(60, 100);
	settle();
	cr_assert_eq(job_count, 3);
}

Test(host_files, file_of_a_server_is_opened_for_every_mapping)
{
	the_file.uid = 1000;
	the_file.dev = DEV;
	the_file.inode = 100;
	the_file.foreign = true;
	start_program(10, 100);
	settle();
	the_stat = the_file;
	the_stat_status = 0;
	start_program(20, 100);
	settle();
	cr_assert_eq(job_count, 2);
}

Test(host_files, file_that_others_can_write_is_opened_for_every_mapping)
{
	the_file.uid = 1000;
	start_program(10, 100);
	settle();
	start_program(20, 100);
	settle();
	cr_assert_eq(job_count, 2);
	cr_assert_eq(rows_asked, 1);
	/* Changed in place: it counts as another file with its own rows. */
	the_file.ctime_ns = 6;
	start_program(30, 100);
	settle();
	cr_assert_eq(job_count, 3);
	cr_assert_eq(rows_asked, 2);
	cr_assert_neq(fake_tables_process(tables, 30)->at[0].slot,
		      fake_tables_process(tables, 20)->at[0].slot);
}

static struct host_file *file_of_pid(uint32_t pid)
{
	return host_slot_file(host, fake_tables_process(tables, pid)->at[0].slot);
}

/* A sample of a process in a container, or in none, in its program. */
static struct host_file *sampled_in(uint32_t pid, uint64_t inode, uint32_t container)
{
	struct sample s = sample_of(pid, pid, start_program(pid, inode), "program");

	s.owner_container = container;
	struct host_process *p = look(s).process;

	settle();
	const uint16_t slot = fake_tables_process(tables, pid)->at[0].slot;

	host_slot_used(host, slot, p);
	return host_slot_file(host, slot);
}

Test(host_files, only_files_that_the_hosts_root_alone_can_write_are_trusted)
{
	static const struct {
		uint32_t uid, mode;
		bool memfd, foreign, root_only;
	} cases[] = { { 0, 0755, false, false, true },	{ 0, 0775, false, false, false },
		      { 0, 0757, false, false, false }, { 1, 0755, false, false, false },
		      { 0, 0755, true, false, false },	{ 0, 0755, false, true, false } };

	for (uint32_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		the_file = (struct opener_file){ .mode = S_IFREG | cases[i].mode,
						 .uid = cases[i].uid,
						 .memfd = cases[i].memfd,
						 .foreign = cases[i].foreign,
						 .links = 1,
						 .size = 4096 };
		struct host_file *f = sampled_in(10 + i, 200 + i, 0);

		cr_assert_eq(!!(f->flags & MSG_FILE_ROOT_ONLY), cases[i].root_only, "case %u", i);
	}
}

Test(host_files, a_file_of_a_containers_root_is_not_of_the_hosts)
{
	the_file =
		(struct opener_file){ .mode = S_IFREG | 0755, .uid = 0, .links = 1, .size = 4096 };
	/* Nobody knows yet whether the process is in a container. */
	start_program(9, 300);
	settle();
	cr_expect_not(file_of_pid(9)->flags & MSG_FILE_ROOT_ONLY);

	struct host_file *f = sampled_in(10, 200, 5);

	cr_expect_not(f->flags & MSG_FILE_ROOT_ONLY);
	f->sent = 7;
	/* It is also mapped outside, so the host's root has put it into the container. */
	cr_expect_eq(sampled_in(11, 200, 0), f);
	cr_expect(f->flags & MSG_FILE_ROOT_ONLY);
	cr_expect_eq(f->sent, 0, "it is defined again");
	f->sent = 7;
	cr_expect_eq(sampled_in(12, 200, 5), f);
	cr_expect(f->flags & MSG_FILE_ROOT_ONLY);
	cr_expect_eq(f->sent, 7);
}

Test(host_files, other_inode_than_the_records_counts_only_while_it_is_still_mapped)
{
	/* As on overlayfs: fstat reports another device and inode. */
	the_file.dev = 99;
	the_file.inode = 12345;
	start_program(10, 100);
	tick();
	now = clock_mono_ns() - 10 * MS;
	answer_all();
	tick();
	cr_assert_null(fake_tables_process(tables, 10));
	now = clock_mono_ns() + 10 * MS;
	tick();
	tick();
	expect_published(10, 1, M(0x400000, 0x401000, 0x1000, 12345));
	cr_assert_eq(rows_asked, 1);

	/* The process execs while its file is being opened: the file may belong to either
	 * program. */
	the_file.inode = 54321;
	start_program(20, 101);
	tick();
	exec_of(20, "other");
	answer_all();
	now = clock_mono_ns() + 20 * MS;
	tick();
	tick();
	cr_assert_eq(rows_asked, 1);
}

Test(host_files, opening_that_ends_is_a_change_even_for_a_process_that_has_ended)
{
	const uint64_t start = start_program(10, 100);
	const struct sample s = sample_of(10, 10, start, "program");

	tick();
	look(s);
	exit_of(10, 10);
	tick();
	const uint64_t before = host_changes(host, &s);
	tick();
	cr_assert_eq(host_changes(host, &s), before);
	answer_all();
	cr_assert_neq(host_changes(host, &s), before);
}

Test(host_files, file_that_cannot_be_opened_is_code_in_no_file)
{
	the_status = OPENER_NOT_REGULAR;
	look(sample_of(10, 10, start_program(10, 100), "program"));
	settle();
	expect_published(10, 1, M(0x400000, 0x401000, 0, 0));
	cr_assert(host_settled(host));
}

Test(host_files, kept_descriptors_stay_within_their_number_and_are_closed_in_time)
{
	struct host_figures f;

	for (uint32_t i = 0; i < 300; i++) {
		start_program(1000 + i, 1000 + i);
		if (i % 10 == 0)
			settle();
	}
	settle();
	host_figures(host, &f);
	cr_assert_eq(f.files, 301);
	cr_assert_leq(f.open_fds, HOST_MAX_FDS);
	now = clock_mono_ns() + HOST_FD_IDLE_NS;
	let_time_pass(HOST_FD_IDLE_NS);
	host_figures(host, &f);
	cr_assert_eq(f.open_fds, 1);
}

static struct opener_result got;
static unsigned got_calls;

static void take(void *ctx, const struct opener_result *r)
{
	got = *r;
	got_calls++;
	if (r->fd >= 0)
		close(r->fd);
}

Test(host_files, file_is_served_from_its_descriptor_then_opened_again)
{
	start_program(10, 100);
	settle();
	struct host_file *f = host_slot_file(host, fake_tables_process(tables, 10)->at[0].slot);
	cr_assert_eq(host_file(host, f->id), f);
	cr_assert_eq(host_open(host, f, take, NULL), 0);
	cr_assert_eq(got_calls, 1);
	cr_assert_eq(got.status, 0);
	cr_assert_eq(job_count, 1);

	now = clock_mono_ns() + HOST_FD_IDLE_NS;
	let_time_pass(HOST_FD_IDLE_NS);
	cr_assert_eq(host_open(host, f, take, NULL), 0);
	cr_assert_eq(got_calls, 1);
	cr_assert_eq(job_count, 2);
	cr_assert_eq(jobs[1].q.kind, OPENER_MAPPING);
	/* Another file is opened: it is not taken for ours, and the path is tried. */
	the_file.dev = DEV;
	the_file.inode = 100;
	struct opener_file other = the_file;
	other.ctime_ns = 9;
	answer(&jobs[1], 0, &other);
	cr_assert_eq(got_calls, 1);
	cr_assert_eq(jobs[2].q.kind, OPENER_PATH);
	cr_assert_str_eq(jobs[2].path, "/bin/program");
	answer(&jobs[2], 0, &the_file);
	cr_assert_eq(got_calls, 2);
	cr_assert_eq(got.status, 0);
}

Test(host_files, a_file_unmapped_by_two_processes_is_not_requested_forever)
{
	start_program(10, 100);
	settle();
	start_program(11, 100);
	settle();
	struct host_file *f = host_slot_file(host, fake_tables_process(tables, 10)->at[0].slot);
	now = clock_mono_ns() + HOST_FD_IDLE_NS;
	let_time_pass(HOST_FD_IDLE_NS);
	cr_assert_eq(host_open(host, f, take, NULL), 0);
	the_status = -ENOENT;
	for (unsigned i = 0; i < 10 && !got_calls; i++)
		answer_all();
	cr_assert_eq(got_calls, 1);
	cr_assert_eq(got.status, -ENOENT);
	cr_assert_eq(jobs[job_count - 1].q.kind, OPENER_PATH);
}

/* A sampled process of a user. */
static struct host_process *sampled(uint32_t pid, uint64_t inode, uint32_t uid)
{
	struct sample s = sample_of(pid, pid, start_program(pid, inode), "program");

	s.uid = s.owner_uid = uid;
	return look(s).process;
}

static void idle_child(uint32_t parent, uint32_t pid, uint64_t inode)
{
	fork_of(parent, pid);
	exec_of(pid, "program");
	map_at(pid, 0x400000, 0x1000, 0x1000, inode, "/bin/program");
}

static void forget_descriptors(void)
{
	now = clock_mono_ns() + HOST_FD_IDLE_NS;
	let_time_pass(HOST_FD_IDLE_NS);
}

Test(host_files, file_whose_mapper_makes_workers_wait_is_asked_of_another_user)
{
	sampled(12, 100, 1002);
	sampled(9, 101, 1003);
	idle_child(9, 10, 100);
	sampled(11, 100, 1001);
	sampled(13, 100, 1002);
	settle();
	forget_descriptors();
	const size_t before = job_count;
	cr_assert_eq(host_open(host, file_of_pid(11), take, NULL), 0);
	cr_assert_eq(job_count, before + 1);
	const uint32_t first = jobs[before].q.payer->key.uid;
	cr_assert(first == 1001 || first == 1002, "not %u, who has no samples", first);
	answer(&jobs[before], OPENER_TIMEOUT, &the_file);
	cr_assert_eq(job_count, before + 2);
	cr_assert_eq(jobs[before + 1].q.payer->key.uid, first == 1001 ? 1002 : 1001);
	answer(&jobs[before + 1], OPENER_TIMEOUT, &the_file);
	/* No other owner is left. */
	cr_assert_eq(job_count, before + 2);
	cr_assert_eq(got_calls, 1);
	cr_assert_eq(got.status, OPENER_TIMEOUT);
}

static const uint8_t some_id[4] = { 1, 2, 3, 4 };

static size_t search(struct host_file *f, uint64_t place)
{
	const size_t before = job_count;

	cr_assert_eq(debugsearch_open(host, f, (struct span){ .data = some_id, .len = 4 },
				      (struct str){ 0 }, place, take, NULL),
		     0);
	return before;
}

Test(host_files, debug_file_is_searched_below_the_roots_of_samples_and_of_the_host)
{
	sampled(8, 101, 1003);
	idle_child(8, 9, 100);
	sampled(10, 100, 1001);
	sampled(11, 100, 1002);
	settle();
	struct host_file *f = file_of_pid(11);
	const size_t first = search(f, 0);
	uint32_t pids[8];
	size_t n = 0;

	for (; first + n < job_count && n < 8; n++) {
		pids[n] = jobs[first + n].q.pid;
		answer(&jobs[first + n], n == 1 ? OPENER_TIMEOUT : -ENOENT, &the_file);
	}
	cr_assert_eq(got_calls, 1);
	cr_assert_eq(got.status, OPENER_TIMEOUT);
	cr_assert_geq(n, 3);
	cr_assert(pids[0] == 10 || pids[0] == 11);
	cr_assert_eq(pids[1], 0);
	for (size_t i = 0; i < n; i++)
		cr_assert_neq(pids[i], 9);
	/* The file that was found is a wrong one: the next search starts after it. */
	struct opener_result found = { .fd = -1, .place = 0 };
	const size_t again = search(f, 0);

	jobs[again].done(jobs[again].ctx, &found);
	cr_assert_eq(got.status, 0);
	const size_t next = search(f, got.place + 1);
	cr_assert_eq(jobs[next].q.place, 1);
	answer(&jobs[next], -ENOENT, &the_file);
	cr_assert_eq(jobs[next + 1].q.place, 0);
	cr_assert_eq(jobs[next + 1].q.pid, 0);
	found.place = 0;
	jobs[next + 1].done(jobs[next + 1].ctx, &found);
	cr_assert_eq(got.place, 8);
}

static uint64_t spent_by(const struct owner *w)
{
	return owner_spent(w, OWNER_MAPS_CPU, clock_mono_ns());
}

Test(host_files, a_search_in_many_mappings_is_charged_and_kept)
{
	sampled(10, 100, 1001);
	for (uint32_t pid = 20; pid < 32; pid++) {
		sampled(pid, 101, 1002);
		for (unsigned i = 0; i < 5000; i++)
			map_at(pid, 0x70000000 + i * 0x2000ull, 0x1000, 0, 0, "//anon");
	}
	settle();
	struct host_file *f = file_of_pid(10);
	const struct owner *payer = host_file_owner(f);
	const uint64_t before = spent_by(payer);

	jobs[search(f, 0)].cancelled = true;
	const uint64_t after = spent_by(payer);
	cr_assert_gt(after, before);
	for (uint64_t place = 1; place < 8; place++)
		jobs[search(f, place)].cancelled = true;
	cr_assert_eq(spent_by(payer), after);
	/* Not when the process has ended. */
	exit_of(10, 10);
	jobs[search(f, 0)].cancelled = true;
	cr_assert_gt(spent_by(payer), after);
}

Test(host_files, a_search_looks_at_some_mappings_of_each_owner)
{
	sampled(9, 101, 1003);
	sampled(10, 100, 1001);
	for (uint32_t pid = 20; pid < 24; pid++) {
		sampled(pid, pid == 23 ? 100 : 101, 1002);
		for (unsigned i = 0; i < 3000; i++)
			map_at(pid, 0x70000000 + i * 0x2000ull, 0x1000, 0, 0, "//anon");
	}
	sampled(30, 100, 1002);
	sampled(31, 100, 1003);
	settle();
	const size_t first = search(file_of_pid(10), 0);
	bool small = false, other = false;

	for (size_t i = first; i < job_count; i++) {
		small |= jobs[i].q.pid == 30;
		other |= jobs[i].q.pid == 31;
		cr_assert_neq(jobs[i].q.pid, 23, "beyond the limit");
		answer(&jobs[i], -ENOENT, &the_file);
	}
	cr_assert(small && other);
}

Test(host_files, file_that_has_changed_meanwhile_is_refused)
{
	start_program(10, 100);
	settle();
	struct host_file *f = host_slot_file(host, fake_tables_process(tables, 10)->at[0].slot);
	exit_of(10, 10);
	now = clock_mono_ns() + HOST_FD_IDLE_NS;
	let_time_pass(HOST_FD_IDLE_NS + MS);
	cr_assert_eq(host_open(host, f, take, NULL), 0);
	the_file.dev = DEV;
	the_file.inode = 100;
	the_file.size = 8192;
	answer_all();
	cr_assert_eq(got_calls, 1);
	cr_assert_eq(got.status, OPENER_OTHER);
	cr_assert_eq(got.fd, -1);
}

Test(host_files, evicted_rows_are_asked_for_again)
{
	start_program(10, 100);
	settle();
	struct host_file *f = host_slot_file(host, fake_tables_process(tables, 10)->at[0].slot);
	rows_asked = 0;
	host_want_rows(host, f);
	cr_assert_eq(rows_asked, 1);
	cr_assert_eq(last_rows_id, f->id);
	now = clock_mono_ns() + HOST_FD_IDLE_NS;
	let_time_pass(HOST_FD_IDLE_NS + MS);
	host_want_rows(host, f);
	cr_assert_eq(tables_file_state(fake_tables_as_tables(tables), f->slot),
		     TABLES_FILE_PENDING);
	the_status = -ENOENT;
	answer_all();
	answer_all();
	cr_assert_eq(rows_asked, 1);
	cr_assert_eq(tables_file_state(fake_tables_as_tables(tables), f->slot),
		     TABLES_FILE_NO_ROWS);
}

Test(host_files, a_file_is_unmapped_when_its_last_process_ends)
{
	start_program(10, 100);
	settle();
	start_program(11, 100);
	settle();
	exit_of(10, 10);
	let_time_pass(HOST_GRACE_NS + MS);
	cr_assert_eq(fake_tables_unmapped(tables), 0, "the other one runs it");
	exit_of(11, 11);
	let_time_pass(200 * MS);
	cr_assert_eq(fake_tables_unmapped(tables), 0, "late samples may come");
	let_time_pass(200 * MS);
	cr_assert_eq(fake_tables_unmapped(tables), 1);
	let_time_pass(HOST_GRACE_NS);
	cr_assert_eq(fake_tables_unmapped(tables), 2, "said again when it is forgotten");
}
