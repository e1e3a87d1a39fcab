/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment and the command line of a process, from /proc/PID/environ and cmdline. They are
 * untrusted bytes from its memory. Pure. Only requested variables leave the worker that reads them
 * (worker.h).
 *
 * Source: proc(5).
 */
#ifndef PROF_BPF_OPEN_WORKERS_ENVIRONMENT_H
#define PROF_BPF_OPEN_WORKERS_ENVIRONMENT_H

#include <stdbool.h>
#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"
#include "common/cell/targets/sampling.h"

/* Bytes; longer values are truncated between characters of UTF-8. */
#define ENVIRONMENT_VALUE_MAX 1024u
#define ENVIRONMENT_MAX (256u << 10) /* bytes of an environment that are read */
/* The number of the command line, which follows those of the variables. */
#define ENVIRONMENT_COMMAND_LINE SAMPLING_ENV_MAX
#define ENVIRONMENT_VALUES (SAMPLING_ENV_MAX + 1)
/* Limit of all values in the form of environment_put. */
#define ENVIRONMENT_BYTES (ENVIRONMENT_VALUES * (ENVIRONMENT_VALUE_MAX + 8))

/* Which parts are wanted. names is borrowed. */
struct environment_wanted {
	const char *const *names; /* names of variables, NUL-terminated */
	unsigned count;		  /* at most SAMPLING_ENV_MAX */
	bool command_line;
};

/* A parser of an environment that comes in pieces. Zero-initialise, then set the first four
 * fields. */
struct environment_parser {
	const char *const *names;
	unsigned count;
	/* Called for the first variable of each name. value is borrowed, and not empty. */
	void (*take)(void *ctx, unsigned which, struct str value);
	void *ctx;
	unsigned found; /* bit mask of the names that were found */
	size_t len;	/* length of the current entry; bytes that do not fit are counted and
			 * dropped */
	char entry[SAMPLING_ENV_NAME_MAX + 1 + ENVIRONMENT_VALUE_MAX + 4];
};
/* Takes the next piece. An entry without its NUL, at the end of the last piece, is dropped. */
void environment_feed(struct environment_parser *e, struct span piece);

/* Returns the arguments, separated by NULs; borrowed from bytes. Empty: there are none. */
struct str environment_command_line(const char *bytes, size_t len);

/* Writes a value with its number after the first `used` bytes of into, which has ENVIRONMENT_BYTES.
 * Returns how many bytes are used then. */
size_t environment_put(uint8_t *into, size_t used, unsigned which, struct str value);
/* Takes the next value from the front of untrusted bytes. Returns false if there is none, or if the
 * bytes are invalid. */
bool environment_next(struct span *values, unsigned *ret_which, struct str *ret_value);

#endif
