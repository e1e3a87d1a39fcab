/* SPDX-License-Identifier: Apache-2.0 */
/* Where a format is written: a descriptor behind a buffer, gzipped or not. The first error stays,
 * later writes do nothing, and output_done tells it. */
#ifndef PROFPIPE_OUTPUT_H
#define PROFPIPE_OUTPUT_H

#include <stdbool.h>
#include <zlib.h>
#include "common/base/buf.h"
#include "common/base/span.h"

#define OUTPUT_CHUNK (64u << 10)

struct output {
	int fd;	   /* borrowed */
	int error; /* 0 or -errno: the first */
	bool gzip;
	bool held;	/* a write was interrupted, and waits on: nobody reads what comes */
	uint64_t bytes; /* that reached the descriptor */
	/* Called when a write was interrupted, by a timer of who set it; what it returns but 0 is
	 * the output's error. NULL: nobody wants to know. */
	int (*beat)(void *ctx);
	void *beat_ctx;
	size_t len;
	z_stream z;
	uint8_t plain[OUTPUT_CHUNK], packed[OUTPUT_CHUNK];
};

/* 0, -ENOMEM. output_free frees what this took, also after an error. */
int output_init(struct output *o, int fd, bool gzip);
void output_free(struct output *o);
/* There will be an output: what the file held before goes. */
void output_begin(struct output *o);
void output_put(struct output *o, const void *data, size_t n);
static inline void output_str(struct output *o, const char *s)
{
	output_put(o, s, strlen(s));
}
void output_printf(struct output *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Whether what ended with r is to be tried again: where that was for want of memory (-ENOMEM),
 * after a moment, which this lets pass. False: that was so for half a minute (*rests begins at 0),
 * the output failed, or r is something else. */
bool output_rest(struct output *o, int r, unsigned *rests);
/* All that was put is to be put again from the beginning. False: some of it is gone where nothing
 * can be taken back. */
bool output_rewind(struct output *o);
/* Writes the rest and gives the first error: 0, -errno. Nothing can be put after it. */
int output_done(struct output *o);
/* Logs an error of writing to `name`, and what mends it. */
void output_say(const char *name, int error);

#endif
