/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of prof-send that profpipe takes and passes on unchanged: --otlp ENDPOINT and the
 * options that say how to reach it. Their order matters, since an option after an --otlp applies to
 * that endpoint. prof-send checks them. It also gets the environment variables that can replace
 * them.
 */
#ifndef PROFPIPE_OPTIONS_OTLP_H
#define PROFPIPE_OPTIONS_OTLP_H

#include <stdbool.h>
#include <stddef.h>
#include "common/base/command/cmdline.h"
#include "common/base/command/words.h"

#define OTLP_WORDS 128 /* limit */

struct otlp_words {
	const char *words[OTLP_WORDS]; /* borrowed from argv and static names */
	size_t n;
	size_t endpoints; /* 0: nothing is sent */
	double drain_s;	  /* 0: not given */
};

enum { OTLP_FIRST = 1300, OTLP_ENDPOINT = OTLP_FIRST, OTLP_DRAIN = OTLP_FIRST + 10 };
#define OTLP_OPTIONS \
	{ "otlp", required_argument, NULL, OTLP_ENDPOINT }, \
		{ "otlp-protocol", required_argument, NULL, OTLP_ENDPOINT + 1 }, \
		{ "otlp-header-file", required_argument, NULL, OTLP_ENDPOINT + 2 }, \
		{ "otlp-ca", required_argument, NULL, OTLP_ENDPOINT + 3 }, \
		{ "otlp-cert", required_argument, NULL, OTLP_ENDPOINT + 4 }, \
		{ "otlp-key", required_argument, NULL, OTLP_ENDPOINT + 5 }, \
		{ "otlp-compression", required_argument, NULL, OTLP_ENDPOINT + 6 }, \
		{ "otlp-timeout", required_argument, NULL, OTLP_ENDPOINT + 7 }, \
		{ "otlp-spool", required_argument, NULL, OTLP_ENDPOINT + 8 }, \
		{ "otlp-spool-size", required_argument, NULL, OTLP_ENDPOINT + 9 }, \
	{ \
		"otlp-drain", required_argument, NULL, OTLP_DRAIN \
	}

/* Whether val is one of the options above. */
bool otlp_has(int val);
/* Takes the current option of *c. Returns EXITS_GO_ON, or EXITS_USAGE after logging an error. */
int otlp_option(struct otlp_words *o, const struct cmdline *c, int val);
/* Returns EXITS_GO_ON, or EXITS_USAGE after logging that there are options but no endpoint. */
int otlp_check(const struct otlp_words *o);
bool otlp_equal(const struct otlp_words *a, const struct otlp_words *b);
/* Whether undelivered requests are kept on disk. */
bool otlp_spools(const struct otlp_words *o);
/* Appends the same options to the words. */
void otlp_pass_on(const struct otlp_words *o, struct words *w);

#define OTLP_VARIABLES 64 /* limit, including the final NULL */
/* Returns the variables of our environment that prof-send needs: "NAME=value", borrowed,
 * NULL-terminated. */
void otlp_variables(const char *ret[static OTLP_VARIABLES]);

#endif
