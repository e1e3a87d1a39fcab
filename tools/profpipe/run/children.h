/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tools as children. Each has a session of its own, an empty environment, only the descriptors
 * that it is given, and three pipes: for its status words, for its log (standard error), and the
 * life pipe, whose end means "exit". The output of a tool is bounded, and escaped before it is
 * shown.
 */
#ifndef PROFPIPE_CHILDREN_H
#define PROFPIPE_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "common/status/status.h"

#define CHILD_LINE 4096 /* bytes of a log line; the rest of a longer one is left out */
#define CHILD_SHOWN (4 * CHILD_LINE + 8) /* the same, escaped */
#define CHILD_LINES_MAX 1000		 /* of one tool: one gone mad does not fill a terminal */

struct child {
	const char *name;      /* of the tool, static */
	pid_t pid;	       /* 0: not running */
	int pidfd;	       /* readable when it has ended; -1 */
	int status, log, life; /* our ends; -1 */
	struct status last;    /* the newest status word; phase 0: none yet */
	bool ready, done;      /* its status words said so */
	bool garbled;	       /* it wrote bytes that are no status word */
	bool killed;	       /* by child_kill */
	unsigned reports;      /* STATUS_RUNNING words */
	int wait_status;       /* when reaped */
	uint64_t started_ns;   /* CLOCK_MONOTONIC */
	uint64_t ready_ns;     /* when it said so; 0: not yet */
	uint64_t heard_ns;     /* CLOCK_MONOTONIC of the newest status word, or of the start */
	uint64_t heard_cpu_ns; /* its cpu then */
	uint64_t stopped_ns;   /* since when it is seen stopped (SIGSTOP); 0: it is not */
	bool blocked;	       /* seen in a wait of the kernel's that nothing interrupts (D) */
	uint64_t cpu_ns;       /* of this and of all former incarnations */
	uint64_t former_cpu_ns, ready_cpu_ns; /* of former ones; until sampling began */
	uint64_t helpers_ns;		      /* of its own children, in cpu_ns */
	uint64_t pss, pss_peak;		      /* bytes */
	unsigned lines;
	size_t line_len;
	char line[CHILD_LINE];	/* what has come of a line */
	uint64_t held_ns;	/* when the line below came; 0: there is none */
	char held[CHILD_SHOWN]; /* the newest whole line, escaped, and not shown yet: if the tool
				   ends now, it says why */
};
#define CHILD_NONE(tool) \
	((struct child){ .name = (tool), .pidfd = -1, .status = -1, .log = -1, .life = -1 })

struct child_fd {
	int fd, number; /* fd is passed as number */
};
struct child_start {
	const char *const *argv; /* argv[0] is the tool's name */
	const struct child_fd
		*fds; /* besides the three pipes; those not given of 0 and 1 are /dev/null */
	size_t count;
	bool drop; /* become uid and gid, without groups, before exec: for tools that have no --ids
		    */
	uid_t uid;
	gid_t gid;
};
/* Starts the tool found beside this binary, or where `make install` put it. The pipes take the
 * numbers 3 (status) and 4 (life). What a former incarnation cost is kept. CHILD_NO_NULL; -errno,
 * of exec too. */
#define CHILD_NO_NULL 1 /* what it would read and write instead cannot be opened */
int child_start(struct child *c, const struct child_start *how);
/* What an error of it means, and what to do; static text. */
const char *child_trouble(int r);
#define CHILD_STATUS_FD "3"
#define CHILD_LIFE_FD "4"
#define CHILD_FIRST_FD 5
#define CHILD_FDS_MAX 8
/* Shows a line, escaped already. */
typedef void child_show(void *ctx, const struct child *c, const char *line);
/* Takes what its pipes have. A line is shown when the next one comes. */
void child_read(struct child *c, child_show *show, void *ctx);
/* Shows the held line, if it came before then. */
void child_show_held(struct child *c, uint64_t before_ns, child_show *show, void *ctx);
/* The proportional set size of a process in bytes; 0 where it cannot be read. */
uint64_t child_pss(pid_t pid);
/* Measures its cpu, and with `memory` its PSS, too, and sees whether it is stopped or blocked. */
void child_measure(struct child *c, bool memory);
/* Reaps it when it has ended, and ends what it started and left. True when it was running and has.
 */
bool child_reap(struct child *c);
/* Whether it is on its way out: its descriptors may be closed, and its peers have noticed, long
 * before it can be reaped. */
bool child_exiting(const struct child *c);
/* Where in the kernel it is, by the first of its threads that waits there for what nothing
 * interrupts; "" where that is not known. ret: of CHILD_WHERE bytes. */
#define CHILD_WHERE 64
void child_where(const struct child *c, char *ret);
/* Asks it to stop, by a byte on the life pipe. False when it does not listen. */
bool child_stop(struct child *c);
/* Writes to the life pipe, whole or not at all (PIPE_BUF); nothing when it does not listen. */
void child_tell(struct child *c, const void *word, size_t n);
/* Closes the life pipe: it is to exit now. */
void child_leave(struct child *c);
void child_kill(struct child *c);
/* Closes what is left of our ends. */
void child_close(struct child *c);
/* "exit status 1" or "signal 9 (Killed)"; static storage. */
const char *child_how(int wait_status);

#endif
