/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of profiles that is written for ever: a file for each run, called by the UTC time of its
 * begin and the format's ending, as 20261121T180000Z.pb.gz, with ".part" behind it until it is
 * whole. At most so many of them, and so many bytes, are kept; the oldest go. Nothing else in the
 * folder is touched. A part that is open is locked; an empty one that
 * nobody holds is removed by the next run.
 *
 * Beside a part lies its journal (journal.h), with ".journal" for ".part". One that nobody holds is
 * of a run that was killed: the next run goes on with that file, if it comes within ten minutes and
 * the same boot. So that a journal which kills who reads it does not do so for ever, its name has a
 * number once it was taken up again, and at the ninth time it is left where it is, as are older
 * ones: they go with age, like the profiles.
 *
 * Made for the process that opens the output of prof-export, not for the one that writes it.
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
