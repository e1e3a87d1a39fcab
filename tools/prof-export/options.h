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
	unsigned mode;	    /* mode of a new output file */
	const char *output; /* NULL: standard output */
	int output_fd;	    /* -1: none, or run by hand */
	int journal_fd;	    /* -1: none */
	int next_fd;	    /* -1: no other output follows */
	uint64_t file;	    /* the number of the output */
	bool send;	    /* also send to prof-send */
};

/* A part of main (exits.h). *o holds the defaults. */
int options_parse(int argc, char **argv, struct options *o);

#endif
