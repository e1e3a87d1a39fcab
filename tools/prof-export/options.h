/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of prof-export. */
#ifndef PROFPIPE_EXPORT_OPTIONS_H
#define PROFPIPE_EXPORT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include "common/deploy.h"
#include "tools/prof-export/session.h"

/* Exit status: what was collected is written, but the stream did not end as it should. */
#define EXIT_CUT 3

struct options {
	struct deploy deploy;
	struct session_options session;
	bool format_given, summary;
	const char *output;	/* NULL: standard output */
	int output_fd;		/* -1: by hand, or to be had from output_dir */
	int journal_fd;		/* -1: none */
	const char *output_dir; /* NULL: none */
	unsigned keep_files;
	uint64_t keep_bytes;
};

/* 0; 1 when what was asked for is done; -EINVAL, logged. */
int options_parse(int argc, char **argv, struct options *o);
/* Its name, and how names of files of it end, with the dot. */
const char *options_format(enum session_format f);
const char *options_ending(enum session_format f);

#endif
