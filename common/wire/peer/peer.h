/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer: the tool at the other end of a route. It has a bus, one stream in each direction over the
 * bus, and a descriptor lane. The first descriptor on the lane is the page for the dialer's last
 * word (lastword.h). Both ends begin with a hello, which peer_recv does not return. A one-way route
 * has no lane; its hello is part of the stream, and is returned.
 *
 * A message that is malformed, or that may not travel this way (messages.def), is refused here. The
 * listener then drops the peer (peer_drop), ignores its further messages, and takes the next peer.
 * A dialer that loses its peer must exit.
 */
#ifndef COMMON_WIRE_PEER_PEER_H
#define COMMON_WIRE_PEER_PEER_H

#include <sys/types.h>
#include "common/wire/bus/busroute.h"
#include "common/wire/peer/lastword.h"
#include "common/wire/stream.h"

struct peer;

struct peer_config {
	enum busroute_id route;
	const char *run_dir;
	uid_t uid;	      /* the peer's */
	const char *producer; /* our name in the hello; static storage */
	size_t batch_max;     /* of batches that we send, in bytes */
	/* After this many batches peer_recv returns PEER_EMPTY, so that a peer that floods its
	 * route does not block other work. 0: no limit. */
	unsigned batches_at_once;
	/* How long a send waits for room. Then it calls `patience` with the number of waits so far.
	 * If that returns 0, it waits again; otherwise it fails with that result. 0: a send never
	 * waits. */
	int send_wait_ms;
	int (*patience)(void *ctx, unsigned waits);
	void *ctx;
};

/* run_dir and uid as of bus_listen; no peer is there yet. Starts threads. -errno; the caller owns
 * *ret. */
int peer_listen(const struct peer_config *c, struct peer **ret);
/* Waits up to timeout_ms for the listener. The hello is sent together with the first message.
 * -ETIMEDOUT, -errno. */
int peer_dial(const struct peer_config *c, int timeout_ms, struct peer **ret);
/* Takes NULL. */
void peer_free(struct peer *p);

/* For poll; borrowed. The lane's is -1 if the route has none. */
int peer_bus_fd(const struct peer *p);
int peer_lane_fd(const struct peer *p);
/* Whether the peer is connected, as last reported by peer_recv. */
bool peer_connected(const struct peer *p);
/* For a listener: the pid of the peer on its lane; 0: none. */
uint32_t peer_pid(const struct peer *p);

/* --- receiving --- */

enum peer_event {
	PEER_EMPTY = 1,	 /* nothing waits, or batches_at_once were taken */
	PEER_CAME = 2,	 /* only for a listener: another peer, to which nothing was sent yet */
	PEER_WENT = 3,	 /* all messages that it sent before were returned */
	PEER_UNRULY = 4, /* it broke the rules: no message is returned until it is dropped */
	PEER_SCHEMA = 5, /* the same: it is from another build */
};
/* Never blocks. Returns 0 with the next message, which borrows the peer's memory until the next
 * call; enum peer_event; or -errno. After -ENOMEM the next call continues where this one
 * stopped. */
int peer_recv(struct peer *p, struct msg *ret);
/* The number of messages lost since the last call (stream_missing). */
uint64_t peer_missing(struct peer *p);
/* Whether an epoch began since the last call of peer_epoch_taken, at the last message or earlier.
 * The very first epoch does not count. */
bool peer_epoch_began(const struct peer *p);
void peer_epoch_taken(struct peer *p);

/* --- sending --- */

/* As stream_put and stream_flush. peer_flush returns -EAGAIN if there is no room, and -ENOTCONN. */
int peer_put(struct peer *p, const struct msg *m);
int peer_flush(struct peer *p);
/* Whether a message was put and not sent yet. */
bool peer_has_unsent(const struct peer *p);

/* --- a listener --- */

/* Serves the lane. Returns 0, or -errno: if descriptors run out, only the lane's peer waits. */
int peer_poll_lane(struct peer *p);
/* Call it before peer_put. Sends this peer the page and the hello, if it does not have them.
 * Returns 0, -ENOTCONN without a peer, or -errno. */
int peer_greet(struct peer *p);
/* Whether this peer has its page, so that it can report its end. */
bool peer_has_page(const struct peer *p);
/* Sends a file (borrowed) over the lane, as fdlane_send. */
int peer_send_file(struct peer *p, uint64_t id, int fd);
/* Drops a peer that broke the rules. PEER_WENT follows, and no message of it. */
void peer_drop(struct peer *p);
/* Whether this peer was dropped and PEER_WENT has not been returned yet, or was returned last. */
bool peer_dropped(const struct peer *p);
/* The last word of this peer, or of the one that just left; nothing before the first peer. */
struct lastword peer_lastword(const struct peer *p);
/* As lastword_grant and lastword_wanted. */
void peer_grant(struct peer *p, uint64_t bytes);
uint64_t peer_wanted(const struct peer *p);
/* As lastword_stop and lastword_rest. A new peer pauses as the last one did. */
void peer_stop(struct peer *p, uint64_t id, uint64_t after_ns);
void peer_rest(struct peer *p, uint64_t ms);

/* --- a dialer --- */

/* Receives the next file of the lane, which the caller owns; *ret_fd is -1 if there was no room for
 * it. The page for our last word is not returned, but taken into use. Returns 0, -EAGAIN, -ENOTCONN
 * or -errno. */
int peer_recv_file(struct peer *p, uint64_t *ret_id, int *ret_fd);

#endif
