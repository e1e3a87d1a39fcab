/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request: a window as an ExportProfilesServiceRequest, which has the same bytes as ProfilesData.
 * Each resource has a profile for each source of its samples, that of the stream's header first.
 * All profiles have the same times, so that no timestamp lies outside of them.
 *
 * Source: opentelemetry/proto/collector/profiles/v1development/profiles_service.proto.
 */
#ifndef PROF_EXPORT_OTLP_REQUEST_H
#define PROF_EXPORT_OTLP_REQUEST_H

#include "common/base/buf.h"
#include "tools/prof-export/otlp/window.h"

#define REQUEST_PLAIN_MAX ((4u << 20) - 1) /* many receivers take no more */
#define REQUEST_PACKED_MAX (1u << 20)	   /* of the message that hands it on */

/* A finished one. The bytes are borrowed until the next. */
struct request {
	struct span plain;
	struct span gzip; /* empty unless it was asked for */
	uint64_t samples; /* of the stream */
};

struct request_times {
	uint64_t begin_ns, end_ns; /* CLOCK_MONOTONIC; end_ns is outside */
	uint64_t wall_offset_ns;   /* modulo 2^64: from there to CLOCK_REALTIME */
};

/* Room for the bytes; zero-initialise. request_room_done frees. */
struct request_room {
	struct buf plain, gzip, profiles;
};
void request_room_done(struct request_room *r);

/* Packs the window. pool: pays for sorting it. 0, -ENOBUFS at the pool's ceiling, -ENOMEM. */
int request_pack(const struct window *w, const struct request_times *t, struct pool *pool,
		 struct request_room *room, struct request *ret);

enum request_verdict {
	REQUEST_TOO_LARGE = 1, /* gzip makes it no smaller than REQUEST_PACKED_MAX */
};
/* Fills in ret->gzip. 0, REQUEST_TOO_LARGE, -ENOMEM. */
int request_gzip(struct request_room *room, struct request *ret);

#endif
