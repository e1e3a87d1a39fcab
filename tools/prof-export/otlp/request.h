/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request: a window as an ExportProfilesServiceRequest, which has the same encoding as
 * ProfilesData. Each resource has one profile for each source of its samples; the source of the
 * stream's header comes first. All profiles have the same start and end time, so that all
 * timestamps lie between them.
 *
 * Source: opentelemetry/proto/collector/profiles/v1development/profiles_service.proto.
 */
#ifndef PROF_EXPORT_OTLP_REQUEST_H
#define PROF_EXPORT_OTLP_REQUEST_H

#include "common/base/bytes/buf.h"
#include "tools/prof-export/otlp/window.h"

#define REQUEST_PLAIN_MAX ((4u << 20) - 1) /* many receivers refuse larger requests */
#define REQUEST_PACKED_MAX (1u << 20)	   /* limit of the message to prof-send */

/* A finished request. Its bytes are valid until the next one is made. */
struct request {
	struct span plain;
	struct span gzip; /* empty unless request_gzip was called */
	uint64_t samples; /* number of samples of the stream in it */
};

struct request_times {
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC; end_ns is exclusive */
	uint64_t wall_offset_ns;   /* add this to get CLOCK_REALTIME, modulo 2^64 */
};

/* Buffers for the bytes; zero-initialise. request_room_done frees them. */
struct request_room {
	struct buf plain, gzip, profiles;
};
void request_room_done(struct request_room *r);

/* Packs the window. pool: is charged for the memory of sorting. Returns 0, -ENOBUFS at the pool's
 * ceiling, or -ENOMEM. */
int request_pack(const struct window *w, const struct request_times *t, struct pool *pool,
		 struct request_room *room, struct request *ret);

enum request_verdict {
	REQUEST_TOO_LARGE = 1, /* larger than REQUEST_PACKED_MAX even when compressed */
};
/* Fills in ret->gzip. 0, REQUEST_TOO_LARGE, -ENOMEM. */
int request_gzip(struct request_room *room, struct request *ret);

#endif
