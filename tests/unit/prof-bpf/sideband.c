/* SPDX-License-Identifier: Apache-2.0 */
/* Real events of this kernel. Every test starts its own processes and looks only at their
 * records. */
#include <criterion/criterion.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "tools/prof-bpf/kernel/sideband.h"

#define KEEP 4096

struct seen {
	uint32_t pid; /* only its records are kept, and forks from it; 0: all */
	struct sideband_event at[KEEP];
	char names[KEEP][64];
	size_t len;
	uint64_t last_ns, count, lost;
	bool disorder, late;
	uint64_t horizon_ns;
};

static void keep(void *ctx, const struct sideband_event *e)
{
	struct seen *s = ctx;

	s->disorder |= e->time_ns < s->last_ns;
	s->late |= e->time_ns > s->horizon_ns;
	s->last_ns = e->time_ns;
	s->count++;
	if (e->type == SIDEBAND_LOST)
		s->lost += e->count;
	if (s->pid && e->pid != s->pid && e->parent_pid != s->pid)
		return;
	if (s->len == KEEP)
		return;
	s->at[s->len] = *e;
	snprintf(s->names[s->len], sizeof(s->names[0]), "%.*s", (int)e->name.len, e->name.data);
	s->len++;
}

static struct seen seen;

static void drain(struct sideband *s, uint64_t horizon_ns)
{
	seen.horizon_ns = horizon_ns;
	/* Only records older than the horizon are certain to be there. */
	if (horizon_ns == UINT64_MAX)
		seen.last_ns = 0;
	sideband_drain(s, horizon_ns, keep, &seen);
}

static struct sideband *open_all(size_t ring_bytes)
{
	struct sideband *s = NULL;

	memset(&seen, 0, sizeof(seen));
	cr_assert_eq(sideband_new(ring_bytes, -1, &s), 0);
	return s;
}

static const struct sideband_event *find(enum sideband_type type, bool exec, const char *name)
{
	for (size_t i = 0; i < seen.len; i++) {
		if (seen.at[i].type == type && seen.at[i].exec == exec &&
		    (!name || strcmp(seen.names[i], name) == 0))
			return &seen.at[i];
	}
	return NULL;
}

static pid_t start(void (*child)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		child();
		_exit(0);
	}
	cr_assert_gt(pid, 0);
	seen.pid = (uint32_t)pid;
	return pid;
}

static void run_true(void)
{
	execl("/bin/true", "true", (char *)NULL);
}

Test(sideband, life_of_a_program_comes_in_order)
{
	struct sideband *s = open_all(SIDEBAND_RING_BYTES);
	struct stat st;
	uint64_t before = clock_mono_ns();

	pid_t pid = start(run_true);
	waitpid(pid, NULL, 0);
	usleep(2000);
	uint64_t after = clock_mono_ns();
	drain(s, after);

	const struct sideband_event *f = find(SIDEBAND_FORK, false, NULL),
				    *x = find(SIDEBAND_COMM, true, "true");
	const struct sideband_event *e = find(SIDEBAND_EXIT, false, NULL),
				    *m = find(SIDEBAND_MMAP, false, "/usr/bin/true");
	cr_assert(f && x && e && m);
	cr_assert_eq(f->pid, pid);
	cr_assert_eq(f->tid, pid);
	cr_assert_eq(f->parent_pid, getpid());
	cr_assert(f < x && x < m && m < e);
	cr_assert(before <= f->time_ns && e->time_ns <= after);
	cr_assert_eq(stat("/usr/bin/true", &st), 0);
	cr_assert_eq(m->inode, st.st_ino);
	cr_assert(m->prot & PROT_EXEC);
	cr_assert(find(SIDEBAND_MMAP, false, "[vdso]"));
	cr_assert(!seen.disorder && !seen.late);
	sideband_free(s);
}

Test(sideband, horizon_holds_records_back)
{
	struct sideband *s = open_all(SIDEBAND_RING_BYTES);
	pid_t pid = start(run_true);

	waitpid(pid, NULL, 0);
	uint64_t between = clock_mono_ns();
	usleep(2000);
	pid_t second = fork();
	if (second == 0)
		_exit(0);
	waitpid(second, NULL, 0);
	usleep(2000);
	drain(s, between);
	cr_assert(find(SIDEBAND_EXIT, false, NULL));
	cr_assert(!seen.late);
	seen.pid = (uint32_t)second;
	seen.len = 0;
	drain(s, clock_mono_ns());
	cr_assert(find(SIDEBAND_FORK, false, NULL));
	cr_assert(!seen.disorder);
	sideband_free(s);
}

static void *rename_thread(void *arg)
{
	prctl(PR_SET_NAME, "worker) 7");
	return NULL;
}

static void run_thread(void)
{
	pthread_t t;

	pthread_create(&t, NULL, rename_thread, NULL);
	pthread_join(t, NULL);
}

Test(sideband, threads_and_their_names_are_reported)
{
	struct sideband *s = open_all(SIDEBAND_RING_BYTES);
	pid_t pid = start(run_thread);
	bool thread = false;

	waitpid(pid, NULL, 0);
	usleep(2000);
	drain(s, UINT64_MAX);
	const struct sideband_event *c = find(SIDEBAND_COMM, false, "worker) 7");
	cr_assert(c && c->pid == (uint32_t)pid && c->tid != (uint32_t)pid);
	for (size_t i = 0; i < seen.len; i++)
		thread |= seen.at[i].type == SIDEBAND_FORK && seen.at[i].tid == c->tid &&
			  seen.at[i].pid == seen.at[i].parent_pid;
	cr_assert(thread);
	sideband_free(s);
}

static void map_things(void)
{
	void *code = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *data = mmap(NULL, 12288, PROT_READ, MAP_PRIVATE, open("/proc/self/exe", O_RDONLY), 0);

	if (code == MAP_FAILED || data == MAP_FAILED || mprotect(code, 8192, PROT_READ | PROT_EXEC))
		_exit(1);
}

Test(sideband, only_executable_mappings_come_and_anonymous_ones_too)
{
	struct sideband *s = open_all(SIDEBAND_RING_BYTES);
	pid_t pid = start(map_things);
	bool anonymous = false;
	int status;

	waitpid(pid, &status, 0);
	cr_assert_eq(status, 0);
	usleep(2000);
	drain(s, UINT64_MAX);
	for (size_t i = 0; i < seen.len; i++) {
		if (seen.at[i].type != SIDEBAND_MMAP)
			continue;
		cr_assert(seen.at[i].prot & PROT_EXEC);
		anonymous |= seen.at[i].length == 8192 && seen.names[i][0] != '[' &&
			     !seen.at[i].inode;
	}
	cr_assert(anonymous);
	sideband_free(s);
}

Test(sideband, descriptor_is_readable_when_records_wait)
{
	struct sideband *s = open_all(SIDEBAND_RING_BYTES);
	pid_t pid = start(run_true);
	struct pollfd p = { .fd = sideband_fd(s), .events = POLLIN };

	cr_assert_eq(poll(&p, 1, 5000), 1);
	waitpid(pid, NULL, 0);
	sideband_free(s);
}

Test(sideband, a_ring_that_fills_is_seen_before_it_is_full)
{
	struct sideband *s = open_all(SIDEBAND_RING_BYTES);
	unsigned forks = 0;

	drain(s, UINT64_MAX);
	cr_assert_not(sideband_fills(s));
	/* A fork and an exit write some 150 bytes. */
	while (!sideband_fills(s) && forks < 2 * SIDEBAND_RING_BYTES / 150) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
		forks++;
	}
	/* Forks of other programs also fill it. */
	cr_assert(sideband_fills(s) && forks > 1, "%u", forks);
	drain(s, UINT64_MAX);
	cr_assert(!seen.lost && !sideband_fills(s));
	sideband_free(s);
}

Test(sideband, records_are_whole_over_many_turns_of_a_small_ring)
{
	struct sideband *s = open_all(1);
	struct sideband_figures f;
	uint32_t self = (uint32_t)getpid();
	unsigned forks = 0, exits = 0;

	sideband_figures(s, &f);
	cr_assert_eq(f.ring_bytes, (size_t)sysconf(_SC_PAGESIZE));
	/* Each turn of a ring of one page splits another record. */
	for (unsigned i = 0; i < 400; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			prctl(PR_SET_NAME, i % 2 ? "odd" : "an even name");
			_exit(0);
		}
		waitpid(pid, NULL, 0);
		drain(s, UINT64_MAX);
	}
	usleep(2000);
	drain(s, UINT64_MAX);
	for (size_t i = 0; i < seen.len; i++) {
		forks += seen.at[i].type == SIDEBAND_FORK && seen.at[i].parent_pid == self;
		exits += seen.at[i].type == SIDEBAND_EXIT && seen.at[i].parent_pid == self;
	}
	sideband_figures(s, &f);
	cr_assert_eq(f.malformed, 0);
	if (!seen.lost)
		cr_assert(forks == 400 && exits == 400, "%u %u", forks, exits);
	cr_assert(!seen.disorder);
	sideband_free(s);
}

Test(sideband, records_dropped_by_a_full_ring_are_counted)
{
	struct sideband *s = open_all(1);
	struct sideband_figures f;
	uint64_t lost = 0;
	unsigned cpu, second_fork = 0;

	for (unsigned i = 0; i < 200; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
	}
	drain(s, UINT64_MAX);
	/* The count arrives with the next record of the cpu. */
	sideband_figures(s, &f);
	for (unsigned i = 0; i < f.cpus; i++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		(void)sideband_lost(s, i, &cpu);
		CPU_SET(cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
		pid_t pid = fork();
		if (pid == 0)
			_exit(0);
		waitpid(pid, NULL, 0);
		second_fork++;
	}
	drain(s, UINT64_MAX);
	for (unsigned i = 0; i < f.cpus; i++)
		lost += sideband_lost(s, i, &cpu);
	cr_assert_gt(lost, 50);
	cr_assert_eq(lost, seen.lost);
	cr_assert_eq(second_fork, f.cpus);
	sideband_free(s);
}

Test(sideband, forks_on_both_ends_are_merged_by_time)
{
	struct sideband *s = open_all(SIDEBAND_RING_BYTES);

	for (unsigned round = 0; round < 20; round++) {
		pid_t pids[4];

		for (unsigned i = 0; i < 4; i++) {
			pids[i] = fork();
			if (pids[i] == 0)
				_exit(0);
		}
		for (unsigned i = 0; i < 4; i++)
			waitpid(pids[i], NULL, 0);
	}
	usleep(2000);
	drain(s, UINT64_MAX);
	cr_assert_geq(seen.count, 160);
	cr_assert(!seen.disorder);
	sideband_free(s);
}

/* The kernel grows the header of the second and further events' KSYMBOL records (see sideband.c):
 * with several cpus their times were rubbish. */
Test(sideband, ksymbol_records_have_a_time_that_can_be)
{
	struct sideband *s = open_all(SIDEBAND_RING_BYTES);
	struct bpf_insn code[] = { { .code = BPF_ALU64 | BPF_MOV | BPF_K },
				   { .code = BPF_JMP | BPF_EXIT } };
	struct sideband_figures f;
	uint64_t before = clock_mono_ns();
	unsigned came = 0, went = 0;

	sideband_figures(s, &f);
	cr_assert(f.ksymbols);
	for (unsigned cpu = 0; cpu < f.cpus; cpu++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(cpu, &set);
		sched_setaffinity(0, sizeof(set), &set);
		for (unsigned i = 0; i < 20; i++) {
			int fd = bpf_prog_load(BPF_PROG_TYPE_SOCKET_FILTER, "ksymtest", "GPL", code,
					       2, NULL);

			cr_assert_geq(fd, 0);
			close(fd);
		}
	}
	usleep(100000);
	uint64_t after = clock_mono_ns();
	drain(s, after);
	for (size_t i = 0; i < seen.len; i++) {
		const struct sideband_event *e = &seen.at[i];

		if (e->type != SIDEBAND_KSYMBOL || !strstr(seen.names[i], "ksymtest"))
			continue;
		cr_assert(before <= e->time_ns && e->time_ns <= after);
		cr_assert_gt(e->length, 0);
		came += !e->unregister;
		went += e->unregister;
	}
	cr_assert_eq(came, 20 * f.cpus);
	cr_assert_geq(went, 1);
	sideband_figures(s, &f);
	cr_assert_eq(f.malformed, 0);
	sideband_free(s);
}

Test(sideband, without_rights_the_error_is_handed_up)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct sideband *s = NULL;

		if (setresuid(65534, 65534, 65534))
			_exit(9);
		int r = sideband_new(SIDEBAND_RING_BYTES, -1, &s);
		_exit(r == -EACCES || r == -EPERM ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	cr_assert_eq(status, 0);
}

/* The memlock limit of an unprivileged user is perf_event_mlock_kb a cpu and then RLIMIT_MEMLOCK:
 * rings shrink until they fit. */
Test(sideband, rings_shrink_to_the_memlock_limit)
{
	struct sideband_figures f = { 0 };
	int fds[2], status;

	cr_assert_eq(pipe(fds), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct rlimit none = { 0, 0 };
		struct sideband *s = NULL;

		if (setrlimit(RLIMIT_MEMLOCK, &none) || setresuid(65534, 65534, 65534))
			_exit(9);
		/* Its own events, which everybody may have for user space, with a ring that the
		 * limit does not allow. */
		if (sideband_new(64u << 20, getpid(), &s))
			_exit(1);
		sideband_figures(s, &f);
		(void)!write(fds[1], &f, sizeof(f));
		_exit(0);
	}
	waitpid(pid, &status, 0);
	cr_assert_eq(status, 0);
	cr_assert_eq(read(fds[0], &f, sizeof(f)), sizeof(f));
	cr_assert(f.ring_bytes >= 4096 && f.ring_bytes < 64u << 20, "%zu", f.ring_bytes);
}
