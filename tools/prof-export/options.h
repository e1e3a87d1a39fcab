/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of prof-export. */
#ifndef PROF_EXPORT_OPTIONS_H
#define PROF_EXPORT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "common/cell/deploy.h"
#include "tools/prof-export/session/session.h"

struct options {
	struct deploy deploy;
	struct session_options session;
	bool format_given, stats;
	unsigned mode;		/* of a new output */
	const char *output;	/* NULL: standard output */
	int output_fd;		/* -1: by hand, or prof-export makes it in output_dir */
	int journal_fd;		/* -1: none */
	const char *output_dir; /* NULL: none */
	unsigned keep_files;
	uint64_t keep_bytes;
	bool send; /* to prof-send, too */
};

/* A part of main (exits.h). *o holds the defaults. */
int options_parse(int argc, char **argv, struct options *o);

#endif
