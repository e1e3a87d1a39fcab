/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How samples are reported to a backend: the options that profpipe takes from the user and passes
 * on to prof-export, and --names also to prof-symd. REPORTING_USAGE lists them.
 */
#ifndef COMMON_BASE_COMMAND_REPORTING_H
#define COMMON_BASE_COMMAND_REPORTING_H

#include "common/base/command/cmdline.h"
#include "common/base/command/words.h"

enum reporting_names {
	REPORTING_ALL,
	REPORTING_INTERPRETED,
	REPORTING_NO_NAMES,
};

enum reporting_receiver {
	REPORTING_COLLECTOR, /* the OpenTelemetry Collector, and all that accept what it accepts */
	/* devfiler: refuses attributes of a mapping without htlhash, and the frame types rust and
	 * luajit. */
	REPORTING_DEVFILER,
};

struct reporting {
	double window_s;
	unsigned jitter_percent;
	enum reporting_names names;
	enum reporting_receiver receiver;
};
#define REPORTING_DEFAULTS ((struct reporting){ .window_s = 5, .jitter_percent = 20 })

/* The options above, for a tool's long options. */
enum { REPORTING_WINDOW = 1200, REPORTING_JITTER, REPORTING_NAMES, REPORTING_RECEIVER };
#define REPORTING_NAMES_OPTION \
	{ \
		"names", required_argument, NULL, REPORTING_NAMES \
	}
#define REPORTING_OPTIONS \
	{ "window", required_argument, NULL, REPORTING_WINDOW }, \
		{ "window-jitter", required_argument, NULL, REPORTING_JITTER }, \
		{ "receiver", required_argument, NULL, REPORTING_RECEIVER }, \
		REPORTING_NAMES_OPTION

/* For a tool's --help. */
#define REPORTING_NAMES_USAGE \
	"  --names all|interpreted|none\n" \
	"                      show these names of functions (default all); interpreted: no\n" \
	"                      names for native code in files\n"
#define REPORTING_USAGE \
	REPORTING_NAMES_USAGE \
	"  --window SECONDS    otlp: end a request after this time (default 5)\n" \
	"  --window-jitter PERCENT\n" \
	"                      otlp: make windows longer or shorter by up to this (default 20)\n" \
	"  --receiver collector|devfiler\n" \
	"                      otlp: write for this receiver (default collector)\n"
/* The same for two options that this parser does not read. */
#define REPORTING_INTERPRETER_USAGE \
	"  --interpreter-frames\n" \
	"                      also show the native frames of an interpreter's own loop\n"
#define REPORTING_CODE_USAGE \
	"  --code              mark Java methods by kind of code: _[i] interpreted, _[c1] and\n" \
	"                      _[c2] compiled, _[n] the caller of a native method\n"

/* Whether val is one of the options above. */
bool reporting_has(int val);
/* Takes the current option of *c; val: its value in REPORTING_OPTIONS. EXITS_GO_ON, or EXITS_USAGE,
 * logged. */
int reporting_option(struct reporting *r, const struct cmdline *c, int val);
/* Appends options from which reporting_option makes the same settings. */
void reporting_words(const struct reporting *r, struct words *w);
/* The same, only for --names. */
void reporting_names_words(const struct reporting *r, struct words *w);

#endif
