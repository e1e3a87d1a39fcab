/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The COMMAND of a run: forked before anything else, so that it can be followed from its first
 * instruction and has the caller's signals and descriptors 0 to 2 as they were, and held until
 * sampling has begun. It stays in the caller's session and process group: the terminal is its own.
 */
#ifndef PROFPIPE_COMMAND_H
#define PROFPIPE_COMMAND_H

#include <stdbool.h>
#include <sys/types.h>

struct command {
	pid_t pid;	 /* 0: none */
	int hold, error; /* our ends of two pipes: what lets it go, and where a failed exec says its
			    errno; -1 */
	bool released, ended;
	int wait_status;
};
#define COMMAND_NONE ((struct command){ .hold = -1, .error = -1 })

/* Forks it, before our signal mask and dispositions change. -errno. */
int command_prepare(struct command *c, char **argv);
/* Lets it run; whether its exec failed is known when `error` is readable. */
void command_release(struct command *c);
/* The negative errno of an exec that failed, once; else 0. Never blocks. */
int command_error(struct command *c);
/* Reaps it when it has ended. True when there is one, and it has. */
bool command_reap(struct command *c);
/* It was not released: it goes without having been. */
void command_drop(struct command *c);

#endif
