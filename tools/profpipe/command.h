/* SPDX-License-Identifier: Apache-2.0 */
/* The COMMAND of a run: forked at once, so that it can be followed from its first instruction, and held until sampling has begun. */
#ifndef PROFPIPE_COMMAND_H
#define PROFPIPE_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

struct command {
	pid_t pid;		/* 0: none */
	int hold, error;	/* our ends of two pipes: what lets it go, and where a failed exec says its errno */
	bool ended;
	int wait_status;
};
/* Forks it; before any other descriptor that it must not have is inheritable, and before our signal mask changes. -errno. */
int command_prepare(struct command *c, char **argv);
/* Lets it run. 0, or the negative errno of its exec. */
int command_release(struct command *c);
/* Reaps it when it has ended. True when it has. */
bool command_reap(struct command *c);
/* It was never released, or is to end with us. */
void command_drop(struct command *c);

#endif
