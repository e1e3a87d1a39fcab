/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of the named stream's current epoch: each (name, system name, source, start line)
 * has one id. Strings are stored and compared, so hash collisions do no harm. */
#ifndef PROF_SYMD_STREAM_FUNCTIONS_H
#define PROF_SYMD_STREAM_FUNCTIONS_H

#include "common/base/bytes/buf.h"
#include "common/base/bytes/str.h"

#define FUNCTIONS_SOURCES 1024 /* a power of two */

struct function {
	struct str name, system_name, source;
	uint64_t start_line;
};

struct functions {
	struct buf text; /* all strings, without separators */
	struct function_source {
		uint32_t at, len;
	} sources[FUNCTIONS_SOURCES]; /* recent sources in `text`, one per hash */
	struct function_entry *entries;
	uint32_t *slots; /* entry + 1; 0: empty */
	size_t len, cap, slot_count, max;
	uint64_t seed[2];
};

/* max: limit of functions; max_text: limit of bytes of their strings. Returns 0 or -errno of
 * getrandom. */
int functions_init(struct functions *t, size_t max, size_t max_text);
void functions_done(struct functions *t);
void functions_clear(struct functions *t);
/* Memory that it takes. */
size_t functions_bytes(const struct functions *t);
/* Gives the id of a function, from 1 on, and adds the function if it is new. payer: a bit.
 * *ret_new: f is new, or new for this payer. Returns 0, -ENOBUFS at a limit, or -ENOMEM. */
int functions_intern(struct functions *t, const struct function *f, uint32_t payer,
		     uint64_t *ret_id, bool *ret_new);

#endif
