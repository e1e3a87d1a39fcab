/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool: a folder in which requests survive an outage and a restart of prof-send. Each request
 * is a file (spoolfile.h). It is written under a temporary name, synced and renamed, so a file with
 * a final name is complete. The folder is opened once by its path. Afterwards only files directly
 * in it are accessed, without following links.
 *
 * Only one prof-send at a time uses the folder, and no other user may write to it.
 */
#ifndef PROF_SEND_QUEUE_SPOOL_H
#define PROF_SEND_QUEUE_SPOOL_H

#include <dirent.h>
#include <sys/types.h>
#include "tools/prof-send/queue/spoolfile.h"

struct spool {
	int folder; /* -1: there is no spool */
};
#define SPOOL_NONE \
	(struct spool) \
	{ \
		.folder = -1 \
	}

/* A request in the folder. */
struct spool_entry {
	uint64_t serial;
	struct request_facts facts;
	uint32_t len; /* bytes, compressed */
};
/* The result of a search through the folder. */
struct spool_found {
	struct spool_entry *entries; /* for one endpoint, the oldest first; the caller frees them */
	size_t n;
	unsigned damaged;    /* files of this endpoint that were torn or forged, and removed */
	unsigned foreign;    /* files that are not ours, and left alone */
	unsigned unreadable; /* files of this endpoint that may not be read, left alone */
	uint64_t last;	     /* the highest serial of this endpoint; 0: none */
};

enum spool_verdict {
	SPOOL_OPEN_TO_OTHERS = 1, /* other users own the folder or may write to it */
	SPOOL_IN_USE = 2,	  /* another prof-send uses it */
	SPOOL_DAMAGED = 3,	  /* the file is torn, forged or gone */
	SPOOL_SYSTEM = 4,	  /* it is a folder of the system */
	SPOOL_FOREIGN = 5,	  /* it holds something that is not prof-send's */
};

/* The users who may own the folder, in addition to root and the caller. */
struct spool_owners {
	uid_t user;	   /* of this prof-send */
	uid_t first, last; /* users of earlier runs, which no other program uses; both 0: none */
};
/* Opens the folder, and locks it unless this is only a check. 0, enum spool_verdict, -errno. */
int spool_open(struct spool *s, const char *path, const struct spool_owners *owners, bool lock);
/* Whether the folder may be given to another user: it is not one of the system's, and it is empty,
 * holds only files of prof-send, or was given to an earlier run. path: of the folder. Returns 0,
 * SPOOL_SYSTEM, SPOOL_FOREIGN or -errno. */
int spool_may_take(const struct spool *s, const char *path, const struct spool_owners *owners);
/* Gives the folder and our files in it to this user. Root calls it before it becomes that user.
 * Returns 0 or -errno. */
int spool_hand_over(const struct spool *s, uid_t uid, gid_t gid);
void spool_close(struct spool *s);
/* The folder's names from the beginning, for readdir. NULL: errno. The caller closes it. */
DIR *spool_names(const struct spool *s);
/* Searches the folder and removes torn files of this endpoint. Returns 0 or -errno. */
int spool_find(const struct spool *s, uint64_t key, struct spool_found *ret);
/* Returns 0, or -errno if nothing was written (-ENOSPC, -EDQUOT, -EIO). */
int spool_write(const struct spool *s, uint64_t key, uint64_t serial, const struct request *r);
/* Returns 0, SPOOL_DAMAGED or -errno. The caller drops *ret. */
int spool_read(const struct spool *s, uint64_t key, uint64_t serial, struct request **ret);
void spool_remove(const struct spool *s, uint64_t key, uint64_t serial);
/* The "reason; remedy" for a result of spool_open or spool_may_take. Static storage. */
const char *spool_error(int r);

#endif
