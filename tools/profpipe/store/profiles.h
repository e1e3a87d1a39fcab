/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of profiles, one file after another. A file's name is the UTC time at which it begins
 * and the format's ending, as 20261121T180000Z.pb.gz. Until the file is complete, its name also has
 * the ending ".part". The folder keeps a limited number of files and bytes; the oldest files are
 * removed. Other files in the folder are never touched. An open part is locked; an empty part that
 * nobody locks is removed.
 *
 * Each part has a journal, in which prof-export keeps what it received; its name has ".journal"
 * instead of ".part". If nobody locks the journal, its run was killed. The next run then continues
 * that file, if it starts within ten minutes and in the same boot. Since a journal may crash its
 * reader each time, its name counts how often it was continued, and nobody continues it a ninth
 * time. Such journals, and those that are too old, are removed by age, like profiles.
 */
#ifndef PROFPIPE_STORE_PROFILES_H
#define PROFPIPE_STORE_PROFILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct profiles {
	int dir, fd;  /* -1: none; fd is the file that is being written, owned here */
	int journal;  /* likewise, its journal */
	unsigned max; /* number of complete files to keep */
	uint64_t max_bytes;
	char part[96], name[96], journal_name[96]; /* names of the file */
	bool resumed;				   /* a killed run began it */
};

#define PROFILES_NONE \
	{ \
		.dir = -1, .fd = -1, .journal = -1 \
	}

enum profiles_verdict {
	PROFILES_OPEN = 1, /* every user may write to the folder, and so replace its files */
	PROFILES_LINK = 2, /* the folder's name is a link of another user, who can change it */
};

/* Opens the folder of this name. Returns a descriptor, or *ret_error: enum profiles_verdict or
 * -errno. */
int profiles_open(const char *path, int *ret_error);
/* The "reason; remedy" for an error of profiles_open or profiles_begin. Static storage. */
const char *profiles_error(int r);

/* Opens the folder, and in it a file that begins at now_s (seconds of UTC), or, if `resumes` is
 * set, the file of a killed run. The owner may write the file, and the group may read it. Removes
 * files beyond the limits. `ending` begins with a dot. Returns 0, enum profiles_verdict, or -errno
 * (-EEXIST: another file began in this second). */
int profiles_begin(struct profiles *p, const char *path, const char *ending, int64_t now_s,
		   bool resumes);
/* How the writer ended. */
enum profiles_end {
	/* The file is complete: it gets its name, and then old files are removed. */
	PROFILES_WHOLE,
	/* The file is incomplete: it is removed if empty, else keeps its ".part". */
	PROFILES_FAILED,
	PROFILES_KILLED, /* the file is incomplete, but the next run can continue it */
};
/* Closes everything. Returns 0, or -errno after doing as much as possible. */
int profiles_end(struct profiles *p, enum profiles_end how);

#endif
