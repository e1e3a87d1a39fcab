/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor: the process that opens the output if there is no launcher. It owns the folder of
 * profiles (profiles.h) and reads no byte of the stream. A second process of this program writes
 * the file and has no access to the folder.
 */
#ifndef PROF_EXPORT_STORE_SUPERVISOR_H
#define PROF_EXPORT_STORE_SUPERVISOR_H

#include <stdint.h>
#include <sys/types.h>

struct supervisor {
	const char *dir;    /* of the profiles */
	const char *ending; /* of a profile's name */
	uid_t uid;	    /* whom prof-export runs as */
	unsigned keep_files;
	uint64_t keep_bytes;
};

/* Runs a writer until it ends. A part of main (exits.h). */
int supervisor_run(const struct supervisor *s, int argc, char **argv);

#endif
