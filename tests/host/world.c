/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/bytes/numbers.h"
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"
#include "common/wire/msg.h"
#include "tests/host/world.h"
#include "tools/prof-bpf/open/opening/opening.h"
#include "tools/prof-bpf/open/readers/mapreader.h"

/* --- the opener --- */

struct job jobs[MAX_JOBS];
size_t job_count;

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

/* --- the map reader --- */

bool maps_hang;
static struct mapreader_request hanging;

/* Answers at once, unless maps_hang. */
int mapreader_submit(struct workerpool *pool, const struct mapreader_request *q)
{
	if (maps_hang) {
		cr_assert_null(hanging.ctx, "one at a time");
		hanging = *q;
		return 0;
	}
	const int dir = open(proc, O_PATH | O_DIRECTORY | O_CLOEXEC);
	const ssize_t n = procfs_read_maps(dir, q->pid, q->most, q->mapping, q->ctx);

	close(dir);
	q->done(q->ctx, n < 0 ? (int)n : 0, 0);
	return 0;
}

void answer_maps(int status)
{
	const struct mapreader_request q = hanging;

	cr_assert_not_null(q.ctx, "no maps are being read");
	hanging.ctx = NULL;
	maps_hang = false;
	if (status)
		q.done(q.ctx, status, 0);
	else
		(void)mapreader_submit(NULL, &q);
}

/* --- the reader of arguments and environments --- */

struct startreader_request starting;

int startreader_submit(struct workerpool *pool, const struct startreader_request *q)
{
	cr_assert_eq(starting.pid, 0, "one at a time");
	starting = *q;
	return 0;
}

void answer_startup(int status, struct span values)
{
	const struct startreader_request q = starting;

	cr_assert_neq(q.pid, 0, "nothing is being read");
	starting.pid = 0;
	q.done(q.ctx, &(struct startreader_result){ .status = status,
						    .values = values,
						    .exe_mode = S_IFREG | 0755,
						    .exe_same = true });
}

unsigned open_jobs(void)
{
	unsigned n = 0;

	for (size_t i = 0; i < job_count; i++)
		n += !jobs[i].cancelled && !jobs[i].answered;
	return n;
}

/* The file that the opener finds for every request, until it is changed. */
struct opener_file the_file;
int the_status;

/* The answer about a file that is still open. */
struct opener_file the_stat;
int the_stat_status;

int opening_stat(int fd, struct opener_file *ret)
{
	*ret = the_stat;
	return the_stat_status;
}

void answer(struct job *j, int status, const struct opener_file *f)
{
	struct opener_result r = { .status = status, .fd = -1, .file = *f };

	j->answered = true;
	if (!status) {
		r.fd = memfd_create("answer", MFD_CLOEXEC);
		cr_assert_eq(ftruncate(r.fd, (off_t)f->size), 0);
	}
	j->done(j->ctx, &r);
}

void answer_all(void)
{
	for (size_t i = 0; i < job_count; i++) {
		struct opener_file f = the_file;

		if (jobs[i].cancelled || jobs[i].answered)
			continue;
		/* By default the opener finds the requested file. */
		if (!f.inode && jobs[i].q.inode) {
			f.inode = jobs[i].q.inode;
			f.dev = jobs[i].q.dev;
		}
		answer(&jobs[i], the_status, &f);
	}
}

/* --- the host --- */

struct fake_tables *tables;
struct host *host;
char proc[64];
uint64_t now;
unsigned rows_asked, gone, files_gone;
uint32_t last_gone_pid, last_gone_execs, last_rows_id, last_gone_file;

bool eager;

static bool known(void *ctx, struct host_file *f)
{
	return eager;
}

void needs_rows(void *ctx, struct host_file *f, int fd)
{
	rows_asked++;
	last_rows_id = f->id;
	close(fd);
}

static void file_gone(void *ctx, struct host_file *f)
{
	files_gone++;
	last_gone_file = f->id;
}

void process_gone(void *ctx, struct host_process *p)
{
	gone++;
	last_gone_pid = p->pid;
	last_gone_execs = p->execs;
}

struct environment_wanted wanted;
struct host_process *last_known;

static void attributes_known(void *ctx, struct host_process *p)
{
	last_known = p;
}

static void make_host_as(struct host_config c)
{
	c.tables = fake_tables_as_tables(tables);
	c.proc = proc;
	c.file_known = known;
	c.file_needs_rows = needs_rows;
	c.file_gone = file_gone;
	c.environment = wanted;
	c.attributes_known = attributes_known;
	c.process_gone = process_gone;
	host_free(host);
	host = NULL;
	cr_assert_eq(host_new(&c, &host), 0);
	rows_asked = files_gone = 0;
}

void make_host(bool only_selected, bool follow)
{
	make_host_as(
		(struct host_config){ .only_selected = only_selected, .follow_forks = follow });
}

void make_host_with(uint64_t memory)
{
	make_host_as((struct host_config){ .memory = memory });
}

void make_host_of_wanted(bool (*is_wanted)(void *ctx, uint32_t pid, uint64_t exec_ns))
{
	make_host_as((struct host_config){ .is_wanted = is_wanted });
}

void set_up(void)
{
	snprintf(proc, sizeof(proc), "/dev/shm/host-XXXXXX");
	cr_assert_not_null(mkdtemp(proc));
	tables = fake_tables_new();
	eager = true;
	now = clock_mono_ns();
	the_file = (struct opener_file){
		.mode = S_IFREG | 0755, .links = 1, .size = 4096, .ctime_ns = 5
	};
	the_status = 0;
	the_stat_status = -EIO;
	make_host(false, false);
}

void clean_up(void)
{
	char command[128];

	host_free(host);
	if (hanging.ctx)
		hanging.drop(hanging.ctx);
	fake_tables_free(tables);
	snprintf(command, sizeof(command), "rm -rf %s", proc);
	(void)!system(command);
}

/* --- events --- */

uint64_t tick_start(uint64_t mono_ns)
{
	uint64_t boot = mono_ns + (clock_ns(CLOCK_BOOTTIME) - clock_mono_ns());

	return boot - boot % SAMPLE_START_TICK_NS;
}

void event(struct sideband_event e)
{
	now += MS;
	e.time_ns = now;
	host_event(host, &e);
}

void fork_of(uint32_t parent, uint32_t pid)
{
	event((struct sideband_event){
		.type = SIDEBAND_FORK, .pid = pid, .tid = pid, .parent_pid = parent });
}

void begin_thread(uint32_t pid, uint32_t tid)
{
	event((struct sideband_event){
		.type = SIDEBAND_FORK, .pid = pid, .tid = tid, .parent_pid = pid });
}

void exec_of(uint32_t pid, const char *name)
{
	event((struct sideband_event){ .type = SIDEBAND_COMM,
				       .exec = true,
				       .pid = pid,
				       .tid = pid,
				       .name = str_from(name) });
}

void exit_of(uint32_t pid, uint32_t tid)
{
	event((struct sideband_event){ .type = SIDEBAND_EXIT, .pid = pid, .tid = tid });
}

void map_at(uint32_t pid, uint64_t addr, uint64_t length, uint64_t offset, uint64_t inode,
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

void tick(void)
{
	now += MS;
	host_tick(host, now, now);
}

/* Until nothing is left to do. Records that come next are younger than all that was read, even if
 * the test was interrupted meanwhile. */
void settle(void)
{
	now = numbers_larger(now, clock_mono_ns());
	for (unsigned i = 0; i < 10; i++) {
		tick();
		answer_all();
	}
	tick();
}

/* Forgets the jobs that are done. */
void let_time_pass(uint64_t ns)
{
	now += ns;
	host_tick(host, now, now);
}

struct sample sample_of(uint32_t pid, uint32_t tid, uint64_t start_ns, const char *comm)
{
	struct sample s = {
		.time_ns = now, .start_ns = start_ns, .pid = pid, .tid = tid, .parent_pid = 1
	};

	snprintf(s.comm, sizeof(s.comm), "%s", comm);
	return s;
}

struct host_sample_ref look(struct sample s)
{
	struct host_sample_ref ref = { 0 };

	cr_assert_eq(host_sample(host, &s, &ref), 0);
	return ref;
}

/* A process that is a fork of an unknown process, with a program. Returns its start. */
uint64_t start_program(uint32_t pid, uint64_t inode)
{
	fork_of(1, pid);
	uint64_t start = tick_start(now);
	exec_of(pid, "program");
	map_at(pid, 0x400000, 0x1000, 0x1000, inode, "/bin/program");
	return start;
}

void expect_published(uint32_t pid, size_t n, ...)
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

/* --- a /proc --- */

void write_proc(uint32_t pid, const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%u", proc, pid);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%u/task", proc, pid);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%u/task/%u", proc, pid, pid);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%u/%s", proc, pid, name);
	FILE *f = fopen(path, "we");
	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

void make_proc(uint32_t pid, const char *comm, char state, unsigned threads, uint64_t start_ns,
	       uint32_t uid, const char *maps)
{
	char text[512], stat[32];

	snprintf(text, sizeof(text), "%u (%s) %c 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 %u 0 %lu 0 0\n",
		 pid, comm, state, threads, (unsigned long)(start_ns / SAMPLE_START_TICK_NS));
	write_proc(pid, "stat", text);
	snprintf(stat, sizeof(stat), "task/%u/stat", pid);
	write_proc(pid, stat, text);
	snprintf(text, sizeof(text), "Name:\t%s\nUid:\t%u\t0\t0\t0\n", comm, uid);
	write_proc(pid, "status", text);
	write_proc(pid, "maps", maps);
}

void remove_proc(uint32_t pid)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s/%u", proc, pid);
	cr_assert_eq(system(command), 0);
}
