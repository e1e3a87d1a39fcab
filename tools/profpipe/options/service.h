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

#define SERVICE_OPTIONS 80 /* at most, of the subcommand */

struct service {
	struct options options;	     /* borrows texts of `file` and of argv */
	const char *path;	     /* of the settings file; NULL: none */
	bool check;		     /* only say whether the file is right */
	bool given[SERVICE_OPTIONS]; /* on the command line */
	struct settings file;
	int argc;
	char **argv;
};

/* Parses the command line, and the file that it names. A part of main (exits.h). argv[0] is the
 * subcommand; argv is borrowed permanently. After EXITS_GO_ON service_done frees. */
int service_parse(int argc, char **argv, struct service *ret);
/* Reads the file of *now again, with the same command line, into *ret. EXITS_GO_ON: *ret may
 * replace *now, and differs only in what may change while the tools run. Otherwise *ret is free,
 * and each error is logged. */
int service_reload(const struct service *now, struct service *ret);
void service_done(struct service *s);

#endif
