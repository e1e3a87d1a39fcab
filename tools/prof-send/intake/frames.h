/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames: requests in a file or pipe, as OpenTelemetry's file exporter writes them: a length in
 * four bytes, big-endian, then the request. A request beyond the limit is skipped; the next one is
 * read. Pure.
 */
#ifndef PROF_SEND_INTAKE_FRAMES_H
#define PROF_SEND_INTAKE_FRAMES_H

#include "common/base/bytes/buf.h"
#include "common/base/bytes/span.h"

#define FRAMES_HEAD 4

enum frames_verdict {
	FRAMES_MORE = 1,  /* all bytes were taken: call again with more */
	FRAMES_LARGE = 2, /* the next request exceeds the limit and will be skipped */
};
/* Zero-initialise, and set the limit; frames_done frees it. */
struct frames {
	size_t max; /* bytes of a request */
	uint8_t head[FRAMES_HEAD];
	size_t have;   /* bytes of the length that were taken */
	uint32_t left; /* bytes of the request still to come */
	bool skips;
	struct buf body;
};

/* Takes bytes from *in. Returns 0 with the next request, which is borrowed until the next call;
 * enum frames_verdict; or -ENOMEM, after which the stream cannot be used. */
int frames_next(struct frames *f, struct span *in, struct span *ret);
/* Whether the last request is complete. */
bool frames_at_end(const struct frames *f);
void frames_done(struct frames *f);

#endif
