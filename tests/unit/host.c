// SPDX-License-Identifier: Apache-2.0
/* Synthetic records, a /proc of text files, tables that only remember, and an opener that answers
 * when it is told to. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/clock.h"
#include "common/msg.h"
#include "tests/host/fake-tables.h"
#include "tools/prof-bpf/host.h"

#define MS 1000000ull
#define DEV (8ull << 32 | 1)
#define MAX_JOBS 20000

/* --- the opener --- */

struct job {
	struct opener_request q;
	char path[256];
	opener_done *done;
	void *ctx;
	bool cancelled, answered;
};
static struct job jobs[MAX_JOBS];
static size_t job_count;

int opener_submit(struct opener *o, const struct opener_request *q, opener_done *done, void *ctx,
		  uint64_t *ret_ticket)
{
	struct job *j = &jobs[job_count++];

	cr_assert_lt(job_count, MAX_JOBS);
	*j = (struct job){ .q = *q, .done = done, .ctx = ctx };
	snprintf(j->path, sizeof(j->path), "%.*s", (int)q->path.len, q->path.data);
	*ret_ticket = job_count;
	return 0;
}

void opener_cancel(struct opener *o, uint64_t ticket)
{
	if (ticket)
		jobs[ticket - 1].cancelled = true;
}

static unsigned open_jobs(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < job_count; i++)
		n += !jobs[i].cancelled && !jobs[i].answered;
	return n;
}

/* The file that the opener finds, for every request until another is told. */
static struct opener_file the_file;
static int the_status;

/* What is said of a file that is still open. */
static struct opener_file the_stat;
static int the_stat_status;

int opener_stat(int fd, struct opener_file *ret)
{
	*ret = the_stat;
	return the_stat_status;
}

static void answer(struct job *j, int status, const struct opener_file *f)
{
	struct opener_result r = { .status = status, .fd = -1, .file = *f };

	j->answered = true;
	if (!status) {
		r.fd = memfd_create("answer", MFD_CLOEXEC);
		cr_assert_eq(ftruncate(r.fd, (off_t)f->size), 0);
	}
	j->done(j->ctx, &r);
}

static void answer_all(void)
{
	for (size_t i = 0; i < job_count; i++) {
		struct opener_file f = the_file;

		if (jobs[i].cancelled || jobs[i].answered)
			continue;
		/* By default what was asked for is what is found. */
		if (!f.inode && jobs[i].q.inode) {
			f.inode = jobs[i].q.inode;
			f.dev = jobs[i].q.dev;
		}
		answer(&jobs[i], the_status, &f);
	}
}

/* --- the host --- */

static struct fake_tables *tables;
static struct host *host;
static char proc[64];
static uint64_t now;
static unsigned rows_asked, gone;
static uint32_t last_gone_pid, last_gone_execs, last_rows_id;

static void needs_rows(void *ctx, struct host_file *f, int fd)
{
	rows_asked++;
	last_rows_id = f->id;
	close(fd);
}

static void process_gone(void *ctx, struct host_process *p)
{
	gone++;
	last_gone_pid = p->pid;
	last_gone_execs = p->execs;
}

static void make_host(bool only_selected, bool follow)
{
	struct host_config c = { .tables = fake_tables_as_tables(tables),
				 .proc = proc,
				 .only_selected = only_selected,
				 .follow_forks = follow,
				 .file_needs_rows = needs_rows,
				 .process_gone = process_gone };

	host_free(host);
	host = NULL;
	cr_assert_eq(host_new(&c, &host), 0);
	rows_asked = 0;
}

static void set_up(void)
{
	snprintf(proc, sizeof(proc), "/tmp/host-XXXXXX");
	cr_assert_not_null(mkdtemp(proc));
	tables = fake_tables_new();
	now = clock_mono_ns();
	the_file = (struct opener_file){
		.mode = S_IFREG | 0755, .links = 1, .size = 4096, .ctime_ns = 5
	};
	the_status = 0;
	the_stat_status = -EIO;
	make_host(false, false);
}

static void clean_up(void)
{
	char command[128];

	host_free(host);
	fake_tables_free(tables);
	snprintf(command, sizeof(command), "rm -rf %s", proc);
	(void)!system(command);
}

TestSuite(host, .init = set_up, .fini = clean_up);

/* --- what happens --- */

static uint64_t tick_start(uint64_t mono_ns)
{
	uint64_t boot = mono_ns + (clock_ns(CLOCK_BOOTTIME) - clock_mono_ns());

	return boot - boot % START_TICK_NS;
}

static void event(struct sideband_event e)
{
	now += MS;
	e.time_ns = now;
	host_event(host, &e);
}

static void fork_of(uint32_t parent, uint32_t pid)
{
	event((struct sideband_event){ .type = SIDEBAND_FORK,
				       .pid = pid,
				       .tid = pid,
				       .parent_pid = parent,
				       .parent_tid = parent });
}

static void thread_of(uint32_t pid, uint32_t tid)
{
	event((struct sideband_event){ .type = SIDEBAND_FORK,
				       .pid = pid,
				       .tid = tid,
				       .parent_pid = pid,
				       .parent_tid = pid });
}

static void exec_of(uint32_t pid, const char *name)
{
	event((struct sideband_event){ .type = SIDEBAND_COMM,
				       .exec = true,
				       .pid = pid,
				       .tid = pid,
				       .name = str_from(name) });
}

static void exit_of(uint32_t pid, uint32_t tid)
{
	event((struct sideband_event){ .type = SIDEBAND_EXIT, .pid = pid, .tid = tid });
}

static void map_at(uint32_t pid, uint64_t addr, uint64_t length, uint64_t offset, uint64_t inode,
		   const char *name)
{
	event((struct sideband_event){ .type = SIDEBAND_MMAP,
				       .pid = pid,
				       .tid = pid,
				       .addr = addr,
				       .length = length,
				       .offset = offset,
				       .dev_major = inode ? 8 : 0,
				       .dev_minor = inode ? 1 : 0,
				       .inode = inode,
				       .inode_generation = 77,
				       .prot = 5,
				       .name = str_from(name) });
}

static void tick(void)
{
	now += MS;
	host_tick(host, now);
}

/* Until nothing is left to do. */
static void settle(void)
{
	for (unsigned i = 0; i < 5; i++) {
		tick();
		answer_all();
	}
	tick();
}

/* Forgets what has been retired. */
static void let_time_pass(uint64_t ns)
{
	now += ns;
	host_tick(host, now);
}

static struct sample sample_of(uint32_t pid, uint32_t tid, uint64_t start_ns, const char *comm)
{
	struct sample s = {
		.time_ns = now, .start_ns = start_ns, .pid = pid, .tid = tid, .parent_pid = 1
	};

	snprintf(s.comm, sizeof(s.comm), "%s", comm);
	return s;
}

static struct host_sample_ref look(struct sample s)
{
	struct host_sample_ref ref = { 0 };

	cr_assert_eq(host_sample(host, &s, &ref), 0);
	return ref;
}

/* A process that is a fork of nobody we know, with a program. Its start. */
static uint64_t start_program(uint32_t pid, uint64_t inode)
{
	fork_of(1, pid);
	uint64_t start = tick_start(now);
	exec_of(pid, "program");
	map_at(pid, 0x400000, 0x1000, 0x1000, inode, "/bin/program");
	return start;
}

static void expect_published(uint32_t pid, size_t n, ...)
{
	const struct fake_process *p = fake_tables_process(tables, pid);
	va_list args;

	cr_assert_not_null(p, "%u is not published", pid);
	cr_assert_eq(p->len, n, "%u has %zu mappings", pid, p->len);
	va_start(args, n);
	for (size_t i = 0; i < n; i++) {
		uint64_t start = va_arg(args, uint64_t), end = va_arg(args, uint64_t),
			 offset = va_arg(args, uint64_t), inode = va_arg(args, uint64_t);
		struct host_file *f = host_slot_file(host, p->at[i].slot);

		cr_assert_eq(p->at[i].start, start, "%zu: %lx", i, (unsigned long)p->at[i].start);
		cr_assert_eq(p->at[i].end, end, "%zu: %lx", i, (unsigned long)p->at[i].end);
		if (inode) {
			cr_assert_eq(p->at[i].offset, offset, "%zu", i);
			cr_assert(f && f->inode == inode, "%zu", i);
		} else {
			cr_assert_eq(p->at[i].slot, 0, "%zu", i);
		}
	}
	va_end(args);
}
#define M(start, end, offset, inode) \
	(uint64_t)(start), (uint64_t)(end), (uint64_t)(offset), (uint64_t)(inode)

/* --- a /proc --- */

static void write_proc(uint32_t pid, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%u", proc, pid);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%u/%s", proc, pid, name);
	FILE *f = fopen(path, "we");
	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

static void make_proc(uint32_t pid, const char *comm, char state, unsigned threads,
		      uint64_t start_ns, uint32_t uid, const char *maps)
{
	char text[512];

	snprintf(text, sizeof(text), "%u (%s) %c 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 %u 0 %lu 0 0\n",
		 pid, comm, state, threads, (unsigned long)(start_ns / START_TICK_NS));
	write_proc(pid, "stat", text);
	snprintf(text, sizeof(text), "Name:\t%s\nUid:\t%u\t0\t0\t0\n", comm, uid);
	write_proc(pid, "status", text);
	write_proc(pid, "maps", maps);
}

static void remove_proc(uint32_t pid)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s/%u", proc, pid);
	cr_assert_eq(system(command), 0);
}

/* --- processes --- */

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

Test(host, end_is_told_after_the_grace_period_and_leaves_nothing)
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

	thread_of(10, 11);
	thread_of(10, 12);
	settle();
	exit_of(10, 10);
	/* Its threads are there yet, so /proc has a zombie with threads. */
	make_proc(10, "program", 'Z', 3, start, 0, "");
	let_time_pass(1000 * MS);
	cr_assert_not_null(fake_tables_process(tables, 10));
	exit_of(10, 12);
	cr_assert_eq(look(sample_of(10, 11, start, "t")).process->end_ns, 0);
	exit_of(10, 11);
	cr_assert_null(fake_tables_process(tables, 10));
}

Test(host, leader_without_threads_that_we_believed_in_ends)
{
	uint64_t start = start_program(10, 100);

	/* A thread whose exit was lost. */
	thread_of(10, 11);
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

	thread_of(10, 11);
	/* The kernel ends all others, the old leader too, then the thread takes its id. */
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

	thread_of(10, 11);
	uint32_t a = look(sample_of(10, 11, start, "w")).thread->id;
	exit_of(10, 11);
	now += MS;
	thread_of(10, 11);
	cr_assert_neq(look(sample_of(10, 11, start, "w")).thread->id, a);
}

Test(host, unsampled_threads_cost_nothing_and_idle_ones_are_forgotten)
{
	uint64_t start = start_program(10, 100);
	struct host_figures f;

	for (uint32_t i = 0; i < 5000; i++)
		thread_of(10, 100 + i);
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

/* A fork whose record comes just after the turn of a tick, as the clocks have it. */
static uint64_t start_at_an_edge(uint32_t pid)
{
	uint64_t offset = clock_ns(CLOCK_BOOTTIME) - clock_mono_ns();

	now += START_TICK_NS - (now + offset) % START_TICK_NS + MS;
	return start_program(pid, 100);
}

Test(host, guessed_start_is_set_right_by_the_kernels_hook)
{
	uint64_t start = start_at_an_edge(10);

	fake_tables_hook(tables, start - START_TICK_NS);
	settle();
	cr_assert_eq(fake_tables_process(tables, 10)->start_ns, start - START_TICK_NS);
}

Test(host, what_the_hook_entered_for_an_earlier_process_is_not_believed)
{
	uint64_t start = start_at_an_edge(10);

	fake_tables_hook(tables, start - 2 * START_TICK_NS);
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
	/* One that is gone when its sample is taken. */
	s = sample_of(30, 30, START_TICK_NS, "gone");
	s.uid = 1002;
	cr_assert_eq(look(s).process->uid, 1002);
}

Test(host, guessed_start_is_set_right_by_a_sample)
{
	uint64_t start = start_program(10, 100);

	settle();
	cr_assert_eq(fake_tables_process(tables, 10)->start_ns, start);
	/* The fork's record came just after the turn of a tick. */
	uint32_t id = look(sample_of(10, 10, start - START_TICK_NS, "program")).process->id;
	tick();
	cr_assert_eq(fake_tables_process(tables, 10)->start_ns, start - START_TICK_NS);
	/* From now on it is known, and no other start is the same process. */
	cr_assert_neq(look(sample_of(10, 10, start - 2 * START_TICK_NS, "program")).process->id,
		      id);
	cr_assert_eq(look(sample_of(10, 10, start - START_TICK_NS, "program")).process->id, id);
}

Test(host, sample_of_an_unknown_process_is_read_from_proc)
{
	make_proc(
		30, "known) late", 'R', 1, 7 * START_TICK_NS, 1000,
		"400000-401000 r-xp 00001000 08:01 100 /bin/x\n500000-501000 rw-p 00000000 00:00 0\n600000-601000 r-xp 00000000 00:00 0\n");
	struct host_sample_ref r = look(sample_of(30, 30, 7 * START_TICK_NS, "thread"));

	cr_assert_eq(r.process->uid, 1000);
	cr_assert_arr_eq(r.process->comm, "known) late", 11);
	cr_assert_arr_eq(r.thread->comm, "thread", 7);
	settle();
	expect_published(30, 2, M(0x400000, 0x401000, 0x1000, 100), M(0x600000, 0x601000, 0, 0));
}

Test(host, sample_of_a_process_that_is_gone_makes_one_that_ends)
{
	struct host_sample_ref r = look(sample_of(30, 31, 7 * START_TICK_NS, "short"));

	cr_assert_eq(r.process->pid, 30);
	cr_assert_neq(r.process->end_ns, 0);
	cr_assert_arr_eq(r.process->comm, "short", 6);
	cr_assert_eq(look(sample_of(30, 31, 7 * START_TICK_NS, "short")).process->id,
		     r.process->id);
	let_time_pass(HOST_GRACE_NS * 2);
	cr_assert_eq(gone, 1);
	/* Another has its pid, with another start: that is not it. */
	make_proc(30, "other", 'R', 1, 9 * START_TICK_NS, 0, "");
	r = look(sample_of(30, 31, 7 * START_TICK_NS, "short"));
	cr_assert_neq(r.process->end_ns, 0);
	/* And the newer one is not harmed by a late sample of the older. */
	struct host_sample_ref newer = look(sample_of(30, 30, 9 * START_TICK_NS, "other"));
	cr_assert_eq(newer.process->end_ns, 0);
	look(sample_of(30, 31, 5 * START_TICK_NS, "oldest"));
	cr_assert_eq(look(sample_of(30, 30, 9 * START_TICK_NS, "other")).process->id,
		     newer.process->id);
	cr_assert_eq(newer.process->end_ns, 0);
}

Test(host, kernel_thread_has_no_mappings_and_is_flagged)
{
	struct sample s = sample_of(40, 40, 3 * START_TICK_NS, "kworker/0:1");

	s.flags = SAMPLE_KERNEL_THREAD;
	struct host_sample_ref r = look(s);
	cr_assert_eq(r.process->flags, PROCESS_KERNEL);
	cr_assert_eq(r.process->end_ns, 0);
	settle();
	cr_assert_null(fake_tables_process(tables, 40));
	/* A helper that the kernel starts is a program. */
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

/* --- mappings --- */

Test(host, mapping_over_part_of_another_splits_it)
{
	start_program(10, 100);
	map_at(10, 0x700000, 0x10000, 0x2000, 101, "/lib/a");
	map_at(10, 0x704000, 0x2000, 0, 102, "/lib/b");
	settle();
	expect_published(10, 4, M(0x400000, 0x401000, 0x1000, 100),
			 M(0x700000, 0x704000, 0x2000, 101), M(0x704000, 0x706000, 0, 102),
			 M(0x706000, 0x710000, 0x8000, 101));
}

Test(host, thousands_of_mappings_in_one_drain_are_right)
{
	start_program(10, 100);
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

Test(host, pages_that_a_jit_switches_to_and_fro_are_published_once)
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

Test(host, vdso_is_one_file_of_all_with_offsets_from_its_start)
{
	struct host_file *f = NULL;
	uint64_t size = 0;

	for (unsigned slot = 1; slot < 4 && !f; slot++)
		f = host_slot_file(host, (uint16_t)slot);
	cr_assert(f && f->flags & FILE_VDSO);
	cr_assert_eq(f->inode, 0);
	size = f->size;
	cr_assert(size && size % 4096 == 0);
	start_program(10, 100);
	map_at(10, 0x7ffff000, size, 0x7ffff000, 0, "[vdso]");
	map_at(10, 0x7fffff000000, size, 0x7fffff000000, 0, "[vdso]");
	settle();
	const struct fake_process *p = fake_tables_process(tables, 10);
	cr_assert_eq(p->len, 3);
	/* Below 4 GiB it is that of a 32-bit process. */
	cr_assert_eq(p->at[1].slot, 0);
	cr_assert_eq(p->at[2].slot, f->slot);
	cr_assert_eq(p->at[2].offset, 0);
}

Test(host, vsyscall_page_is_left_out)
{
	start_program(10, 100);
	map_at(10, 0xffffffffff600000, 0x1000, 0, 0, "[vsyscall]");
	settle();
	expect_published(10, 1, M(0x400000, 0x401000, 0x1000, 100));
}

Test(host, unmapped_code_is_found_out_when_much_was_mapped)
{
	uint64_t start = start_program(10, 100);
	char maps[] =
		"400000-401000 r-xp 00001000 08:01 100 /bin/program\n70000000-70001000 r-xp 00000000 00:00 0\n";

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

Test(host, one_file_is_asked_for_once_however_many_map_it)
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

Test(host, file_of_root_is_not_opened_again_within_a_second)
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

Test(host, file_that_is_open_and_unchanged_is_not_opened_again)
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
	/* Changed in place: another file. */
	the_stat.ctime_ns = the_file.ctime_ns = 6;
	start_program(50, 100);
	settle();
	cr_assert_eq(job_count, 2);
	cr_assert_eq(rows_asked, 2);
	cr_assert_neq(fake_tables_process(tables, 50)->at[0].slot,
		      fake_tables_process(tables, 39)->at[0].slot);
	/* One that nobody uses is closed all the same, and then opened anew. */
	the_file = other;
	let_time_pass(HOST_FD_IDLE_NS + MS);
	let_time_pass(HOST_RECHECK_NS + MS);
	start_program(60, 100);
	settle();
	cr_assert_eq(job_count, 3);
}

Test(host, file_of_a_server_is_opened_for_every_mapping)
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

Test(host, file_that_others_can_write_is_opened_for_every_mapping)
{
	the_file.uid = 1000;
	start_program(10, 100);
	settle();
	start_program(20, 100);
	settle();
	cr_assert_eq(job_count, 2);
	cr_assert_eq(rows_asked, 1);
	/* Changed in place: another file, with rows of its own. */
	the_file.ctime_ns = 6;
	start_program(30, 100);
	settle();
	cr_assert_eq(job_count, 3);
	cr_assert_eq(rows_asked, 2);
	cr_assert_neq(fake_tables_process(tables, 30)->at[0].slot,
		      fake_tables_process(tables, 20)->at[0].slot);
}

Test(host, only_what_nobody_but_root_can_write_is_trusted)
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
		start_program(10 + i, 200 + i);
		settle();
		struct host_file *f =
			host_slot_file(host, fake_tables_process(tables, 10 + i)->at[0].slot);
		cr_assert_eq(!!(f->flags & FILE_ROOT_ONLY), cases[i].root_only, "case %u", i);
	}
}

Test(host, other_inode_than_the_records_counts_only_while_it_is_still_mapped)
{
	/* As on overlayfs: fstat names another device and inode. */
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

	/* It execs while its file is opened: whose file came is not known. */
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

Test(host, file_that_cannot_be_opened_is_code_in_no_file)
{
	the_status = OPENER_NOT_REGULAR;
	start_program(10, 100);
	settle();
	expect_published(10, 1, M(0x400000, 0x401000, 0, 0));
	cr_assert(host_settled(host));
}

Test(host, kept_descriptors_stay_within_their_number_and_are_closed_in_time)
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

Test(host, file_is_served_from_its_descriptor_then_opened_again)
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
	/* Another file answers: it is not taken for ours, and the path is tried. */
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

Test(host, file_that_two_processes_unmapped_is_not_asked_of_them_for_ever)
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

Test(host, file_that_has_changed_meanwhile_is_refused)
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

Test(host, evicted_rows_are_asked_for_again)
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
	cr_assert_eq(tables_file_state(fake_tables_as_tables(tables), f->slot), FILE_PENDING);
	the_status = -ENOENT;
	answer_all();
	answer_all();
	cr_assert_eq(rows_asked, 1);
	cr_assert_eq(tables_file_state(fake_tables_as_tables(tables), f->slot), FILE_NO_ROWS);
}

/* --- selection --- */

Test(host, only_the_selected_and_what_comes_of_them_are_tracked)
{
	uint64_t start = 7 * START_TICK_NS;

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

Test(host, what_gets_the_pid_of_a_selected_one_that_ended_is_not_selected)
{
	make_host(true, true);
	make_proc(30, "chosen", 'S', 1, 7 * START_TICK_NS, 0,
		  "400000-401000 r-xp 00001000 08:01 100 /bin/x\n");
	cr_assert_eq(host_select(host, 30), 0);
	now = clock_mono_ns();
	fork_of(30, 40);
	settle();
	cr_assert(fake_tables_process(tables, 40)->selected);
	exit_of(40, 40);
	now += 20 * MS;
	/* Of somebody else, whose forks are not heard of. */
	exec_of(40, "foreign");
	fork_of(40, 41);
	settle();
	cr_assert_null(fake_tables_process(tables, 40));
	cr_assert_null(fake_tables_process(tables, 41));
}

Test(host, children_of_the_selected_are_not_tracked_unless_asked_for)
{
	make_host(true, false);
	make_proc(30, "chosen", 'S', 1, 7 * START_TICK_NS, 0,
		  "400000-401000 r-xp 00001000 08:01 100 /bin/x\n");
	cr_assert_eq(host_select(host, 30), 0);
	now = clock_mono_ns();
	fork_of(30, 40);
	settle();
	cr_assert_null(fake_tables_process(tables, 40));
}

Test(host, our_own_are_flagged_by_pid_and_by_user)
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
	make_proc(30, "by user", 'S', 1, START_TICK_NS, 4242, "");
	make_proc(31, "by pid", 'S', 1, START_TICK_NS, 0, "");
	make_proc(32, "neither", 'S', 1, START_TICK_NS, 0, "");
	host_mark_self(host, 31);
	cr_assert_eq(host_scan(host), 0);
	now = clock_mono_ns();
	cr_assert_eq(look(sample_of(30, 30, START_TICK_NS, "x")).process->flags, PROCESS_SELF);
	cr_assert_eq(look(sample_of(31, 31, START_TICK_NS, "x")).process->flags, PROCESS_SELF);
	cr_assert_eq(look(sample_of(32, 32, START_TICK_NS, "x")).process->flags, 0);
	host_mark_self(host, 32);
	cr_assert_eq(look(sample_of(32, 32, START_TICK_NS, "x")).process->flags, PROCESS_SELF);
}

/* --- scan, loss and ceilings --- */

Test(host, scan_holds_what_older_records_say)
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
	thread_of(30, 33);
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

Test(host, exit_recorded_before_the_scan_saw_it_is_not_missed)
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

Test(host, lost_records_have_all_read_again)
{
	uint64_t start = start_program(10, 100), other_start = start_program(11, 100);

	settle();
	/* Meanwhile, unheard: 10 mapped more, 11 ended, 12 began. */
	make_proc(
		10, "program", 'S', 1, start, 0,
		"400000-401000 r-xp 00001000 08:01 100 /bin/program\n500000-501000 r-xp 00000000 08:01 105 /lib/new\n");
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

Test(host, ceiling_of_processes_is_kept_and_counted)
{
	struct host_figures f;

	for (uint32_t i = 0; i < HOST_MAX_PROCESSES + 500; i++)
		fork_of(1, 1000 + i);
	host_figures(host, &f);
	cr_assert_eq(f.processes, HOST_MAX_PROCESSES);
	cr_assert_eq(f.limit, 500);
	/* What has ended makes room. */
	exit_of(1000, 1000);
	fork_of(1, 90000);
	host_figures(host, &f);
	cr_assert_eq(f.limit, 500);
	cr_assert_eq(gone, 1);
	cr_assert_eq(last_gone_pid, 1000);
}

Test(host, full_tables_are_tried_again_and_counted)
{
	struct host_figures f;

	start_program(10, 100);
	fake_tables_set_full(tables, true);
	settle();
	cr_assert_null(fake_tables_process(tables, 10));
	host_figures(host, &f);
	cr_assert_gt(f.limit, 0);
	fake_tables_set_full(tables, false);
	let_time_pass(1500 * MS);
	cr_assert_not_null(fake_tables_process(tables, 10));
}

Test(host, descriptors_and_objects_are_all_given_back)
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
