/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sender: serves all endpoints concurrently. Each has a queue of its own, so a slow or dead
 * endpoint delays no other one.
 */
#ifndef PROF_SEND_TRANSFER_SENDER_H
#define PROF_SEND_TRANSFER_SENDER_H

#include "tools/prof-send/transfer/transfer.h"

struct sender {
	CURLM *multi;
	struct transfer *transfers; /* borrowed */
	size_t n;
};

/* Call it once, before the sandbox is closed. The transfers must be open, and must not be moved.
 * Returns 0, -ENOMEM, or -errno of a timer. */
int sender_init(struct sender *s, struct transfer *transfers, size_t n);
/* Gives up running attempts and closes all connections; the transfers stay open. */
void sender_done(struct sender *s);
/* Adds the request to every queue. */
void sender_put(struct sender *s, struct request *r);
/* Starts the requests that can be sent, continues running ones, and handles those that ended. */
void sender_work(struct sender *s);
/* Waits until there is work to do, one of the n fds is ready, or timeout_ms have passed. */
void sender_wait(struct sender *s, struct curl_waitfd *fds, unsigned n, int timeout_ms);
bool sender_is_empty(const struct sender *s);
bool sender_is_half_full(const struct sender *s);

#endif
