/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request: an ExportProfilesServiceRequest on its way, which prof-send never parses. It is kept
 * compressed. Several queues share a request; the last user frees it.
 */
#ifndef PROF_SEND_QUEUE_REQUEST_H
#define PROF_SEND_QUEUE_REQUEST_H

#include <stddef.h>
#include <stdint.h>
#include "common/base/bytes/span.h"
#include "tools/prof-send/answer/grpc.h"

/* The largest request, uncompressed: OTLP's own limit for clients. */
#define REQUEST_MAX (64u << 20)

/* Facts about a request, besides its bytes. */
struct request_facts {
	uint64_t id;	  /* the sender's number; 0: none */
	uint64_t samples; /* number of samples in it; 0: unknown */
	uint64_t size;	  /* bytes, uncompressed */
};

struct request {
	unsigned users;
	struct request_facts facts;
	size_t len;	 /* bytes, compressed */
	uint8_t frame[]; /* room for gRPC's 5 bytes, followed by the compressed bytes */
};

/* Copies bytes that are compressed by gzip. NULL: no memory. The caller becomes a user. */
struct request *request_new(const struct request_facts *facts, struct span compressed);
/* Compresses the request. NULL: no memory. */
struct request *request_compress(const struct request_facts *facts, struct span plain);
/* Adds a user. Returns r. */
struct request *request_use(struct request *r);
/* Removes a user. r may be NULL. */
void request_drop(struct request *r);
struct span request_bytes(const struct request *r);
/* Uncompresses the bytes and puts gRPC's 5 bytes for an uncompressed message before them. The
 * caller frees *ret. Returns 0, -ENOMEM, or -EBADMSG if the request is not gzip of facts.size
 * bytes. */
int request_expand(const struct request *r, uint8_t **ret);

#endif
