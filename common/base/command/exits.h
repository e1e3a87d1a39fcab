/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exit statuses of all tools, which are also the results of the parts of main.
 *
 * A part of main is a function that may end the tool: it reads the options, enters the sandbox, or
 * does the tool's work. It returns EXITS_GO_ON if the next part may begin, else an exit status
 * after logging the reason. main then returns this status.
 */
#ifndef COMMON_BASE_COMMAND_EXITS_H
#define COMMON_BASE_COMMAND_EXITS_H

enum {
	EXITS_GO_ON = -1,
	EXITS_DONE = 0,
	EXITS_FAILED = 1,
	EXITS_USAGE = 2,  /* the command line is wrong */
	EXITS_CUT = 3,	  /* prof-export: all input was written, but the stream has no proper end */
	EXITS_AGAIN = 75, /* a peer is lost or did not come: start the tool again (EX_TEMPFAIL) */
	/* The statuses of a shell for a command that cannot be run or does not exist. */
	EXITS_NOT_RUN = 126,
	EXITS_NOT_FOUND = 127,
};

#endif
