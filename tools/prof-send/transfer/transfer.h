/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transfers to one endpoint, one request at a time: the endpoint's queue, curl's handle, the
 * answers, and the waits between attempts.
 */
#ifndef PROF_SEND_TRANSFER_TRANSFER_H
#define PROF_SEND_TRANSFER_TRANSFER_H

#include <curl/curl.h>
#include "common/base/bytes/buf.h"
#include "tools/prof-send/answer/answer.h"
#include "tools/prof-send/endpoint/endpoint.h"
#include "tools/prof-send/queue/queue.h"
#include "tools/prof-send/transfer/credentials.h"

/* The texts of a reply from which the answer is derived. */
enum transfer_text {
	TRANSFER_CONTENT_TYPE,
	TRANSFER_RETRY_AFTER,
	TRANSFER_GRPC_STATUS,
	TRANSFER_GRPC_MESSAGE,
	TRANSFER_GRPC_DETAILS,
	TRANSFER_TEXTS
};

/* The caller sets the first part before transfer_open. */
struct transfer {
	struct endpoint endpoint;
	bool compress;	     /* send requests compressed by gzip */
	unsigned timeout_ms; /* of one attempt */
	struct credentials credentials;
	struct queue queue;

	CURL *easy; /* of one attempt; the multi handle owns the connection */
	struct curl_slist *headers;
	char error[CURL_ERROR_SIZE];
	struct request *request; /* the request that is being sent; NULL: none */
	uint8_t *expanded;	 /* its uncompressed bytes; NULL: it is sent compressed */
	struct buf text[TRANSFER_TEXTS];
	struct buf body; /* the beginning of the reply's body */
	/* Bytes received; reply_len includes headers and interim replies. */
	uint64_t body_len, reply_len;
	bool endless;	   /* the reply exceeded our limit */
	unsigned sent;	   /* how often libcurl has begun to send the request in this attempt */
	uint64_t next_ns;  /* CLOCK_MONOTONIC: earliest time of the next attempt */
	unsigned failures; /* consecutive */
	/* Consecutive attempts without memory for the oldest request. */
	unsigned lacks;
	bool said_failing;	      /* the user was told that it fails */
	char failing[ANSWER_WHY_MAX]; /* why the last attempt failed; empty: it did not */
	uint64_t said_ns;	      /* when the user was last told of a lost request */
	bool said_credentials;	      /* the user was told that a file cannot be used, */
	bool said_unusable;	      /* and there are no earlier contents of it */
	bool said_spool;	      /* the user was told that the spool does not take requests */
};

/* Loads everything that libraries read from files. Call it once, before the sandbox is closed.
 * Returns 0 or -ENOMEM. */
int transfer_setup(void);
void transfer_open(struct transfer *t);
void transfer_close(struct transfer *t);
/* Begins to send the oldest request, if one waits and its time has come. If it returns true, add
 * t->easy to the multi handle. */
bool transfer_begin(struct transfer *t, uint64_t now_ns);
/* An attempt has ended with `result`, and t->easy was removed from the multi handle. */
void transfer_end(struct transfer *t, CURLcode result);
/* prof-send ends: gives up the running attempt. t->easy was removed from the multi handle. */
void transfer_abandon(struct transfer *t);

#endif
