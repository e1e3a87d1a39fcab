/* SPDX-License-Identifier: Apache-2.0 */
/* Mappings that are read while records arrive, and files that another file replaces. */
#include <errno.h>
#include "common/base/system/clock.h"
#include "common/wire/msg.h"
#include "tests/host/world.h"
#include "tools/prof-bpf/host/publish/publish.h"

TestSuite(host_reading, .init = set_up, .fini = clean_up);

/* Process 30 runs /bin/x, and its maps are being read. */
static uint64_t read_slowly(void)
{
	const uint64_t start = 7 * SAMPLE_START_TICK_NS;

	make_proc(30, "slow", 'S', 1, start, 0, "400000-401000 r-xp 00001000 08:01 100 /bin/x\n");
	maps_hang = true;
	look(sample_of(30, 30, start, "slow"));
	now = clock_mono_ns();
	return start;
}

Test(host_reading, process_whose_maps_are_being_read_is_not_whole)
{
	const uint64_t start = read_slowly();
	struct host_process *p = look(sample_of(30, 30, start, "slow")).process;
	const struct tables_mapping *m;
	bool whole;

	settle();
	cr_assert(!host_settled(host));
	cr_assert_eq(publish_mappings(host, p, now, &m, &whole), 0);
	cr_assert(!whole);
	answer_maps(0);
	settle();
	cr_assert(host_settled(host));
	expect_published(30, 1, M(0x400000, 0x401000, 0x1000, 100));
	cr_assert_eq(publish_mappings(host, p, now, &m, &whole), 1);
	cr_assert(whole);
}

Test(host_reading, number_of_changes_tells_when_mappings_may_be_others)
{
	const uint64_t start = read_slowly();
	const struct sample s = sample_of(30, 30, start, "slow");

	settle();
	uint64_t before = host_changes(host, &s);
	settle();
	cr_assert_eq(host_changes(host, &s), before);
	answer_maps(0);
	cr_assert_neq(host_changes(host, &s), before);
	settle();
	before = host_changes(host, &s);
	settle();
	cr_assert_eq(host_changes(host, &s), before);
	map_at(30, 0x700000, 0x1000, 0, 101, "/lib/a");
	cr_assert_neq(host_changes(host, &s), before);
}

Test(host_reading, mapping_that_is_heard_of_while_maps_are_read_stays)
{
	read_slowly();
	map_at(30, 0x700000, 0x1000, 0, 101, "/lib/a");
	map_at(30, 0x900000, 0x1000, 0, 0, "//anon");
	answer_maps(0);
	settle();
	expect_published(30, 3, M(0x400000, 0x401000, 0x1000, 100), M(0x700000, 0x701000, 0, 101),
			 M(0x900000, 0x901000, 0, 0));
}

Test(host_reading, child_of_a_process_whose_maps_are_being_read_gets_its_own_read)
{
	read_slowly();
	fork_of(30, 31);
	make_proc(31, "slow", 'S', 1, 8 * SAMPLE_START_TICK_NS, 0,
		  "400000-401000 r-xp 00001000 08:01 100 /bin/x\n");
	answer_maps(0);
	settle();
	expect_published(31, 1, M(0x400000, 0x401000, 0x1000, 100));
}

Test(host_reading, maps_read_before_an_exec_are_dropped)
{
	read_slowly();
	exec_of(30, "second");
	map_at(30, 0x500000, 0x1000, 0x1000, 102, "/bin/second");
	answer_maps(0);
	settle();
	expect_published(30, 1, M(0x500000, 0x501000, 0x1000, 102));
}

Test(host_reading, maps_that_cannot_be_read_are_read_again_later)
{
	static const int failures[] = { -ETIMEDOUT, -EBUSY, -EIO, -EMFILE, -ENOMEM };

	read_slowly();
	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		now = clock_mono_ns();
		answer_maps(failures[i]);
		settle();
		cr_assert_null(fake_tables_process(tables, 30));
		maps_hang = true;
		let_time_pass(20000000000ull);
		settle();
	}
	answer_maps(0);
	settle();
	expect_published(30, 1, M(0x400000, 0x401000, 0x1000, 100));
}

Test(host_reading, maps_of_a_process_that_forbids_it_are_not_read_again)
{
	read_slowly();
	answer_maps(-EACCES);
	settle();
	cr_assert(host_settled(host));
}

Test(host_reading, maps_of_a_process_that_is_gone_are_not_read_again)
{
	read_slowly();
	answer_maps(-ESRCH);
	settle();
	cr_assert(host_settled(host));
}

Test(host_reading, host_may_end_while_maps_are_read)
{
	read_slowly();
	map_at(30, 0x700000, 0x1000, 0, 101, "/lib/a");
}

/* A sample of three frames: in the program, at an offset of a library, in the program. */
struct framed {
	struct sample sample;
	uint64_t frame[3];
};

static struct framed framed(uint32_t pid, uint64_t start, uint64_t offset, uint32_t generation)
{
	const struct fake_process *p = fake_tables_process(tables, pid);
	const uint64_t program = (uint64_t)p->at[0].slot << SAMPLE_FRAME_SLOT_SHIFT | 0x1100;
	const uint64_t library = (uint64_t)p->at[1].slot << SAMPLE_FRAME_SLOT_SHIFT | offset;
	struct framed f = { .sample = sample_of(pid, pid, start, "program"),
			    .frame = { program | SAMPLE_FRAME_EXACT, library, program } };

	f.sample.user_frames = 3;
	f.sample.generation = generation;
	return f;
}

Test(host_reading, frames_in_a_file_that_another_took_the_place_of_do_not_hold)
{
	uint64_t start = start_program(10, 100);

	map_at(10, 0x700000, 0x3000, 0x1000, 101, "/lib/a");
	settle();
	struct host_process *p = look(sample_of(10, 10, start, "program")).process;
	struct framed there = framed(10, start, 0x2800, p->generation);
	struct framed beside = framed(10, start, 0x3800, p->generation);
	struct framed behind = framed(10, start, 0x3000, p->generation); /* returns behind a call */
	struct framed before = there;
	cr_assert_eq(host_frames_that_hold(p, &there.sample), 3);
	cr_assert(!host_mapped_since(p, 0));

	now += MS;
	map_at(10, 0x701000, 0x1000, 0, 102, "/lib/b");
	now += MS;
	there.sample.time_ns = beside.sample.time_ns = behind.sample.time_ns = now;
	cr_assert_eq(host_frames_that_hold(p, &there.sample), 1);
	cr_assert_eq(host_frames_that_hold(p, &behind.sample), 1);
	cr_assert_eq(host_frames_that_hold(p, &beside.sample), 3);
	cr_assert_eq(host_frames_that_hold(p, &before.sample), 3);
	cr_assert(host_mapped_since(p, before.sample.time_ns) && !host_mapped_since(p, now));
	/* A forked process has the same mappings. */
	fork_of(10, 11);
	struct host_process *child = look(sample_of(11, 11, tick_start(now), "program")).process;
	cr_assert_eq(host_frames_that_hold(child, &there.sample), 1);
	/* A sample is right again if it was walked with mappings that include the file. */
	settle();
	there.sample.generation = p->generation;
	cr_assert_eq(host_frames_that_hold(p, &there.sample), 3);
}

Test(host_reading, the_same_file_mapped_again_takes_no_place)
{
	uint64_t start = start_program(10, 100);

	map_at(10, 0x700000, 0x3000, 0x1000, 101, "/lib/a");
	settle();
	struct host_process *p = look(sample_of(10, 10, start, "program")).process;
	struct framed f = framed(10, start, 0x2800, p->generation);

	now += MS;
	map_at(10, 0x700000, 0x3000, 0x1000, 101, "/lib/a");
	/* Its text was moved to huge pages. */
	map_at(10, 0x701000, 0x1000, 0, 0, "//anon");
	f.sample.time_ns = ++now;
	cr_assert_eq(host_frames_that_hold(p, &f.sample), 3);
	/* At another offset it does. */
	map_at(10, 0x701000, 0x1000, 0x1000, 101, "/lib/a");
	f.sample.time_ns = ++now;
	cr_assert_eq(host_frames_that_hold(p, &f.sample), 1);
}

Test(host_reading, a_later_mapping_is_not_used_for_an_earlier_time)
{
	uint64_t start = start_program(10, 100);
	const struct tables_mapping *m;
	bool whole;

	map_at(10, 0x700000, 0x3000, 0x1000, 101, "/lib/a");
	settle();
	struct host_process *p = look(sample_of(10, 10, start, "program")).process;
	const uint64_t before = now;
	now += MS;
	map_at(10, 0x700000, 0x3000, 0x1000, 102, "/lib/b");
	settle();
	cr_assert_eq(publish_mappings(host, p, now, &m, &whole), 2);
	cr_assert_eq(publish_mappings(host, p, before, &m, &whole), 1);
	cr_assert_eq(m[0].start, 0x400000);
}

/* It had no sample, so it has no slot. But a sample may be waiting for its rows by now. */
Test(host_reading, a_replaced_file_without_a_slot_is_not_confused)
{
	const struct tables_mapping *m;
	bool whole;

	eager = false;
	uint64_t start = start_program(10, 100);

	map_at(10, 0x700000, 0x3000, 0x1000, 101, "/lib/a");
	settle();
	const uint64_t before = now;
	now += MS;
	map_at(10, 0x700000, 0x3000, 0x1000, 102, "/lib/b");
	settle();
	struct host_process *p = look(sample_of(10, 10, start, "program")).process;

	cr_assert_eq(publish_mappings(host, p, now, &m, &whole), 2);
	cr_assert_eq(publish_mappings(host, p, before, &m, &whole), 1);
	cr_assert_eq(m[0].start, 0x400000);
}

/* The same if prof-bpf reads both records at once. */
Test(host_reading, a_file_replaced_at_once_is_not_confused)
{
	const struct tables_mapping *m;
	bool whole;

	eager = false;
	uint64_t start = start_program(10, 100);

	settle();
	map_at(10, 0x700000, 0x3000, 0x1000, 101, "/lib/a");
	const uint64_t before = now;
	now += MS;
	map_at(10, 0x700000, 0x3000, 0x1000, 102, "/lib/b");
	settle();
	struct host_process *p = look(sample_of(10, 10, start, "program")).process;

	cr_assert_eq(publish_mappings(host, p, now, &m, &whole), 2);
	cr_assert_eq(publish_mappings(host, p, before, &m, &whole), 1);
	cr_assert_eq(m[0].start, 0x400000);
}

/* More than are kept: then no sample walked with older mappings is trusted. */
Test(host_reading, too_many_replaced_files_void_all_older_mappings)
{
	uint64_t start = start_program(10, 100);
	const unsigned n = 20;

	for (unsigned i = 0; i < n; i++)
		map_at(10, 0x700000 + i * 0x10000, 0x1000, 0x1000, 101 + i, "/lib/a");
	settle();
	struct host_process *p = look(sample_of(10, 10, start, "program")).process;
	const uint32_t before = p->generation;
	cr_assert(host_walked_with(p, before));
	for (unsigned i = 0; i < n; i++)
		map_at(10, 0x700000 + i * 0x10000, 0x1000, 0x1000, 201 + i, "/lib/b");
	cr_assert(!host_walked_with(p, before));
	settle();
	cr_assert(host_walked_with(p, p->generation) && !host_walked_with(p, before));
}

/* Process `pid` runs in a cgroup and perhaps in a pid namespace; it is sampled. */
static struct host_process *surrounded(uint32_t pid, const char *cgroup, uint32_t container)
{
	const uint64_t start = 7 * SAMPLE_START_TICK_NS;
	char text[128];

	make_proc(pid, "x", 'S', 1, start, 0, "");
	snprintf(text, sizeof(text), "Name:\tx\nUid:\t0\t0\t0\t0\nNSpid:\t%u\t3\n", pid);
	write_proc(pid, "status", text);
	if (cgroup)
		write_proc(pid, "cgroup", cgroup);
	struct sample s = sample_of(pid, pid, start, "x");

	s.owner_container = container;
	return look(s).process;
}

Test(host_reading, first_sample_tells_the_cgroup_and_the_inner_pid)
{
	const struct host_process *a = surrounded(30, "0::/a.slice\n", 0),
				  *b = surrounded(31, "0::/b.slice\n", 5),
				  *c = surrounded(32, "0::/a.slice\n", 5),
				  *d = surrounded(33, NULL, 0);

	cr_assert(a->cgroup && b->cgroup && c->cgroup);
	cr_expect(str_eq(a->cgroup->path, STR_LIT("/a.slice")));
	cr_expect(str_eq(b->cgroup->path, STR_LIT("/b.slice")));
	cr_expect_eq(a->cgroup, c->cgroup, "one for all processes in it");
	cr_expect_neq(a->cgroup->id, b->cgroup->id);
	cr_expect_null(d->cgroup);
	cr_expect_eq(a->inner_pid, 30);
	cr_expect_eq(b->inner_pid, 3);
	cr_expect_eq(c->inner_pid, 3);
	cr_expect_eq(d->inner_pid, 33);
	/* The last process in it removes it. */
	const uint32_t id = b->cgroup->id;

	now = clock_mono_ns();
	exit_of(31, 31);
	let_time_pass(2 * HOST_GRACE_NS);
	b = surrounded(34, "0::/b.slice\n", 0);
	cr_assert_not_null(b->cgroup);
	cr_expect_gt(b->cgroup->id, id);
}

Test(host_reading, a_process_that_moved_is_in_another_cgroup)
{
	const uint64_t start = 7 * SAMPLE_START_TICK_NS;
	struct host_process *p;
	struct sample s;

	now = clock_mono_ns();
	s = sample_of(30, 30, start, "x");
	s.cgroup = 70;
	make_proc(30, "x", 'S', 1, start, 0, "");
	write_proc(30, "cgroup", "0::/a.slice\n");
	p = look(s).process;
	cr_assert(p->cgroup && p->cgroup->kernel_id == 70);
	/* It is not read again while the samples are in the same one, nor soon after. */
	write_proc(30, "cgroup", "0::/b.slice\n");
	s.time_ns += 2000000000;
	look(s);
	cr_expect(str_eq(p->cgroup->path, STR_LIT("/a.slice")));
	s.cgroup = 71;
	look(s);
	cr_expect(p->cgroup->kernel_id == 71 && str_eq(p->cgroup->path, STR_LIT("/b.slice")));
	cr_expect(p->changed);
	write_proc(30, "cgroup", "0::/c.slice\n");
	s.cgroup = 72;
	s.time_ns += 1000;
	look(s);
	cr_expect(str_eq(p->cgroup->path, STR_LIT("/b.slice")));
	/* Without the unified hierarchy, the number is of no use. */
	write_proc(30, "cgroup", "1:name=systemd:/d.slice\n");
	s.time_ns += 2000000000;
	look(s);
	cr_expect(p->cgroup->kernel_id == 0 && str_eq(p->cgroup->path, STR_LIT("/d.slice")));
}

/* Between the sample and the read, another process may have got the pid. */
Test(host_reading, cgroup_of_another_process_is_not_taken)
{
	const uint64_t start = start_program(30, 100);

	make_proc(30, "other", 'S', 1, start + 5 * SAMPLE_START_TICK_NS, 0, "");
	write_proc(30, "cgroup", "0::/other\n");
	const struct host_process *p = look(sample_of(30, 30, start, "program")).process;

	cr_expect_null(p->cgroup);
	cr_expect_eq(p->inner_pid, 0);
}
