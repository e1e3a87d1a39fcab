/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A child: a running tool. It has its own session, an empty environment, only the descriptors that
 * it is given, and three pipes: status words, its log (standard error), and the life pipe, whose
 * end means "exit". The launcher limits the length of the log, and escapes the log before it shows
 * it.
 */
#ifndef PROFPIPE_RUN_CHILDREN_CHILD_H
#define PROFPIPE_RUN_CHILDREN_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include "common/status/status.h"

#define CHILD_LINE 4096			 /* bytes of a log line; the rest is cut off */
#define CHILD_SHOWN (4 * CHILD_LINE + 8) /* the same, escaped */
#define CHILD_LINES_MAX 1000		 /* for each tool, so that none can flood the terminal */

struct child {
	const char *name;      /* of the tool, static */
	pid_t pid;	       /* 0: not running */
	int pidfd;	       /* readable when the tool has ended; -1: none */
	int status, log, life; /* our ends of the pipes; -1: closed */
	struct status last;    /* the newest status word; phase 0: none yet */
	bool ready, done;      /* according to its status words */
	bool garbled;	       /* it wrote bytes that are not a status word */
	bool killed;	       /* child_kill was called */
	unsigned reports;      /* number of STATUS_RUNNING words */
	int wait_status;       /* when reaped */
	uint64_t started_ns;   /* CLOCK_MONOTONIC */
	uint64_t ready_ns;     /* when it was ready; 0: not yet */
	uint64_t heard_ns;     /* when the newest status word came, or when the tool was started */
	uint64_t heard_cpu_ns; /* its cpu time at that moment */
	uint64_t stopped_ns;   /* when we first saw it stopped (SIGSTOP); 0: it runs */
	bool blocked;	       /* it was in an uninterruptible sleep (D), */
	uint64_t blocked_ns;   /* and since then in each measurement, without taking cpu time; */
	uint64_t blocked_cpu_ns; /* that was its cpu time; blocked_ns 0: it was not */
	uint64_t cpu_ns;	 /* of this process and all earlier ones of this tool */
	uint64_t former_cpu_ns, ready_cpu_ns; /* of earlier ones; of all until sampling began */
	uint64_t helpers_ns;		      /* of its own child processes; part of cpu_ns */
	uint64_t pss, pss_peak;		      /* bytes */
	unsigned lines;
	size_t line_len;
	char line[CHILD_LINE]; /* an incomplete line */
	uint64_t pending_ns;   /* when the pending line came; 0: there is none */
	/* The newest complete line, escaped and not shown yet: if the tool ends now, it gives the
	 * reason. */
	char pending[CHILD_SHOWN];
};
#define CHILD_NONE(tool) \
	((struct child){ .name = (tool), .pidfd = -1, .status = -1, .log = -1, .life = -1 })

#define CHILD_VARIABLES 64

struct child_fd {
	int fd, number; /* the tool gets fd as number */
};
struct child_start {
	const char *const *argv;    /* argv[0] is the tool's name; borrowed during the call */
	const struct child_fd *fds; /* in addition to the pipes; by default 0 and 1 are /dev/null */
	size_t count;
	/* Its environment: "NAME=value", NULL-terminated, at most CHILD_VARIABLES. NULL: empty. */
	const char *const *variables;
	/* Limit in bytes of a file that it writes (RLIMIT_FSIZE); 0: that of the caller. */
	uint64_t file_most;
	/* Before exec, change to uid and gid, without other groups and with an empty bounding
	 * set: for tools without --ids. */
	bool drop;
	uid_t uid;
	gid_t gid;
};
enum child_verdict {
	CHILD_NO_NULL = 1, /* /dev/null, for descriptors 0 and 1, cannot be opened */
};
/* Starts the tool from the folder of this binary, or from where `make install` put it. The pipes
 * get the numbers 3 (status) and 4 (life). Costs of earlier processes of the tool are kept. Returns
 * 0, enum child_verdict, or -errno, also of exec. */
int child_start(struct child *c, const struct child_start *how);
/* The reason and the remedy for an error of child_start. Static storage. */
const char *child_trouble(int r);
#define CHILD_STATUS_FD "3"
#define CHILD_LIFE_FD "4"
#define CHILD_FIRST_FD 5
#define CHILD_FDS_MAX 8
/* Shows an escaped line. */
typedef void child_show(void *ctx, const struct child *c, const char *line);
/* Reads its pipes. Shows a line only when the next one comes. */
void child_read(struct child *c, child_show *show, void *ctx);
/* Shows the pending line if it came before before_ns. */
void child_show_pending(struct child *c, uint64_t before_ns, child_show *show, void *ctx);
/* The proportional set size of a process in bytes; 0 if it cannot be read. */
uint64_t child_pss(pid_t pid);
/* Measures its cpu time and, if `memory` is set, its PSS. Notes whether it is stopped or
 * blocked. */
void child_measure(struct child *c, bool memory);
/* Reaps it if it has ended, and kills processes that it left behind. Returns true if it has ended
 * now. */
bool child_reap(struct child *c);
/* Kills it and no longer waits for its end: the kernel does not end a process that waits for a lock
 * of a file. It then counts as reaped. Returns its pid, which the caller has to reap. */
pid_t child_leave_behind(struct child *c);
/* Whether it is ending. Its descriptors may be closed, and its peers may notice that, long before
 * it can be reaped. */
bool child_exiting(const struct child *c);
/* Writes to ret the kernel function in which the first thread in uninterruptible sleep waits; "" if
 * unknown. ret has CHILD_WHERE bytes. */
#define CHILD_WHERE 64
void child_where(const struct child *c, char *ret);
/* Asks it to stop, by a byte on the life pipe. Returns false if it no longer reads the pipe. */
bool child_stop(struct child *c);
/* Sends prof-bpf an order (enum deploy_order). Does nothing if it no longer reads the pipe. */
void child_order(struct child *c, uint8_t order);
/* Writes to the life pipe, all or nothing (PIPE_BUF). Does nothing if the tool no longer reads the
 * pipe. */
void child_tell(struct child *c, const void *word, size_t n);
/* Closes the life pipe, which tells it to exit. */
void child_leave(struct child *c);
void child_kill(struct child *c);
/* Closes our ends of the pipes. */
void child_close(struct child *c);
/* "exit status 1" or "signal 9 (Killed)"; static storage. */
const char *child_how(int wait_status);

#endif
