/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to a request: the outcome of the request, judged by how the transfer ended. Source:
 * the OTLP specification, "Failures" of OTLP/gRPC and OTLP/HTTP; RFC 9110, section 10.2.3. Pure.
 */
#ifndef PROF_SEND_ANSWER_ANSWER_H
#define PROF_SEND_ANSWER_ANSWER_H

#include <stdbool.h>
#include <stdint.h>
#include "common/base/bytes/span.h"
#include "common/base/bytes/str.h"

#define ANSWER_WHY_MAX 256

enum answer_verdict {
	ANSWER_DELIVERED, /* possibly only in part: see `rejected` */
	ANSWER_AGAIN,	  /* the protocol permits another attempt */
	ANSWER_REFUSED,	  /* the receiver refuses it for good */
	ANSWER_TOO_LARGE, /* refused for its size */
	ANSWER_VERDICTS
};

/* A reply as received. Texts and body are untrusted and borrowed; an absent text is empty. */
struct answer_reply {
	bool grpc;
	unsigned http; /* the HTTP status; 0: no reply came, for the reason in `failure` */
	const char *failure;
	bool endless; /* the body was cut off at our limit */
	bool secret;  /* the request had headers of the user: a refusal of them may repeat them */
	struct str content_type, retry_after, grpc_status, grpc_message, grpc_details;
	struct span body; /* the beginning of the body */
	bool whole;	  /* `body` is the complete body */
	int64_t now_s;	  /* the time of day, to evaluate a date in Retry-After */
};

struct answer {
	enum answer_verdict verdict;
	bool partial;	   /* delivered, but the server rejected some profiles or warned */
	uint64_t rejected; /* profiles, if partial */
	bool has_delay;
	uint64_t delay_ms;	  /* how long the server asks to wait, if has_delay */
	char why[ANSWER_WHY_MAX]; /* "" if all went well; may contain untrusted bytes */
};

void answer_of(const struct answer_reply *reply, struct answer *ret);

#endif
