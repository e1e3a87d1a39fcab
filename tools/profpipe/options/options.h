/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of profpipe. */
#ifndef PROFPIPE_OPTIONS_OPTIONS_H
#define PROFPIPE_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/format.h"
#include "common/base/reporting.h"
#include "common/cell/sampling.h"
#include "tools/profpipe/options/otlp.h"

struct options {
	struct sampling sampling;
	const char *output; /* path, "-" for standard output; NULL: none, samples are only sent */
	/* run: a folder for one file after another, each of rotate_s; the newest are kept. NULL:
	 * none. */
	const char *output_dir;
	double rotate_s;
	unsigned keep_files;
	uint64_t keep_bytes;
	unsigned mode; /* of new files */
	enum format format;
	const char *summary;		      /* path, or NULL */
	const char *input;		      /* report: the recording */
	char **command;			      /* NULL-terminated, or NULL */
	bool lines, interpreter_frames, code; /* prof-export's */
	struct reporting reporting;	      /* likewise */
	struct otlp_words otlp;		      /* prof-send's */
	uint64_t limit;			      /* of the run's memory; 0: the default */
	bool json;			      /* doctor */
	bool quiet, verbose;
	unsigned chance;     /* run: percent of its intervals in which this host samples */
	double interval_s;   /* run: of the chance */
	const char *metrics; /* run: address to serve them at (listen.h), or NULL */
};

/* Parts of main (exits.h). argv[0] is the subcommand. */
int options_record(int argc, char **argv, struct options *ret);
int options_report(int argc, char **argv, struct options *ret);
int options_doctor(int argc, char **argv, struct options *ret);
/* Parses what stands before the subcommand, and finds the subcommand's place in argv. */
int options_subcommand(int argc, char **argv, int *ret);

#endif
