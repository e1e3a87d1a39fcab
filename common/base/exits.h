/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exit statuses of all tools, and with them the results of main's parts.
 *
 * A part of main is a function that may end the tool: it reads the options, enters the sandbox, or
 * does the tool's work. It returns EXITS_GO_ON when the next part may begin, else the exit status.
 * It has logged the reason then, and main returns the status unchanged.
 */
#ifndef COMMON_BASE_EXITS_H
#define COMMON_BASE_EXITS_H

enum {
	EXITS_GO_ON = -1,
	EXITS_DONE = 0,
	EXITS_FAILED = 1,
	EXITS_USAGE = 2,  /* the command line is wrong */
	EXITS_CUT = 3,	  /* prof-export: all input was written, but the stream has no proper end */
	EXITS_AGAIN = 75, /* a peer is lost or did not come: start the tool again (EX_TEMPFAIL) */
	/* As a shell says of a command that cannot be run, or is not there. */
	EXITS_NOT_RUN = 126,
	EXITS_NOT_FOUND = 127,
};

#endif
