/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of profiles, one file after another. The name of a file is the UTC time at which it
 * begins and the format's ending, as 20261121T180000Z.pb.gz. Until the file is complete, ".part"
 * follows. The folder keeps a maximum number of files and of bytes; the oldest are removed. Nothing
 * else in the folder is touched. An open part is locked; an empty one that nobody holds is removed.
 *
 * Beside a part lies its journal, in which prof-export keeps what it received, with ".journal"
 * instead of ".part". If nobody holds it, its run was killed: the next run continues that file if
 * it comes within ten minutes and the same boot. A journal may kill its reader each time. So its
 * name counts its readers, and nobody continues it a ninth time. Such journals, and older ones, are
 * removed by age, like profiles.
 */
#ifndef PROFPIPE_STORE_PROFILES_H
#define PROFPIPE_STORE_PROFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profiles {
	int dir, fd;  /* -1: none; fd is the file, owned here */
	int journal;  /* the same for its journal */
	unsigned max; /* whole files to keep; 0: none */
	uint64_t max_bytes;
	char part[96], name[96], journal_name[96]; /* of the file */
	bool resumed;				   /* a killed run began it */
};

#define PROFILES_NONE \
	{ \
		.dir = -1, .fd = -1, .journal = -1 \
	}

/* Opens the folder, and in it a file that begins at now_s (seconds of UTC), or with `resumes` that
 * of a killed run. The owner may write it and the group read it. Removes what is too much. `ending`
 * begins with a dot. 0, or -errno (-EEXIST: another file began in this second). */
int profiles_begin(struct profiles *p, const char *path, const char *ending, int64_t now_s,
		   bool resumes);
/* How the writer ended. */
enum profiles_end {
	PROFILES_WHOLE,	 /* the file is complete: gets its name; then old ones make room */
	PROFILES_FAILED, /* it is not: is removed if empty, else keeps its ".part" */
	PROFILES_KILLED, /* it is not, but the next run continues it */
};
/* Closes all. 0, or -errno, after all that was possible. */
int profiles_end(struct profiles *p, enum profiles_end how);

#endif
