/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request to open a file that a process chose, and its result, for the opener (opener.h) and the
 * worker processes that open files (opening.h).
 */
#ifndef PROF_BPF_OPEN_OPENING_OPENER_REQUEST_H
#define PROF_BPF_OPEN_OPENING_OPENER_REQUEST_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"

#define OPENER_COPY_MAX (64u << 20) /* limit of the size of a file that is copied */
#define OPENER_PATH_MAX 4096u

enum opener_kind {
	/* The file that process pid has mapped at [start, end). If the mapping is gone or may not
	 * be followed: `path` below its root, its parent's or ours, with the inode checked. If the
	 * kernel or the file system does not allow opening the file: the mapped contents. */
	OPENER_MAPPING,
	/* `path` below the root of pid; with expect_inode also below its parent's root and ours. */
	OPENER_PATH,
	/* The folder `path` below the root of pid, for later use: an O_PATH descriptor. */
	OPENER_FOLDER,
	OPENER_IN_FOLDER, /* `path` (one name, without a slash) in that folder */
	/* Debug files, below the root of pid. /usr/lib/debug/.build-id/xx/rest.debug. */
	OPENER_BUILD_ID,
	/* The file that debug files share (dwz), by build id or else by `name`, a path. This starts
	 * from the root, or from the file `path`'s folder, that folder's .debug, and its
	 * counterpart below /usr/lib/debug; on Debian, below /usr/lib/debug/.dwz. */
	OPENER_ALT,
	/* `name` (no slash) beside the file `path`, in .debug beside it, and below
	 * /usr/lib/debug. */
	OPENER_DEBUGLINK,
};

struct owner;

struct opener_request {
	enum opener_kind kind;
	struct owner *payer; /* the owner charged for this (owners.h); NULL: none */
	bool sampled;	     /* samples wait for it, so it comes before other requests */
	/* Only report what the file is. If it is given as a copy, do not make the copy now. */
	bool look_only;
	uint32_t pid;	     /* 0: search only our own root */
	uint32_t parent_pid; /* its root is probably the same, if pid is gone; 0: none */
	int folder;	     /* OPENER_IN_FOLDER: duplicated */
	uint64_t start, end;
	struct str path, name; /* copied */
	struct span build_id;  /* copied; 2 to 64 bytes */
	/* OPENER_PATH: refuse any inode other than dev, inode, without opening it. */
	bool expect_inode;
	uint64_t dev, inode; /* dev as in struct opener_file */
	/* Debug files: the owner of the file that they describe, and `dev` its device. Only files
	 * of root and of this user are accepted: otherwise any process that maps the file could
	 * learn the names of others' files. If a file server reports the owners, only files on that
	 * device are accepted. */
	uint32_t owner;
	uint32_t place; /* number of the first of the places above to look in */
	/* Not for debug files. Refuse a file that does not belong to one of these users, or to root
	 * alone. Also refuse one that was not written since since_ns (CLOCK_REALTIME), one on FUSE,
	 * and a link at the end of the path. */
	bool by_users;
	uint32_t uids[2];
	uint64_t since_ns;
};

/* The kernel's data of an open file. */
struct opener_file {
	uint64_t dev; /* major << 32 | minor */
	uint64_t inode, ctime_ns, mtime_ns, size;
	uint32_t uid, mode, links;
	/* fd is a sealed copy, because the file is in memory or foreign. The other fields describe
	 * the original. */
	bool copied;
	bool memfd;
	/* The copy has only what the process has mapped, because the file system allows nothing
	 * else. Times, owner and size are unknown. */
	bool partial;
	/* On a file system that may keep us waiting (mounts.h), and may report any owner, mode and
	 * times. */
	bool foreign;
};

enum opener_verdict {
	OPENER_NOT_REGULAR = 1, /* a device, a folder, or a socket; it was not opened */
	OPENER_TOO_LARGE = 2,	/* must be copied, but is larger than OPENER_COPY_MAX */
	/* No answer within the deadline; or the device, or other requests of the same owner,
	 * hang. */
	OPENER_TIMEOUT = 3,
	OPENER_OTHER = 4, /* no longer the expected file */
	/* A mapped file in memory that is not ELF: generated code, which has no more identity than
	 * anonymous memory. */
	OPENER_NO_PROGRAM = 5,
	/* Refused by our own rules (by_users, debug files, files that the kernel makes). No other
	 * way to the file is tried. */
	OPENER_REFUSED = 6,
	OPENER_NO_ROOM = 7, /* no memory is left for copies, or the owner has used its share */
	/* Only within opener.c: it leads to a foreign file system, whose device is in the
	 * result. */
	OPENER_FOREIGN = 8,
};

struct opener_result {
	int status; /* 0, -errno or enum opener_verdict */
	/* Read-only, O_CLOEXEC; the callback closes it. -1 unless status is 0; with look_only also
	 * for files that are copied. */
	int fd;
	struct opener_file file;
	uint32_t place;	 /* the place where a debug file was found */
	uint64_t cpu_ns; /* cpu time of the worker that opened it */
};
/* Whether an opening failed only because this process or the host has no free descriptor; it may
 * succeed later. */
static inline bool opener_lacks_descriptors(int status)
{
	return status == -ENFILE || status == -EMFILE;
}

#endif
