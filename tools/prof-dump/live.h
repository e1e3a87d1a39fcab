/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live process, as ptrace gives it: seen to be one that can be dumped, its threads stopped
 * together, their registers read, and let go. Nothing is parsed here but what the kernel writes.
 *
 * Source: ptrace(2), PTRACE_SEIZE; proc(5).
 */
#ifndef PROF_DUMP_LIVE_H
#define PROF_DUMP_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "tools/prof-dump/half.h"

/* How long the next thread is waited for to stop, where others stand meanwhile: in an
 * uninterruptible sleep, and otherwise; and the same where none does. */
#define LIVE_PATIENCE_BLOCKED_NS 2000000u
#define LIVE_PATIENCE_NS 200000000u
#define LIVE_PATIENCE_BLOCKED_ALONE_NS 50000000u
#define LIVE_PATIENCE_ALONE_NS 2000000000u

enum live_verdict {
	LIVE_NO_PROCESS = 1,
	LIVE_THREAD, /* not the first thread of its process: `other` is */
	LIVE_KERNEL,
	LIVE_ENDED,  /* it has ended, and waits for its parent, or its first thread has */
	LIVE_TRACED, /* by `other` */
	LIVE_DENIED,
	LIVE_COMPAT,
	LIVE_SELF,
};

struct live_thread {
	pid_t tid;
	enum { LIVE_SEIZED, LIVE_STOPPED, LIVE_GONE } state;
	int signal; /* that it was about to take, and gets when it goes on */
	struct half_thread registers;
};

struct live {
	pid_t pid, other;
	pid_t alive; /* the first thread, or another where that has ended: whose /proc says more */
	uint64_t start_ns;
	uint32_t uid;
	struct live_thread *threads;
	size_t count, cap;
	uint8_t *seized;     /* a bit for each thread id */
	uint64_t first_ns;   /* since when the first of them stands; 0: none does */
	uint64_t stopped_ns; /* how long threads stood still, the last time */
	size_t stopped;	     /* and how many */
};

/* Is pid a process that can be dumped, as far as can be known before it is tried? 0, enum
 * live_verdict, -errno. */
int live_open(pid_t pid, struct live *ret);
void live_close(struct live *l);
/* Its memory, to be read by address; it stays readable when rights are dropped. A descriptor, or
 * -errno. */
int live_memory(const struct live *l);
/* Stops the first thread, or all of them, and reads their registers. 0, LIVE_DENIED, LIVE_TRACED,
 * LIVE_ENDED, LIVE_COMPAT, -errno; whatever was stopped then stands until live_resume. */
int live_stop(struct live *l, bool all);
/* Lets all go on that stand. */
void live_resume(struct live *l);
/* Lets those go on that have stopped since. False once there is none left that may. */
bool live_late(struct live *l);

#endif
