/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sender: all endpoints side by side. Each has a queue of its own, so one that is slow or gone
 * delays no other.
 */
#ifndef PROF_SEND_TRANSFER_SENDER_H
#define PROF_SEND_TRANSFER_SENDER_H

#include "tools/prof-send/transfer/transfer.h"

struct sender {
	CURLM *multi;
	struct transfer *transfers; /* borrowed */
	size_t n;
};

/* Once, before the cell is sealed. The transfers are open and stay where they are. 0, -ENOMEM,
 * -errno of a timer. */
int sender_init(struct sender *s, struct transfer *transfers, size_t n);
/* Gives up attempts under way, and closes all connections; the transfers stay open. */
void sender_done(struct sender *s);
/* Puts the request into every queue. */
void sender_put(struct sender *s, struct request *r);
/* Begins what can be sent, carries on, and takes what ended. */
void sender_work(struct sender *s);
/* Waits until there is something to work on, one of the fds (n of them) is ready, or timeout_ms
 * have passed. */
void sender_wait(struct sender *s, struct curl_waitfd *fds, unsigned n, int timeout_ms);
bool sender_is_empty(const struct sender *s);
bool sender_is_half_full(const struct sender *s);

#endif
