/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of profpipe. */
#ifndef PROFPIPE_OPTIONS_OPTIONS_H
#define PROFPIPE_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/command/format.h"
#include "common/base/command/reporting.h"
#include "common/cell/targets/sampling.h"
#include "tools/profpipe/options/otlp.h"

struct options {
	struct sampling sampling;
	const char *output; /* path, or "-" for standard output; NULL: samples are only sent */
	/* run: a folder that gets a new file every rotate_s; the newest files are kept. NULL:
	 * none. */
	const char *output_dir;
	double rotate_s;
	unsigned keep_files;
	uint64_t keep_bytes;
	unsigned mode; /* mode of new files */
	enum format format;
	const char *summary;		      /* path, or NULL */
	const char *input;		      /* report: the recording */
	char **command;			      /* NULL-terminated, or NULL */
	bool lines, interpreter_frames, code; /* for prof-export */
	struct reporting reporting;	      /* for prof-export */
	struct otlp_words otlp;		      /* for prof-send */
	uint64_t limit;			      /* of the memory of the run; 0: the default */
	bool json;			      /* of doctor */
	bool quiet, verbose;
	unsigned chance;     /* run: percentage of intervals in which this host samples */
	double interval_s;   /* run: length of these intervals */
	const char *metrics; /* run: address at which to serve metrics (listen.h), or NULL */
};

/* Parts of main (exits.h). argv[0] is the subcommand. */
int options_record(int argc, char **argv, struct options *ret);
int options_report(int argc, char **argv, struct options *ret);
int options_doctor(int argc, char **argv, struct options *ret);
/* Parses the options before the subcommand, and finds the index of the subcommand in argv. */
int options_subcommand(int argc, char **argv, int *ret);

#endif
