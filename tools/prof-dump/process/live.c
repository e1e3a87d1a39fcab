/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-dump/process/live.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bpf/unwind.h"
#include "common/base/files/smallfile.h"
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"

#define MAX_THREADS (1u << 16)
#define MAX_TID (1u << 22) /* PID_MAX_LIMIT (include/linux/threads.h) */
#define COMPAT_CS 0x23	   /* code segment of 32-bit code (arch/x86/include/asm/segment.h) */
#define SPIN_NS 50000u	   /* spins this long before it sleeps, */
#define WAIT_US 50	   /* sleeps this long each time, */
#define LOOK_NS 5000000u   /* and checks this often whether threads are blocked */

static ssize_t read_proc(pid_t pid, const char *name, char *to, size_t size)
{
	char path[96];

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	return smallfile_read(AT_FDCWD, path, to, size);
}

/* Reads a number from /proc/PID/status. The first line has a name, in which the kernel escapes line
 * feeds. */
static long status_number(pid_t pid, const char *field)
{
	char text[4096];

	if (read_proc(pid, "status", text, sizeof(text)) <= 0)
		return 0;
	const char *at = strstr(text, field);

	return at ? atol(at + strlen(field)) : 0;
}

static int open_proc(void)
{
	int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static char thread_state(const struct live *l, pid_t tid)
{
	char name[64], text[1024];

	snprintf(name, sizeof(name), "task/%d/stat", tid);
	if (read_proc(l->pid, name, text, sizeof(text)) <= 0)
		return 'X';
	const char *at = strrchr(text, ')');

	return at && at[1] ? at[2] : 'X';
}

/* Finds a thread that has not ended, in a process whose first thread has. */
static pid_t another_thread(const struct live *l)
{
	pid_t found = l->pid;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/task", l->pid);
	DIR *d = opendir(path);

	for (struct dirent *e = d ? readdir(d) : NULL; e && found == l->pid; e = readdir(d)) {
		pid_t tid = atoi(e->d_name);

		if (tid > 0 && tid != l->pid && thread_state(l, tid) != 'Z')
			found = tid;
	}
	if (d)
		closedir(d);
	return found;
}

int live_open(pid_t pid, struct live *ret)
{
	struct procfs_stat st;

	*ret = (struct live){ .pid = pid, .alive = pid };
	if (pid == getpid())
		return LIVE_SELF;
	int proc = open_proc();

	if (proc < 0)
		return proc;
	int r = procfs_read_stat(proc, (uint32_t)pid, &st);

	if (!r)
		r = procfs_read_uid(proc, (uint32_t)pid, &ret->uid);
	close(proc);
	if (r == -ENOENT || r == -ESRCH)
		return LIVE_NO_PROCESS;
	if (r)
		return r < 0 ? r : -EPROTO;
	ret->start_ns = st.start_ns;
	ret->other = (pid_t)status_number(pid, "\nTgid:\t");
	if (ret->other != pid)
		return LIVE_THREAD;
	if (st.kernel)
		return LIVE_KERNEL;
	if (st.threads <= 1 && (st.state == 'Z' || st.state == 'X'))
		return LIVE_ENDED;
	ret->alive = st.state == 'Z' || st.state == 'X' ? another_thread(ret) : pid;
	ret->other = (pid_t)status_number(ret->alive, "\nTracerPid:\t");
	if (ret->other)
		return LIVE_TRACED;
	ret->seized = calloc(1, MAX_TID / 8);
	return ret->seized ? 0 : -ENOMEM;
}

void live_close(struct live *l)
{
	free(l->threads);
	free(l->seized);
	l->threads = NULL;
	l->seized = NULL;
	l->count = l->cap = 0;
}

int live_memory(const struct live *l)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", l->alive);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static bool is_seized(const struct live *l, pid_t tid)
{
	return (unsigned)tid >= MAX_TID || l->seized[tid / 8] >> tid % 8 & 1;
}

static void set_seized(struct live *l, pid_t tid, bool is)
{
	uint8_t bit = (uint8_t)(1u << tid % 8);

	l->seized[tid / 8] = (uint8_t)(is ? l->seized[tid / 8] | bit : l->seized[tid / 8] & ~bit);
}

/* Returns 0 (also for a thread that has ended), enum live_verdict or -errno. */
static int seize(struct live *l, pid_t tid)
{
	if (l->count == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 64;
		struct live_thread *p = reallocarray(l->threads, cap, sizeof(*p));

		if (!p)
			return -ENOMEM;
		l->threads = p;
		l->cap = cap;
	}
	if (l->count >= MAX_THREADS)
		return -E2BIG;
	set_seized(l, tid, true); /* even if it has ended: do not try again */
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0) {
		if (errno == ESRCH)
			return 0;
		if (errno != EPERM)
			return -errno;
		if (thread_state(l, tid) == 'Z' || thread_state(l, tid) == 'X')
			return 0;
		l->other = (pid_t)status_number(tid, "\nTracerPid:\t");
		return l->other ? LIVE_TRACED : LIVE_DENIED;
	}
	l->threads[l->count++] = (struct live_thread){ .tid = tid, .state = LIVE_SEIZED };
	return 0;
}

/* Seizes every thread. The caller repeats this to find threads created meanwhile. Once all known
 * threads are stopped, none can be created. *ret_found: the number of new ones. */
static int seize_all(struct live *l, size_t *ret_found)
{
	char path[64];
	int r = 0;

	*ret_found = 0;
	snprintf(path, sizeof(path), "/proc/%d/task", l->pid);
	DIR *d = opendir(path);

	if (!d)
		return -errno;
	for (struct dirent *e = readdir(d); e && !r; e = readdir(d)) {
		pid_t tid = atoi(e->d_name);

		if (tid <= 0 || is_seized(l, tid))
			continue;
		(*ret_found)++;
		r = seize(l, tid);
	}
	closedir(d);
	return r;
}

static void read_registers(struct live_thread *t)
{
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, t->tid, NULL, &r) < 0) {
		t->state = LIVE_GONE;
		return;
	}
	const uint64_t regs[16] = { r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp,
				    r.r8,  r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15 };

	t->registers = (struct message_thread){
		.pc = r.rip,
		.tls = r.fs_base,
		.tid = (uint32_t)t->tid,
		.in_syscall = (long)r.orig_rax >= 0,
	};
	memcpy(t->registers.regs, regs, sizeof(regs));
	if (r.cs == COMPAT_CS)
		t->registers.tls = t->registers.pc = UINT64_MAX;
}

static bool is_compat(const struct live_thread *t)
{
	return t->state == LIVE_STOPPED && t->registers.pc == UINT64_MAX;
}

/* Reads the registers of a thread that does not stop: it mostly sleeps in the kernel. /proc then
 * shows the arguments of its system call. That is enough for vfork, whose caller waits this way for
 * its child. */
static void read_blocked(const struct live *l, struct live_thread *t)
{
	char name[64], text[512];
	unsigned long long a[6], sp, pc;
	long number;
	struct message_thread *h = &t->registers;

	*h = (struct message_thread){ .tid = (uint32_t)t->tid, .partial = MESSAGE_RUNNING };
	snprintf(name, sizeof(name), "task/%d/syscall", t->tid);
	if (read_proc(l->pid, name, text, sizeof(text)) <= 0)
		return;
	if (sscanf(text, "%ld %llx %llx %llx %llx %llx %llx %llx %llx", &number, &a[0], &a[1],
		   &a[2], &a[3], &a[4], &a[5], &sp, &pc) == 9) {
		h->in_syscall = 1;
	} else {
		if (sscanf(text, "-1 %llx %llx", &sp, &pc) != 2)
			return;
		memset(a, 0, sizeof(a));
	}
	/* rdi, rsi, rdx, r10, r8, r9: System V psABI, A.2.1. */
	static const uint8_t at[6] = { 5, 4, 1, 10, 8, 9 };

	for (unsigned i = 0; i < 6; i++)
		h->regs[at[i]] = a[i];
	h->regs[UNWIND_REG_RSP] = sp;
	h->pc = pc;
	h->partial = MESSAGE_BLOCKED;
}

/* Whether t is stopped now. */
static bool has_stopped(struct live_thread *t)
{
	int status;
	pid_t got = waitpid(t->tid, &status, __WALL | WNOHANG);

	if (got == 0 || (got < 0 && errno == EINTR))
		return false;
	if (got < 0 || !WIFSTOPPED(status)) {
		t->state = LIVE_GONE;
		return true;
	}
	t->state = LIVE_STOPPED;
	/* It may have stopped for a signal instead, which must not get lost. */
	t->signal = status >> 16 ? 0 : WSTOPSIG(status);
	return true;
}

/* How long to wait for the next thread. Shortest while other threads are stopped. */
static uint64_t patience_ns(const struct live *l, bool blocked)
{
	if (l->first_ns)
		return blocked ? LIVE_PATIENCE_BLOCKED_NS : LIVE_PATIENCE_NS;
	return blocked ? LIVE_PATIENCE_BLOCKED_ALONE_NS : LIVE_PATIENCE_ALONE_NS;
}

/* Waits for the threads in [from, count) to stop. */
static void wait_all(struct live *l, size_t from)
{
	uint64_t began = clock_mono_ns(), now = began, last = began,
		 look = began + LIVE_PATIENCE_BLOCKED_NS;

	for (;;) {
		size_t missing = 0, blocked = 0;
		uint64_t turn = clock_mono_ns();
		bool looks = now > look;

		for (size_t i = from; i < l->count; i++) {
			struct live_thread *t = &l->threads[i];

			if (t->state != LIVE_SEIZED)
				continue;
			if (!has_stopped(t)) {
				missing++;
				blocked += looks && thread_state(l, t->tid) == 'D';
				continue;
			}
			last = clock_mono_ns();
			if (t->state == LIVE_STOPPED && !l->first_ns)
				l->first_ns = last;
		}
		now = clock_mono_ns();
		/* A blocked thread may wake up and stop, so only its state in this turn counts. */
		if (!missing || now - last > patience_ns(l, looks && blocked == missing))
			return;
		if (looks)
			look = now + LOOK_NS;
		if (now - began < SPIN_NS)
			sched_yield();
		else /* leave half of this cpu to threads waiting for it */
			usleep(WAIT_US + (useconds_t)((now - turn) / 1000));
	}
}

int live_stop(struct live *l, bool all)
{
	size_t from = 0, found = 0;
	int r;

	l->first_ns = 0;
	do {
		from = l->count;
		r = all ? seize_all(l, &found) : is_seized(l, l->pid) ? 0 : seize(l, l->pid);
		/* All threads are traced before the first one stops. */
		for (size_t i = from; i < l->count; i++)
			(void)ptrace(PTRACE_INTERRUPT, l->threads[i].tid, NULL, NULL);
		wait_all(l, from);
		for (size_t i = from; i < l->count; i++) {
			if (l->threads[i].state == LIVE_STOPPED)
				read_registers(&l->threads[i]);
			else if (l->threads[i].state == LIVE_SEIZED)
				read_blocked(l, &l->threads[i]);
		}
	} while (!r && all && found);
	for (size_t i = 0; !r && i < l->count; i++)
		if (is_compat(&l->threads[i]))
			r = LIVE_COMPAT;
	if (!r && !all && (!l->count || l->threads[0].state == LIVE_GONE))
		r = LIVE_ENDED;
	return r;
}

static void resume(struct live *l, struct live_thread *t)
{
	(void)ptrace(PTRACE_DETACH, t->tid, NULL, (long)t->signal);
	t->state = LIVE_GONE;
	set_seized(l, t->tid, false);
}

void live_resume(struct live *l)
{
	size_t kept = 0;

	l->stopped = 0;
	for (size_t i = 0; i < l->count; i++)
		if (l->threads[i].state == LIVE_STOPPED) {
			resume(l, &l->threads[i]);
			l->stopped++;
		}
	l->stopped_ns = l->first_ns ? clock_mono_ns() - l->first_ns : 0;
	for (size_t i = 0; i < l->count; i++)
		if (l->threads[i].state == LIVE_SEIZED)
			l->threads[kept++] = l->threads[i];
	l->count = kept;
}

bool live_late(struct live *l)
{
	size_t left = 0;

	for (size_t i = 0; i < l->count; i++) {
		struct live_thread *t = &l->threads[i];

		if (t->state == LIVE_SEIZED && has_stopped(t) && t->state == LIVE_STOPPED)
			resume(l, t);
		left += t->state == LIVE_SEIZED;
	}
	return left > 0;
}
