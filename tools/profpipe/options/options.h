/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of profpipe: what its options set, and how one option is taken and checked.
 * subcommands.h and service.h have the options of each subcommand. */
#ifndef PROFPIPE_OPTIONS_OPTIONS_H
#define PROFPIPE_OPTIONS_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/command/cmdline.h"
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

/* Options without a letter. */
enum {
	OPTION_SUMMARY = 1,
	OPTION_LINES,
	OPTION_INTERPRETER,
	OPTION_CODE,
	OPTION_LIMIT,
	OPTION_JSON,
	OPTION_MODE,
	OPTION_CHANCE,
	OPTION_INTERVAL,
	OPTION_METRICS,
	OPTION_SETTINGS,
	OPTION_CHECK,
	OPTION_DIR,
	OPTION_ROTATE,
	OPTION_KEEP,
	OPTION_KEEP_SIZE
};

/* Options of record, run and report. */
#define OPTIONS_OF_OUTPUT \
	{ "output", required_argument, NULL, 'o' }, { "format", required_argument, NULL, 'f' }, \
		{ "mode", required_argument, NULL, OPTION_MODE }, \
		{ "lines", no_argument, NULL, OPTION_LINES }, \
		{ "interpreter-frames", no_argument, NULL, OPTION_INTERPRETER }, \
		{ "code", no_argument, NULL, OPTION_CODE }, REPORTING_OPTIONS, OTLP_OPTIONS, \
	{ \
		"quiet", no_argument, NULL, 'q' \
	}

/* State of the options that choose the output. */
struct options_choice {
	struct cmdline *line;
	bool format_given;
};

/* A subcommand's command line, with the usage text of all. argv[0] is the subcommand. */
struct cmdline options_line(int argc, char **argv, const char *shorts, const struct option *longs);
/* Takes the current option of choice->line, which may be of any subcommand. Returns EXITS_GO_ON, or
 * the exit status after logging an error. */
int options_take(struct options *o, struct options_choice *choice, int val);
/* Checks the output and chooses its format; standard output must be text if it is a terminal.
 * output: the default path. Returns EXITS_GO_ON, or EXITS_USAGE after logging an error. */
int options_choose_format(struct options *o, const struct options_choice *choice,
			  const char *output);
/* Checks that the targets exist on this host. Units and containers may also start later. Returns
 * EXITS_GO_ON, or EXITS_FAILED after logging an error. */
int options_check_targets(const struct targets *t);

#endif
