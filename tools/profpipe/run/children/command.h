/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The COMMAND of a run. profpipe forks it first, so that it keeps the caller's signals and
 * descriptors 0 to 2. profpipe holds it until sampling has begun, and so samples it from its first
 * instruction. COMMAND stays in the caller's session and process group, and keeps the terminal.
 */
#ifndef PROFPIPE_RUN_CHILDREN_COMMAND_H
#define PROFPIPE_RUN_CHILDREN_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

struct command {
	pid_t pid; /* 0: none */
	/* Our ends of two pipes: a byte to `hold` releases it; if exec fails, its errno comes from
	 * `error`; -1: closed. */
	int hold, error;
	bool released, ended;
	int wait_status;
};
#define COMMAND_NONE ((struct command){ .hold = -1, .error = -1 })

/* Forks it. Call it before our signal mask and dispositions change. -errno. */
int command_prepare(struct command *c, char **argv);
/* Lets it run. `error` becomes readable when its exec has failed or succeeded. */
void command_release(struct command *c);
/* Returns the negative errno of a failed exec, once; else 0. Never blocks. */
int command_error(struct command *c);
/* Reaps it if it has ended. Returns true if there was a COMMAND and it has ended. */
bool command_reap(struct command *c);
/* Ends it if it was not released. */
void command_drop(struct command *c);

#endif
