/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A live process under ptrace. This checks that it can be dumped, stops its threads together, reads
 * their registers, and lets them continue. It parses only text that the kernel writes.
 *
 * Source: ptrace(2), PTRACE_SEIZE; proc(5).
 */
#ifndef PROF_DUMP_PROCESS_LIVE_H
#define PROF_DUMP_PROCESS_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "tools/prof-dump/process/message.h"

/* How long to wait for the next thread to stop. BLOCKED: it is in an uninterruptible sleep. ALONE:
 * no other thread is stopped yet, so the wait delays nobody. */
#define LIVE_PATIENCE_BLOCKED_NS 2000000u
#define LIVE_PATIENCE_NS 200000000u
#define LIVE_PATIENCE_BLOCKED_ALONE_NS 50000000u
#define LIVE_PATIENCE_ALONE_NS 2000000000u

enum live_verdict {
	LIVE_NO_PROCESS = 1,
	LIVE_THREAD, /* not the first thread of its process, which is `other` */
	LIVE_KERNEL,
	LIVE_ENDED,  /* it has ended and waits for its parent, or its first thread has ended */
	LIVE_TRACED, /* by `other` */
	LIVE_DENIED,
	LIVE_COMPAT,
	LIVE_SELF,
};

struct live_thread {
	pid_t tid;
	enum { LIVE_SEIZED, LIVE_STOPPED, LIVE_GONE } state;
	int signal; /* the signal it was about to get; it gets it when it continues */
	struct message_thread registers;
};

struct live {
	pid_t pid, other;
	pid_t alive; /* the first thread, or another if that has ended; for reading /proc */
	uint64_t start_ns;
	uint32_t uid;
	struct live_thread *threads;
	size_t count, cap;
	uint8_t *seized;     /* a bit for each thread id */
	uint64_t first_ns;   /* when the first of them stopped; 0: none is stopped */
	uint64_t stopped_ns; /* how long the threads stood still, the last time */
	size_t stopped;	     /* how many */
};

/* Checks whether pid can be dumped, as far as this is known before trying. Returns 0, enum
 * live_verdict or -errno. */
int live_open(pid_t pid, struct live *ret);
void live_close(struct live *l);
/* Opens its memory, readable by address, also after rights are dropped. Returns a descriptor or
 * -errno. */
int live_memory(const struct live *l);
/* Stops the first thread, or all, and reads their registers. Returns 0, LIVE_DENIED, LIVE_TRACED,
 * LIVE_ENDED, LIVE_COMPAT or -errno. Threads that it stopped stay so until live_resume. */
int live_stop(struct live *l, bool all);
/* Lets all stopped threads continue. */
void live_resume(struct live *l);
/* Lets threads continue that stopped late. Returns false when none is left that may stop. */
bool live_late(struct live *l);

#endif
