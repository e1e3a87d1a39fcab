/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment and the command line of a process, from /proc/PID/environ and cmdline. They are
 * untrusted bytes from its memory. Pure. Only requested variables leave the worker that reads them
 * (worker.h).
 *
 * Source: proc(5).
 */
#ifndef PROF_BPF_OPEN_WORKERS_STARTUP_H
#define PROF_BPF_OPEN_WORKERS_STARTUP_H

#include <stdbool.h>
#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"
#include "common/cell/targets/sampling.h"

#define STARTUP_VALUE_MAX 1024u /* bytes; longer values are truncated between characters of UTF-8 */
#define STARTUP_ENVIRON_MAX (256u << 10)      /* bytes of an environment that are read */
#define STARTUP_COMMAND_LINE SAMPLING_ENV_MAX /* its number, which follows those of the variables */
#define STARTUP_VALUES (SAMPLING_ENV_MAX + 1)
/* Limit of all values in the form of startup_put. */
#define STARTUP_BYTES (STARTUP_VALUES * (STARTUP_VALUE_MAX + 8))

/* Which parts are wanted. names is borrowed. */
struct startup_wanted {
	const char *const *names; /* names of variables, NUL-terminated */
	unsigned count;		  /* at most SAMPLING_ENV_MAX */
	bool command_line;
};

/* A parser of an environment that comes in pieces. Zero-initialise, then set the first four
 * fields. */
struct startup_environ {
	const char *const *names;
	unsigned count;
	/* Called for the first variable of each name. value is borrowed, and not empty. */
	void (*take)(void *ctx, unsigned which, struct str value);
	void *ctx;
	unsigned found; /* bit mask of the names that were found */
	size_t len;	/* length of the current entry; bytes that do not fit are counted and
			 * dropped */
	char entry[SAMPLING_ENV_NAME_MAX + 1 + STARTUP_VALUE_MAX + 4];
};
/* Takes the next piece. An entry without its NUL, at the end of the last piece, is dropped. */
void startup_feed(struct startup_environ *e, struct span piece);

/* Returns the arguments, separated by NULs; borrowed from bytes. Empty: there are none. */
struct str startup_command_line(const char *bytes, size_t len);

/* Writes a value with its number after the first `used` bytes of into, which has STARTUP_BYTES.
 * Returns how many bytes are used then. */
size_t startup_put(uint8_t *into, size_t used, unsigned which, struct str value);
/* Takes the next value from the front of untrusted bytes. Returns false if there is none, or if the
 * bytes are invalid. */
bool startup_next(struct span *values, unsigned *ret_which, struct str *ret_value);

#endif
