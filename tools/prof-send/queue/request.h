/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request on its way: an ExportProfilesServiceRequest, which prof-send never parses. It is kept
 * compressed. Several queues share one request; the last one frees it.
 */
#ifndef PROF_SEND_QUEUE_REQUEST_H
#define PROF_SEND_QUEUE_REQUEST_H

#include <stddef.h>
#include <stdint.h>
#include "common/base/span.h"
#include "tools/prof-send/answer/grpc.h"

/* The largest request, uncompressed: OTLP's own limit for clients. */
#define REQUEST_MAX (64u << 20)

/* Facts about a request, besides its bytes. */
struct request_facts {
	uint64_t id;	  /* the sender's number; 0: none */
	uint64_t samples; /* in it; 0: not known */
	uint64_t size;	  /* bytes, uncompressed */
};

struct request {
	unsigned users;
	struct request_facts facts;
	size_t len;	 /* bytes, compressed */
	uint8_t frame[]; /* room for gRPC's head, and then the compressed bytes */
};

/* Copies bytes that are compressed by gzip. NULL: no memory. The caller is its user. */
struct request *request_new(const struct request_facts *facts, struct span compressed);
/* Compresses the request. NULL: no memory. */
struct request *request_compress(const struct request_facts *facts, struct span plain);
/* Another user. Returns r. */
struct request *request_use(struct request *r);
/* Takes NULL. */
void request_drop(struct request *r);
struct span request_bytes(const struct request *r);
/* The uncompressed bytes, with gRPC's head of an uncompressed message before them; the caller frees
 * *ret. 0, -ENOMEM; -EBADMSG: these are not facts.size bytes, compressed by gzip. */
int request_expand(const struct request *r, uint8_t **ret);

#endif
