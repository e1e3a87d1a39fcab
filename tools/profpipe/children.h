/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools as children: each in a session of its own, with no descriptor but those it is given, an empty environment, and three pipes: its status words, its log (standard error), and
 * the life pipe whose end means "exit".
 */
#ifndef PROFPIPE_CHILDREN_H
#define PROFPIPE_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "common/status.h"

#define CHILD_LINE 1024

struct child {
	const char *name;	/* of the tool, static */
	pid_t pid;		/* 0: not running */
	int status, log, life;	/* our ends; -1 */
	struct status last;	/* the newest status word; phase 0: none yet */
	bool ready, done, failed, reaped;
	int wait_status;	/* when reaped */
	uint64_t heard_ns;	/* CLOCK_MONOTONIC of the newest status word, or of the start */
	double cpu_s, ready_cpu_s; /* seconds of cpu: all of it, and up to its being ready */
	uint64_t pss, pss_peak;	/* bytes */
	bool stopped_log;	/* said more than a tool may */
	unsigned lines;
	char line[CHILD_LINE];
	size_t line_len;
	char last_line[CHILD_LINE]; /* escaped, of warnings and errors */
};

struct child_fd {
	int fd, number;		/* fd is passed as number; numbers lie from 3 on */
};

/* Starts the tool found beside this binary, or where `make install` put it. argv[0] is its name. The pipes take the numbers 3 (status) and 4 (life). -errno. */
int child_start(struct child *c, const char *name, const char *const argv[], const struct child_fd *fds, size_t n);
#define CHILD_STATUS_FD "3"
#define CHILD_LIFE_FD "4"
#define CHILD_FIRST_FD 5
/* Takes what its pipes have; prints its log lines, escaped, when print is set. */
void child_read(struct child *c, bool print);
/* Measures its cpu and memory now, from /proc. */
void child_measure(struct child *c);
/* Reaps it when it has ended. True when it has. */
bool child_reap(struct child *c);
/* Closes the life pipe, waits up to ms, then kills. */
void child_end(struct child *c, int ms);
/* "exit status 1" or "signal 9"; static storage. */
const char *child_how(const struct child *c);

#endif
