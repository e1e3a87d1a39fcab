/* SPDX-License-Identifier: Apache-2.0 */
/* An output: a file descriptor behind a buffer, optionally with gzip. After the first error all
 * writes are ignored, and output_done returns that error. */
#ifndef PROF_EXPORT_OUTPUT_OUTPUT_H
#define PROF_EXPORT_OUTPUT_OUTPUT_H

#include <stdbool.h>
#include <zlib.h>
#include "common/base/bytes/buf.h"

#define OUTPUT_CHUNK (64u << 10)

struct output {
	int fd;	   /* borrowed */
	int error; /* 0, or the first error as -errno */
	bool gzip;
	bool held;	/* a write was interrupted and waits, because the reader is slow */
	off_t begin;	/* offset of the output in its file; -1: it cannot be discarded */
	uint64_t bytes; /* bytes that reached the descriptor */
	/* Called when the caller's timer interrupts a write. A result other than 0 becomes the
	 * output's error. May be NULL. */
	int (*beat)(void *ctx);
	void *beat_ctx;
	size_t len;
	z_stream z;
	uint8_t plain[OUTPUT_CHUNK], packed[OUTPUT_CHUNK];
};

/* Returns 0 or -ENOMEM. output_free frees the output, also after an error. */
int output_init(struct output *o, int fd, bool gzip);
void output_free(struct output *o);
/* The stream has begun: discards what is in the file from the current offset on. */
void output_begin(struct output *o);
void output_put(struct output *o, const void *data, size_t n);
static inline void output_str(struct output *o, const char *s)
{
	output_put(o, s, strlen(s));
}
void output_printf(struct output *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Whether to repeat the call that returned r. After -ENOMEM it waits a moment and returns true, for
 * half a minute in all (*rests must start at 0). Returns false for other results, or if the output
 * has failed. */
bool output_rest(struct output *o, int r, unsigned *rests);
/* Discards all output, to write it again from the beginning. Returns false if some of it cannot be
 * taken back, for example from a pipe. */
bool output_rewind(struct output *o);
/* After output_done: starts another output on this descriptor. */
void output_next(struct output *o, int fd);
/* Writes buffered bytes, except with gzip. Returns the first error. */
int output_flush(struct output *o);
/* An earlier prof-export wrote this many complete bytes of the file: keeps them, and discards what
 * follows them. */
void output_resume(struct output *o, uint64_t bytes);
/* Writes the rest. Returns the first error: 0 or -errno. Afterwards nothing may be written. */
int output_done(struct output *o);
/* Logs an error of writing to `name`, with a remedy. */
void output_say(const char *name, int error);

#endif
