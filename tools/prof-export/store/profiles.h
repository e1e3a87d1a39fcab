/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of profiles, one file for each run. A file is named by the UTC time at which its run
 * began and by the format's ending, as 20261121T180000Z.pb.gz, followed by ".part" until it is
 * complete. The folder keeps a maximum number of files and of bytes, and the oldest are removed.
 * Nothing else in the folder is touched. An open part is locked; the next run removes an empty one
 * that nobody holds.
 *
 * Beside a part lies its journal (journal.h), with ".journal" instead of ".part". If nobody holds
 * it, its run was killed: the next run continues that file if it comes within ten minutes and the
 * same boot. A journal may kill its reader each time. So its name counts how often it was taken up,
 * and at the ninth time it stays where it is, as older ones do; they are removed by age, like
 * profiles.
 *
 * For the process that opens the output of prof-export, not for the one that writes it.
 */
#ifndef PROFPIPE_EXPORT_PROFILES_H
#define PROFPIPE_EXPORT_PROFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profiles {
	int dir, fd;  /* -1: none; fd is the run's file, owned here */
	int journal;  /* its journal, the same; -1: none could be had */
	unsigned max; /* files that are kept, the new one among them; 0 is none */
	uint64_t max_bytes;
	char part[96], name[96], journal_name[96]; /* of the run's file */
	bool resumed;				   /* it was begun by a run that was killed */
	unsigned removed;			   /* what went for its age */
};

#define PROFILES_NONE \
	{ \
		.dir = -1, .fd = -1, .journal = -1 \
	}

/* Opens the folder and in it a file for a run that begins at now_s (seconds of UTC), for its owner
 * to write and the group to read, or that of a run that was killed; makes room for it first, of one
 * file and none of the bytes. `ending` begins with a dot. 0, or -errno (-EEXIST: there is one of
 * this second). */
int profiles_begin(struct profiles *p, const char *path, const char *ending, int64_t now_s);
/* Who wrote has ended, and the file... */
enum profiles_end {
	PROFILES_WHOLE,	 /* is written: it gets its name, and then old ones go until all fit */
	PROFILES_FAILED, /* is not: it is removed if nothing is in it, else it keeps its ".part" */
	PROFILES_KILLED, /* is not, but who comes next will do it */
};
/* Closes all. 0, or -errno: what could be done is done. */
int profiles_end(struct profiles *p, enum profiles_end how);

#endif
