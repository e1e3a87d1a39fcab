/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests in a file or pipe, as OpenTelemetry's file exporter writes them: each behind its length,
 * four bytes, big-endian. A request beyond the limit is skipped, and the next one is found. Pure.
 */
#ifndef PROF_SEND_INTAKE_FRAMES_H
#define PROF_SEND_INTAKE_FRAMES_H

#include "common/base/buf.h"
#include "common/base/span.h"

#define FRAMES_HEAD 4

enum frames_verdict {
	FRAMES_MORE = 1,  /* all bytes were taken: feed more */
	FRAMES_LARGE = 2, /* a request beyond the limit begins, and will be skipped */
};
/* Zero-initialise with the limit; frames_done frees. */
struct frames {
	size_t max; /* bytes of a request */
	uint8_t head[FRAMES_HEAD];
	size_t have;   /* bytes of the head */
	uint32_t left; /* bytes of the request still to come */
	bool skips;
	struct buf body;
};

/* Takes bytes off *in. 0 with the next request, which is borrowed until the next call; enum
 * frames_verdict; -ENOMEM, and the stream is useless. */
int frames_next(struct frames *f, struct span *in, struct span *ret);
/* Whether the last request is whole. */
bool frames_at_end(const struct frames *f);
void frames_done(struct frames *f);

#endif
