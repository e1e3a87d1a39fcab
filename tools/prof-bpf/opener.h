/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The disposable opener: opens files that processes chose, in threads that may hang (FUSE, NFS, a
 * device), never in the caller's.
 *
 * Nothing is opened for reading before an O_PATH descriptor of it was seen to be a regular file.
 * Paths are resolved below a process's root, without magic links. Files that have no name and live
 * in memory (memfds and the like) are handed out as sealed copies, since whoever gets a descriptor
 * of one can open it again for writing.
 */
#ifndef PROFPIPE_OPENER_H
#define PROFPIPE_OPENER_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/span.h"

#define OPENER_THREADS 8		 /* how many may hang at once */
#define OPENER_THREADS_DEVICE 2		 /* how many of them ask one device */
#define OPENER_DEADLINE_NS 1000000000ull /* of one open */
#define OPENER_QUEUE_MAX 8192		 /* requests waiting */
#define OPENER_COPY_MAX (64u << 20)	 /* bytes of a memfd */
#define OPENER_PATH_MAX 4096u

enum opener_kind {
	OPENER_MAPPING,	  /* what process pid has mapped at [start, end); where that is refused or
			     gone, `path` below its root, its parent's or ours, with the inode
			     checked; where the file system lets nobody in, what is mapped of it */
	OPENER_PATH,	  /* `path` below the root of pid; with expect_inode also below its parent's
			     and ours */
	OPENER_FOLDER,	  /* the folder `path` below the root of pid, to be looked into later: an
			     O_PATH    descriptor */
	OPENER_IN_FOLDER, /* `path` (one name, no slash) in that folder */
	OPENER_BUILD_ID,  /* /usr/lib/debug/.build-id/xx/rest.debug, below the root of pid, then
			     below ours */
	OPENER_ALT, /* what debug files share (dwz): the same by build id, else where `name`, a
		       path, leads: from the root, or from the file `path`'s folder, that
		       folder's .debug, and what it has below /usr/lib/debug; on Debian below
		       /usr/lib/debug/.dwz */
	OPENER_DEBUGLINK, /* `name` (no slash) beside the file `path`, in .debug beside it, and
			     below /usr/lib/debug; below the root of pid, then below ours */
};

struct opener_request {
	enum opener_kind kind;
	uint32_t pid;	     /* 0: only our own root */
	uint32_t parent_pid; /* whose root is likely the same, when pid is gone; 0: none */
	int folder;	     /* OPENER_IN_FOLDER: duplicated */
	uint64_t start, end;
	struct str path, name; /* copied */
	struct span build_id;  /* copied; 2..64 bytes */
	bool expect_inode;     /* OPENER_PATH: refuse any other inode than dev, inode, unopened */
	uint64_t dev, inode;   /* dev as in struct opener_file */
	/* Debug files: who owns the file that they are of, and its device is `dev`. Only root's,
	 * and this user's, are taken, or any process that maps the file could say what others' are
	 * called; of a file system whose server says who owns what, only one on that device. */
	uint32_t owner;
	/* Not for debug files: refuse a file that is neither of these users' nor root's alone, or
	 * that nobody wrote to since then (CLOCK_REALTIME), one on FUSE, and a link at the path's
	 * end. */
	bool theirs;
	uint32_t uids[2];
	uint64_t since_ns;
};

/* What the kernel says of an open file. */
struct opener_file {
	uint64_t dev; /* major << 32 | minor */
	uint64_t inode, ctime_ns, mtime_ns, size;
	uint32_t uid, mode, links;
	bool memfd;   /* fd is a sealed copy; the rest speaks of the original */
	bool partial; /* fd is a sealed copy of what the process has of it in memory: a file system
			 of its user (FUSE) that lets nobody else in; no times nor owner are known
		       */
	bool foreign; /* on FUSE or a network file system: its server says whatever it likes of
			 owner, mode and times */
};

enum opener_verdict {
	OPENER_NOT_REGULAR = 1, /* a device, a folder, a socket: not opened */
	OPENER_TOO_LARGE = 2,	/* a memfd above OPENER_COPY_MAX */
	OPENER_TIMEOUT = 3, /* no answer within the deadline, or the device owes others an answer */
	OPENER_OTHER = 4,   /* another file than the expected one is there now */
	OPENER_NO_PROGRAM = 5, /* a mapping's file in memory that is not ELF: generated code, which
				  has no more of an identity than anonymous memory */
};

/* What is known of an open file (fd: borrowed) without asking a server. 0, OPENER_NOT_REGULAR,
 * -errno. */
int opener_stat(int fd, struct opener_file *ret);

struct opener_result {
	int status; /* 0, -errno, enum opener_verdict */
	int fd;	    /* read-only, O_CLOEXEC, -1 unless status is 0; the callback's to close */
	struct opener_file file;
};
/* Whether nothing could be opened, for us or the host have no descriptor left: later it may be. */
static inline bool opener_lacks_descriptors(int status)
{
	return status == -ENFILE || status == -EMFILE;
}

typedef void opener_done(void *ctx, const struct opener_result *r);

struct opener;

/* Starts the threads. proc: the path of a mounted proc, "/proc". -errno, -ENOMEM. The caller owns
 * *ret. */
int opener_new(const char *proc, struct opener **ret);
/* Waits for no thread that hangs: what it holds is left behind. No callback is called any more. */
void opener_free(struct opener *o);
/* Readable (level) while opener_run has something to do. Borrowed. */
int opener_fd(const struct opener *o);
/* Queues a request; done is called from a later opener_run, once. *ret_ticket is never 0. 0,
 * -EINVAL (a name with a slash, too long), -ENOBUFS, -ENOMEM. */
int opener_submit(struct opener *o, const struct opener_request *q, opener_done *done, void *ctx,
		  uint64_t *ret_ticket);
/* The callback of this ticket will not be called. */
void opener_cancel(struct opener *o, uint64_t ticket);
/* Calls back for what is done, gives up on what is past its deadline. now_ns: CLOCK_MONOTONIC. How
 * many callbacks. To be called when opener_fd is readable and a few times a second. */
size_t opener_run(struct opener *o, uint64_t now_ns);

struct opener_figures {
	uint64_t opened, failed, timeouts, copies;
	unsigned hanging; /* threads past their deadline now */
};
void opener_figures(struct opener *o, struct opener_figures *ret);

/* The same, here and now, by whoever may wait (a tool run by hand, tests). proc: an O_PATH
 * descriptor. */
void opener_open_now(int proc, const struct opener_request *q, struct opener_result *ret);

#endif
