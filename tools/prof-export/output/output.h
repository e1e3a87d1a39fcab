/* SPDX-License-Identifier: Apache-2.0 */
/* An output: a descriptor behind a buffer, gzipped or not. It keeps the first error, ignores later
 * writes, and output_done returns the error. */
#ifndef PROF_EXPORT_OUTPUT_OUTPUT_H
#define PROF_EXPORT_OUTPUT_OUTPUT_H

#include <stdbool.h>
#include <zlib.h>
#include "common/base/buf.h"
#include "common/base/span.h"

#define OUTPUT_CHUNK (64u << 10)

struct output {
	int fd;	   /* borrowed */
	int error; /* 0 or -errno: the first */
	bool gzip;
	bool held;	/* a write was interrupted and still waits, since nobody reads the output */
	uint64_t bytes; /* that reached the descriptor */
	/* Called when the caller's timer interrupts a write. A result other than 0 becomes the
	 * output's error. May be NULL. */
	int (*beat)(void *ctx);
	void *beat_ctx;
	size_t len;
	z_stream z;
	uint8_t plain[OUTPUT_CHUNK], packed[OUTPUT_CHUNK];
};

/* 0, -ENOMEM. output_free frees what this took, also after an error. */
int output_init(struct output *o, int fd, bool gzip);
void output_free(struct output *o);
/* The stream has begun: discards what the file held before. */
void output_begin(struct output *o);
void output_put(struct output *o, const void *data, size_t n);
static inline void output_str(struct output *o, const char *s)
{
	output_put(o, s, strlen(s));
}
void output_printf(struct output *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Whether to repeat what returned r. After -ENOMEM this waits a moment and says true, for half a
 * minute at most (*rests begins at 0). False for other results, or if the output failed. */
bool output_rest(struct output *o, int r, unsigned *rests);
/* Discards all output, to write it again from the beginning. False: some of it is already in a
 * pipe, say, which takes nothing back. */
bool output_rewind(struct output *o);
/* After output_done: begins another output, into this descriptor. */
void output_next(struct output *o, int fd);
/* Writes what waits, but not for gzip. The first error. */
int output_flush(struct output *o);
/* A predecessor wrote this many bytes of the file, which stay; what it wrote behind them goes. */
void output_resume(struct output *o, uint64_t bytes);
/* Writes the rest and gives the first error: 0, -errno. Nothing can be put after it. */
int output_done(struct output *o);
/* Logs an error of writing to `name`, with a remedy. */
void output_say(const char *name, int error);

#endif
