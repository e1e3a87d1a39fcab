/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The transfers to one endpoint, one request at a time: its queue, curl's connection, the answers,
 * and the waits between attempts.
 */
#ifndef PROF_SEND_TRANSFER_TRANSFER_H
#define PROF_SEND_TRANSFER_TRANSFER_H

#include <curl/curl.h>
#include "common/base/buf.h"
#include "tools/prof-send/answer/answer.h"
#include "tools/prof-send/endpoint/endpoint.h"
#include "tools/prof-send/queue/queue.h"
#include "tools/prof-send/transfer/credentials.h"

/* The texts of a reply that an answer is made of. */
enum transfer_text {
	TRANSFER_CONTENT_TYPE,
	TRANSFER_RETRY_AFTER,
	TRANSFER_GRPC_STATUS,
	TRANSFER_GRPC_MESSAGE,
	TRANSFER_GRPC_DETAILS,
	TRANSFER_TEXTS
};

/* The caller fills the first part before transfer_open. */
struct transfer {
	struct endpoint endpoint;
	bool compress;	     /* send requests compressed by gzip */
	unsigned timeout_ms; /* of an attempt */
	struct credentials credentials;
	struct queue queue;

	CURL *easy; /* of an attempt; the connection stays in the multi handle */
	struct curl_slist *headers;
	char error[CURL_ERROR_SIZE];
	struct request *request; /* being sent; NULL: none */
	uint8_t *expanded;	 /* the same, uncompressed; NULL: it is sent compressed */
	struct buf text[TRANSFER_TEXTS];
	struct buf body;	      /* the first bytes */
	uint64_t body_len, reply_len; /* bytes that came; with headers and interim replies */
	bool endless;		      /* more than anybody needs */
	uint64_t next_ns;	      /* CLOCK_MONOTONIC: not before */
	unsigned failures;	      /* in a row */
	unsigned lacks;		      /* of memory, in a row, for the oldest request */
	bool said_failing;	      /* the user knows that it fails */
	char failing[ANSWER_WHY_MAX]; /* why the last attempt failed; empty: it did not */
	uint64_t said_ns;	      /* when the user was last told of a loss */
	bool said_credentials;	      /* the user knows that a file cannot be read */
	bool said_spool;	      /* the user knows that the spool does not take requests */
};

/* Once, before the cell is sealed: whatever libraries load from files. 0, -ENOMEM. */
int transfer_setup(void);
void transfer_open(struct transfer *t);
void transfer_close(struct transfer *t);
/* Begins to send the oldest request, if one waits and its time has come. True: t->easy is to be
 * added to the multi handle. */
bool transfer_begin(struct transfer *t, uint64_t now_ns);
/* An attempt ended with `result`; t->easy was removed from the multi handle. */
void transfer_end(struct transfer *t, CURLcode result);
/* prof-send ends: gives up the attempt that is under way. t->easy was removed. */
void transfer_abandon(struct transfer *t);

#endif
