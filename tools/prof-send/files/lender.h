/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lender opens the files that the user named, such as a token's, for a prof-send that can open
 * nothing any more. It is a process of its own, which prof-send forks while it still has its
 * caller's rights: a token's file may belong to root. It opens a file anew each time, so a file
 * that was replaced is found, and lends it read-only. It reads no byte of any file and of no
 * network, and knows one order: the number of a file.
 */
#ifndef PROF_SEND_FILES_LENDER_H
#define PROF_SEND_FILES_LENDER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define LENDER_FILES 64 /* at most */

struct lender_file {
	const char *path; /* borrowed */
	bool secret;	  /* refused if others can read it */
};
struct lender {
	int socket; /* -1: there is none */
	pid_t pid;
	bool owes; /* an answer, for which nobody waits any more */
};
#define LENDER_NONE \
	(struct lender) \
	{ \
		.socket = -1 \
	}

enum lender_verdict {
	LENDER_NO_FILE = 1,  /* no regular file */
	LENDER_READABLE = 2, /* secret, and others can read it */
	LENDER_OWNER = 3,    /* secret, and belongs neither to root nor to the caller */
	LENDER_LOST = 4,     /* the lender is gone */
	LENDER_LATE = 5,     /* there is no answer yet: a file hangs, or the host is busy */
};

/* Starts it for these files. Needs a process of one thread. 0, -errno. */
int lender_start(struct lender *l, const struct lender_file *files, size_t n);
/* Borrows the file with this number; the caller owns *ret_fd. Waits a second at most. After a
 * LENDER_LATE, other calls do not wait until the lender has answered. 0, enum lender_verdict,
 * -errno of open. */
int lender_borrow(struct lender *l, unsigned number, int *ret_fd);
/* Ends it. */
void lender_end(struct lender *l);
/* "reason; remedy" of a result of lender_borrow. Static storage. */
const char *lender_error(int r);

#endif
