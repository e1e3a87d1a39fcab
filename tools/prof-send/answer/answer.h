/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer to a request: what became of it, by what the transfer ended with. Source: the OTLP
 * specification, "Failures" of OTLP/gRPC and OTLP/HTTP; RFC 9110, section 10.2.3. Pure.
 */
#ifndef PROF_SEND_ANSWER_ANSWER_H
#define PROF_SEND_ANSWER_ANSWER_H

#include <stdbool.h>
#include <stdint.h>
#include "common/base/span.h"

#define ANSWER_WHY_MAX 256

enum answer_verdict {
	ANSWER_DELIVERED, /* also in part: see `rejected` */
	ANSWER_AGAIN,	  /* the protocol says that it may be sent again */
	ANSWER_REFUSED,	  /* never again */
	ANSWER_TOO_LARGE, /* refused for its size */
	ANSWER_VERDICTS
};

/* A reply as it came. Texts and body are untrusted, and borrowed; an absent one is empty. */
struct answer_reply {
	bool grpc;
	unsigned http; /* the status; 0: no reply came, and `failure` says why */
	const char *failure;
	bool endless; /* the body was cut off at the limit of what we read */
	struct str content_type, retry_after, grpc_status, grpc_message, grpc_details;
	struct span body; /* its first bytes */
	bool whole;	  /* `body` is all of it */
	int64_t now_s;	  /* the time of day, for a Retry-After that is a date */
};

struct answer {
	enum answer_verdict verdict;
	bool partial;	   /* delivered, but the server rejected some profiles or warned */
	uint64_t rejected; /* profiles, if partial */
	bool has_delay;
	uint64_t delay_ms;	  /* what the server asks to wait, if has_delay */
	char why[ANSWER_WHY_MAX]; /* "" if all went well; a stranger's bytes may be in it */
};

void answer_of(const struct answer_reply *reply, struct answer *ret);

#endif
