/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of profiles (store/profiles.h) of a run with --output-dir. After each --rotate, the
 * next file begins: the launcher opens it and sends its descriptors to prof-export, and has
 * prof-symd begin a new epoch. prof-export turns to the next file with that epoch, after it has
 * written the former one, which then gets its name. Sampling goes on meanwhile.
 *
 * All files are opened and removed with the rights of the user (user.h).
 */
#ifndef PROFPIPE_RUN_FOLDER_H
#define PROFPIPE_RUN_FOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include "tools/profpipe/options/options.h"
#include "tools/profpipe/run/children.h"
#include "tools/profpipe/store/profiles.h"

struct folder {
	const struct options *o;   /* borrowed; NULL: there is no folder */
	struct profiles now, next; /* what prof-export writes; what it is to write then */
	uint64_t file;		   /* the number of `now` (struct deploy_next) */
	struct status sum;	   /* the figures of the files before it, as prof-export says */
	bool waits;		   /* `next` is open, and prof-export was told */
	uint64_t since_ns;	   /* when `now` began; with `waits`: `next` */
	uint64_t tried_ns;	   /* when `next` could not be opened; 0: it could */
	int socket;		   /* to prof-export; -1 */
};
#define FOLDER_NONE ((struct folder){ .now = PROFILES_NONE, .next = PROFILES_NONE, .socket = -1 })

/* Opens the folder and the first file. o: borrowed until folder_end. 0, or -errno, logged. */
int folder_open(struct folder *f, const struct options *o);
/* Makes the socket of a new prof-export, which is to get *ret_fd: the caller closes it. If the
 * former one had turned to the next file, its successor begins there. -errno. */
int folder_connect(struct folder *f, int *ret_fd);
/* A new prof-export runs: tells it what the former one knew. */
void folder_tell(struct folder *f, struct child *symd);
/* To be called at each turn of the loop: begins the next file when it is time and the run samples,
 * and names the former one when it is written. Does nothing without a folder. */
void folder_turn(struct folder *f, bool samples, const struct child *export, struct child *symd);
/* The run is over. Names the last file if it is whole, or leaves it for the next run to continue if
 * prof-export was killed; sampled: it had begun. False: an error, logged. */
bool folder_end(struct folder *f, const struct child *export, bool sampled);

#endif
