/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A settings file: lines `key = value`. A line that begins with # or ; is a comment. libinih splits
 * each line; it gets one line at a time, so that every error has its line. Pure.
 *
 * libinih would end a value at a `;` after a blank, and cut long lines. Both are refused, since a
 * value must not lose its end.
 */
#ifndef PROFPIPE_SETTINGS_SETTINGS_H
#define PROFPIPE_SETTINGS_SETTINGS_H

#include <stddef.h>
#include "common/base/span.h"

#define SETTINGS_MAX 256	   /* of a file */
#define SETTINGS_BYTES (64u << 10) /* of a file */

struct setting {
	char *key, *value; /* not empty; without blanks at their ends */
	unsigned line;	   /* from 1 on */
};
struct settings {
	struct setting list[SETTINGS_MAX]; /* in the order of the file; owns the texts */
	size_t count;
};

enum settings_verdict {
	SETTINGS_BAD = 1, /* some lines were refused; the callback got each of them */
};
/* Gets each refused line. key: may be NULL, and may hold any bytes. why: "reason; remedy". */
typedef void settings_refuse(void *ctx, unsigned line, const char *key, const char *why);
/* Adds the settings of a file to an empty *s, also after a refused line. 0, enum
 * settings_verdict, -ENOMEM. In each case, free it with settings_done. */
int settings_parse(struct settings *s, struct str text, settings_refuse *refuse, void *ctx);
void settings_done(struct settings *s);

#endif
