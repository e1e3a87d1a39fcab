/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC's framing and status, on top of HTTP/2, which curl implements. Source: gRPC over HTTP2;
 * gRPC's status codes; google/rpc/error_details. Pure.
 */
#ifndef PROF_SEND_ANSWER_GRPC_H
#define PROF_SEND_ANSWER_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"

#define GRPC_HEAD 5 /* bytes before a message: whether it is compressed, and its length */
#define GRPC_MESSAGE_MAX 160

enum grpc_code {
	GRPC_OK = 0,
	GRPC_CANCELLED = 1,
	GRPC_UNKNOWN = 2,
	GRPC_DEADLINE_EXCEEDED = 4,
	GRPC_PERMISSION_DENIED = 7,
	GRPC_RESOURCE_EXHAUSTED = 8,
	GRPC_ABORTED = 10,
	GRPC_OUT_OF_RANGE = 11,
	GRPC_UNIMPLEMENTED = 12,
	GRPC_INTERNAL = 13,
	GRPC_UNAVAILABLE = 14,
	GRPC_DATA_LOSS = 15,
	GRPC_UNAUTHENTICATED = 16,
	GRPC_CODES
};

struct grpc_status {
	unsigned code; /* from the server; may be GRPC_CODES or more */
	bool has_delay;
	uint64_t delay_ms;		/* of RetryInfo, if has_delay */
	char message[GRPC_MESSAGE_MAX]; /* untrusted bytes, NUL-terminated */
};

/* Makes the 5 bytes that precede a message. */
void grpc_head(uint8_t ret[static GRPC_HEAD], bool compressed, uint32_t len);
/* Returns the message in a reply's body. Returns false if the body is not one complete,
 * uncompressed message. */
bool grpc_body(struct span body, struct span *ret);
/* Reads the status in the trailers `grpc-status`, `grpc-message` and `grpc-status-details-bin`; an
 * absent one is empty. Returns false if there is no valid status. */
bool grpc_status_of(struct str status, struct str message, struct str details,
		    struct grpc_status *ret);
/* The gRPC code for a reply that has only an HTTP status. */
unsigned grpc_code_of_http(unsigned http);
/* A name such as "UNAVAILABLE", or "an unknown code". Static storage. */
const char *grpc_code_name(unsigned code);

#endif
