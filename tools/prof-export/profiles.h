/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of profiles that is written for ever: a file for each run, called by the UTC time of its
 * begin and the format's ending, as 20261121T180000Z.pb.gz, with ".part" behind it until it is
 * whole. At most so many of them, and so many bytes, are kept; the oldest go. Nothing else in the
 * folder is touched. A part that is open is locked; an empty one that
 * nobody holds is removed by the next run. Made for the process that opens the output of
 * prof-export, not for the one that writes it.
 */
#ifndef PROFPIPE_EXPORT_PROFILES_H
#define PROFPIPE_EXPORT_PROFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profiles {
	int dir, fd;  /* -1: none; fd is the run's file, owned here */
	unsigned max; /* files that are kept, the new one among them; 0 is none */
	uint64_t max_bytes;
	char part[96], name[96]; /* of the run's file */
	unsigned removed;	 /* what went for its age */
};

#define PROFILES_NONE \
	{ \
		.dir = -1, .fd = -1 \
	}

/* Opens the folder and in it a file for a run that begins at now_s (seconds of UTC), for its owner
 * to write and the group to read; makes room for it first, of one file and none of the bytes.
 * `ending` begins with a dot. 0, or -errno (-EEXIST: there is one of this second). */
int profiles_begin(struct profiles *p, const char *path, const char *ending, int64_t now_s);
/* The file is written: with `whole` it gets its name, and then old ones go until all fit; else it
 * is removed if nothing is in it, and keeps its ".part" if something is. Closes all. 0, or -errno:
 * what could be done is done. */
int profiles_end(struct profiles *p, bool whole);

#endif
