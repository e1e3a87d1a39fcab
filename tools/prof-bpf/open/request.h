/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request to open a file that a process chose, and its result: what the opener (opener.h) takes
 * and gives, and what its threads do (opening.h).
 */
#ifndef PROFPIPE_REQUEST_H
#define PROFPIPE_REQUEST_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include "common/base/span.h"

#define OPENER_COPY_MAX (64u << 20) /* bytes of a memfd */
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
	bool by_users;
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

#endif
