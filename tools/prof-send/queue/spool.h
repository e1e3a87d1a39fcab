/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The spool: a folder in which requests survive an outage, and the end of prof-send. Each request
 * is a file (spoolfile.h). It is written under a name that does not count, synced, and renamed; so
 * a file with its name is whole. The folder is opened once, by its path; from then on only what is
 * directly in it is reached, without following links.
 *
 * The folder belongs to one prof-send at a time, and nobody else may write to it.
 */
#ifndef PROF_SEND_QUEUE_SPOOL_H
#define PROF_SEND_QUEUE_SPOOL_H

#include <sys/types.h>
#include "tools/prof-send/queue/spoolfile.h"

struct spool {
	int folder; /* locked; -1: there is no spool */
};
#define SPOOL_NONE \
	(struct spool) \
	{ \
		.folder = -1 \
	}

/* A request that lies in the folder. */
struct spool_entry {
	uint64_t serial;
	struct request_facts facts;
	uint32_t len; /* bytes, compressed */
};
/* The files that were found in the folder. */
struct spool_found {
	struct spool_entry *entries; /* of one endpoint, the oldest first; the caller frees them */
	size_t n;
	unsigned damaged; /* of this endpoint: torn or falsified, and removed */
	unsigned foreign; /* not ours, and left alone */
	unsigned others;  /* of endpoints with another key, and left alone */
};

enum spool_verdict {
	SPOOL_OPEN_TO_OTHERS = 1, /* others may write to the folder, or own it */
	SPOOL_IN_USE = 2,	  /* another prof-send has it */
	SPOOL_DAMAGED = 3,	  /* the file is torn, falsified or gone */
};

/* The users who may own the folder, besides root and the caller. */
struct spool_owners {
	uid_t user;	   /* of this prof-send */
	uid_t first, last; /* users of earlier runs, whom nobody else has; 0 and 0: none */
};
/* Opens and locks the folder. 0, enum spool_verdict, -errno. */
int spool_open(struct spool *s, const char *path, const struct spool_owners *owners);
/* Gives the folder and the files of ours in it to this user. For root, before it becomes the user.
 * 0, -errno. */
int spool_hand_over(const struct spool *s, uid_t uid, gid_t gid);
void spool_close(struct spool *s);
/* Looks through the folder, and removes torn files of this endpoint. 0, -errno. */
int spool_find(const struct spool *s, uint64_t key, struct spool_found *ret);
/* 0, -errno: nothing was written (-ENOSPC, -EDQUOT, -EIO). */
int spool_write(const struct spool *s, uint64_t key, uint64_t serial, const struct request *r);
/* 0, SPOOL_DAMAGED, -errno. The caller drops *ret. */
int spool_read(const struct spool *s, uint64_t key, uint64_t serial, struct request **ret);
void spool_remove(const struct spool *s, uint64_t key, uint64_t serial);
/* "reason; remedy" of a result of spool_open. Static storage. */
const char *spool_error(int r);

#endif
