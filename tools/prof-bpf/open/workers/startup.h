/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The environment and the command line of a process, from /proc/PID/environ and cmdline. They are
 * untrusted bytes, found in its memory. Pure. Only variables that were asked for leave the worker
 * that reads them (worker.h).
 *
 * Source: proc(5).
 */
#ifndef PROF_BPF_OPEN_WORKERS_STARTUP_H
#define PROF_BPF_OPEN_WORKERS_STARTUP_H

#include <stdbool.h>
#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"
#include "common/cell/targets/sampling.h"

#define STARTUP_VALUE_MAX 1024u /* bytes; longer values are cut, between characters of UTF-8 */
#define STARTUP_ENVIRON_MAX (256u << 10)      /* bytes of an environment that are read */
#define STARTUP_COMMAND_LINE SAMPLING_ENV_MAX /* its number, behind those of the variables */
#define STARTUP_VALUES (SAMPLING_ENV_MAX + 1)
#define STARTUP_BYTES (STARTUP_VALUES * (STARTUP_VALUE_MAX + 8)) /* of all values as startup_put */

/* The parts of it that are wanted. names: borrowed. */
struct startup_wanted {
	const char *const *names; /* of variables, NUL-terminated */
	unsigned count;		  /* at most SAMPLING_ENV_MAX */
	bool command_line;
};

/* An environment that comes in pieces. Zero-initialise, then set the first four. */
struct startup_environ {
	const char *const *names;
	unsigned count;
	/* Called with the first variable of each name. value: borrowed, not empty. */
	void (*take)(void *ctx, unsigned which, struct str value);
	void *ctx;
	unsigned found; /* a bit for each name */
	size_t len;	/* of the present entry; more than fits is counted and dropped */
	char entry[SAMPLING_ENV_NAME_MAX + 1 + STARTUP_VALUE_MAX + 4];
};
/* An entry without its NUL, at the end of the last piece, is dropped. */
void startup_feed(struct startup_environ *e, struct span piece);

/* The arguments, with a NUL between two of them. Borrows bytes. Empty: there are none. */
struct str startup_command_line(const char *bytes, size_t len);

/* Writes a value with its number behind `used` bytes of into, which has STARTUP_BYTES. Returns how
 * many are used then. */
size_t startup_put(uint8_t *into, size_t used, unsigned which, struct str value);
/* Takes the next of these off the front of untrusted bytes. False: none is left, or they lie. */
bool startup_next(struct span *values, unsigned *ret_which, struct str *ret_value);

#endif
