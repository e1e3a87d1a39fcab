/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of `profpipe run`, from its command line and its settings file. Each key of the file
 * is a long option without its dashes, with the same values; an option without a value is yes or
 * no. An option on the command line replaces the key of the file.
 */
#ifndef PROFPIPE_OPTIONS_SERVICE_H
#define PROFPIPE_OPTIONS_SERVICE_H

#include <stdbool.h>
#include "tools/profpipe/options/options.h"
#include "tools/profpipe/settings/settings.h"

#define SERVICE_OPTIONS 80 /* limit, for one subcommand */

struct service {
	struct options options;	     /* borrows texts from `file` and argv */
	const char *path;	     /* of the settings file; NULL: none */
	bool check;		     /* only check the settings file */
	bool given[SERVICE_OPTIONS]; /* which options are on the command line */
	struct settings file;
	int argc;
	char **argv;
};

/* Parses the command line and the settings file. A part of main (exits.h). argv[0] is the
 * subcommand; argv is borrowed permanently. After EXITS_GO_ON, service_done frees *ret. */
int service_parse(int argc, char **argv, struct service *ret);
/* Reads the settings file of *now again, with the same command line, into *ret. EXITS_GO_ON: *ret
 * may replace *now, and differs only in what may change during the run. Otherwise *ret is empty,
 * and each error is logged. */
int service_reload(const struct service *now, struct service *ret);
void service_done(struct service *s);

#endif
