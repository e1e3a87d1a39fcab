/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folder of profiles (store/profiles.h) of a run with --output-dir. After each --rotate, the
 * next file begins: the launcher opens it, sends its descriptors to prof-export, and has prof-symd
 * begin a new epoch. At that epoch, prof-export completes the present file, which then gets its
 * name, and switches to the next one. Sampling continues meanwhile.
 *
 * All files are opened and removed with the rights of the user (user.h).
 */
#ifndef PROFPIPE_RUN_OUTPUTS_FOLDER_H
#define PROFPIPE_RUN_OUTPUTS_FOLDER_H

#include <stdbool.h>
#include <stdint.h>
#include "tools/profpipe/options/options.h"
#include "tools/profpipe/run/children/child.h"
#include "tools/profpipe/store/profiles.h"

struct folder {
	const struct options *o;   /* borrowed; NULL: there is no folder */
	struct profiles now, next; /* the files that prof-export writes now, and next */
	uint64_t file;		   /* the number of `now` (struct deploy_next) */
	/* The figures of the files before `now`, as prof-export reports them. */
	struct status sum;
	bool waits;	   /* `next` is open, and prof-export was told about it */
	uint64_t since_ns; /* when `now` began; if `waits` is set, when `next` did */
	uint64_t tried_ns; /* when `next` could not be opened; 0: no error */
	int socket;	   /* to prof-export; -1: none */
};
#define FOLDER_NONE ((struct folder){ .now = PROFILES_NONE, .next = PROFILES_NONE, .socket = -1 })

/* Opens the folder and the first file. o: borrowed until folder_end. 0, or -errno, logged. */
int folder_open(struct folder *f, const struct options *o);
/* Makes the socket of a new prof-export, which gets *ret_fd; the caller closes that. If the former
 * prof-export had switched to the next file, the new one begins there. -errno. */
int folder_connect(struct folder *f, int *ret_fd);
/* A new prof-export runs: tells it what the former one knew. */
void folder_tell(struct folder *f, struct child *symd);
/* Call it in each iteration of the loop. Begins the next file when it is due and the run samples;
 * gives the present file its name when it is complete. Does nothing without a folder. */
void folder_turn(struct folder *f, bool samples, const struct child *export, struct child *symd);
/* The run is over. Gives the last file its name if it is complete. If prof-export was killed,
 * leaves the file for the next run to continue. sampled: sampling had begun. Returns false after an
 * error, which is logged. */
bool folder_end(struct folder *f, const struct child *export, bool sampled);

#endif
