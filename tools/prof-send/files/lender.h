/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lender: opens the files that the user named, such as the file of a token, for prof-send,
 * which can no longer open files itself. It is a separate process, which prof-send forks while it
 * still has its caller's rights: the file of a token may belong to root. It opens a file again each
 * time, so that it finds a replaced file, and lends it read-only. It reads from no file and no
 * network, and accepts only one order: the number of a file.
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
	bool owes; /* an answer will come for which no call waits any more */
};
#define LENDER_NONE \
	(struct lender) \
	{ \
		.socket = -1 \
	}

enum lender_verdict {
	LENDER_NO_FILE = 1,  /* not a regular file */
	LENDER_READABLE = 2, /* secret, and others can read it */
	LENDER_OWNER = 3,    /* secret, and its owner is neither root nor the caller */
	LENDER_LOST = 4,     /* the lender has exited */
	LENDER_LATE = 5,     /* no answer yet: the file system hangs, or the host is busy */
};

/* Starts it for these files. The process must have only one thread. Returns 0 or -errno. */
int lender_start(struct lender *l, const struct lender_file *files, size_t n);
/* Opens the file with this number; the caller owns *ret_fd. Waits at most a second. After
 * LENDER_LATE, further calls do not wait until the lender has answered. Returns 0, enum
 * lender_verdict, or -errno of open. */
int lender_borrow(struct lender *l, unsigned number, int *ret_fd);
/* Ends the lender. */
void lender_end(struct lender *l);
/* The "reason; remedy" for a result of lender_borrow. Static storage. */
const char *lender_error(int r);

#endif
