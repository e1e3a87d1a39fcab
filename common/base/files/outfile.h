/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that the user named for writing. All tools open their outputs by these functions, so that
 * no other user can read an output or choose where it goes.
 *
 * A regular file is always a new file with its own mode. It has no name until it is complete, or a
 * temporary name if the file system does not support files without names. It then replaces the
 * existing file of that name. An output that grows while it is read gets its name at once, if the
 * name is free. No existing file is written to, except:
 *
 * - descriptors that the caller opened: `-`, /dev/stdout, /dev/stderr, /dev/fd/N;
 * - a FIFO or a character device;
 * - a file that is a mount point, as in containers: no other file can take its place. It keeps its
 *   owner and mode.
 *
 * In a sticky folder like /tmp, the last two must belong to the user or to the folder's owner, and
 * nothing may be mounted on them. Otherwise, another user who put them there would get the output.
 */
#ifndef COMMON_BASE_FILES_OUTFILE_H
#define COMMON_BASE_FILES_OUTFILE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#define OUTFILE_MODE 0600
/* For a tool's --help. */
#define OUTFILE_USAGE \
	"  --mode MODE         the mode of new files, in octal (default 600: only their owner\n" \
	"                      may read them)\n"

enum outfile_kind {
	OUTFILE_HANDED, /* a descriptor of the caller */
	OUTFILE_DEVICE, /* a FIFO or a character device */
	OUTFILE_PLACE,	/* a file that is a mount point, overwritten in place */
	OUTFILE_NEW,	/* a new file that already has its name */
	OUTFILE_HIDDEN, /* a new file that gets its name at the end */
};

struct outfile {
	int fd;		  /* O_CLOEXEC; -1: none */
	const char *path; /* borrowed */
	enum outfile_kind kind;
	dev_t dev; /* of the existing file with this name; both 0: there is none */
	ino_t ino;
	int folder;		 /* O_PATH; -1 */
	int keeper;		 /* a socket to the keeper; -1: there is none */
	char name[NAME_MAX + 1]; /* in the folder */
	char hidden[32];	 /* the temporary name; "": there is none */
};
#define OUTFILE_NONE \
	{ \
		.fd = -1, .folder = -1, .keeper = -1 \
	}

struct outfile_how {
	mode_t mode;
	bool grows;			   /* other programs may read it while it is written */
	void (*on_wait)(const char *path); /* called when a FIFO has no reader yet; may be NULL */
};

/* Whether path is a descriptor of the caller. */
bool outfile_is_handed(const char *path);
/* Opens path. No part of it may be a symbolic link. Waits for the reader of a FIFO. -errno;
 * outfile_error has the words. */
int outfile_open(struct outfile *o, const char *path, const struct outfile_how *how);
/* Passes the folder to another process, the keeper, before the caller gives up the right to rename
 * and remove files. If the caller dies, the keeper removes an incomplete file. The caller still has
 * fd; outfile_end and outfile_drop ask the keeper. Returns 0 or -errno. */
int outfile_hand_over(struct outfile *o);
/* Whether two outputs are the same file. */
bool outfile_same(const struct outfile *a, const struct outfile *b);
/* Ends writing at fd's offset, and closes the file. whole: a HIDDEN file gets its name; otherwise
 * it is removed. -errno: the old file still has the name. If `hidden` is not empty then, the new
 * file is complete and exists next to it under that name. */
int outfile_end(struct outfile *o, bool whole);
/* Nothing was written: removes a new file, and closes it. */
void outfile_drop(struct outfile *o);
/* The reason and the remedy for an error of outfile_open or outfile_end. Static storage. */
const char *outfile_error(int r);

#endif
