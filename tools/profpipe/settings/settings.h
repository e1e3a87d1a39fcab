/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A settings file: lines of `key = value`. A line that begins with # or ; is a comment. libinih
 * splits each line; it gets one line at a time, so that we know the line of every error. Pure.
 *
 * libinih would end a value at a `;` after a blank, and would cut off long lines. Both are refused,
 * so that no value loses its end silently.
 */
#ifndef PROFPIPE_SETTINGS_SETTINGS_H
#define PROFPIPE_SETTINGS_SETTINGS_H

#include <stddef.h>
#include "common/base/bytes/str.h"

#define SETTINGS_MAX 256	   /* of one file */
#define SETTINGS_BYTES (64u << 10) /* of one file */

struct setting {
	char *key, *value; /* not empty; without blanks at the ends */
	unsigned line;	   /* from 1 on */
};
struct settings {
	struct setting list[SETTINGS_MAX]; /* in the order of the file; owns the texts */
	size_t count;
};

enum settings_verdict {
	SETTINGS_BAD = 1, /* some lines were refused; the callback got each of them */
};
/* Called for each refused line. key may be NULL, and may contain any bytes. why: "reason;
 * remedy". */
typedef void settings_refuse(void *ctx, unsigned line, const char *key, const char *why);
/* Adds the settings of a file to an empty *s, and goes on after a refused line. Returns 0, enum
 * settings_verdict or -ENOMEM. In each case, settings_done frees *s. */
int settings_parse(struct settings *s, struct str text, settings_refuse *refuse, void *ctx);
void settings_done(struct settings *s);

#endif
