/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer: the tool at the other end of a route. It has a bus, a stream each way over the bus, and a
 * descriptor lane. The page for the dialer's last word (lastword.h) comes first on the lane. Both
 * ends greet each other with a hello, which peer_recv does not hand out. A one-way route has no
 * lane; the hello there is part of its stream, and is handed out.
 *
 * A message that is malformed, or does not travel this way (messages.def), is refused here. The
 * listener then drops the peer (peer_drop), ignores its further messages, and takes the next one. A
 * dialer that loses its peer must exit.
 */
#ifndef COMMON_WIRE_PEER_H
#define COMMON_WIRE_PEER_H

#include <sys/types.h>
#include "common/wire/busroute.h"
#include "common/wire/lastword.h"
#include "common/wire/stream.h"

struct peer;

struct peer_config {
	enum bus_route_id route;
	const char *run_dir;
	uid_t uid;	      /* the peer's */
	const char *producer; /* our name in the hello; static storage */
	size_t batch_max;     /* of what we send, in bytes */
	/* At most this many batches are taken before peer_recv says PEER_EMPTY, so that a peer that
	 * floods its route keeps nobody else waiting. 0: any number. */
	unsigned batches_at_once;
	/* A send waits this long for room, and then calls `patience` with the number of waits so
	 * far. If that returns 0, it waits again; otherwise it fails with that result. 0: a send
	 * never waits. */
	int send_wait_ms;
	int (*patience)(void *ctx, unsigned waits);
	void *ctx;
};

/* run_dir and uid as of bus_listen; no peer is there yet. Starts threads. -errno; the caller owns
 * *ret. */
int peer_listen(const struct peer_config *c, struct peer **ret);
/* Waits up to timeout_ms for the listener. The hello goes with what is sent first. -ETIMEDOUT,
 * -errno. */
int peer_dial(const struct peer_config *c, int timeout_ms, struct peer **ret);
/* Takes NULL. */
void peer_free(struct peer *p);

/* For poll; borrowed. The lane's is -1 where the route has none. */
int peer_bus_fd(const struct peer *p);
int peer_lane_fd(const struct peer *p);
/* Whether it is there, as far as peer_recv has told. */
bool peer_connected(const struct peer *p);

/* --- receiving --- */

enum peer_event {
	PEER_EMPTY = 1,	 /* nothing waits, or batches_at_once were taken */
	PEER_CAME = 2,	 /* a listener's: another peer, to which nothing was sent yet */
	PEER_WENT = 3,	 /* all that it sent before was handed out */
	PEER_UNRULY = 4, /* it broke the rules: no message follows until it is dropped */
	PEER_SCHEMA = 5, /* the same: it is of another build */
};
/* Never blocks. 0 with the next message, which borrows the peer's memory until the next call; enum
 * peer_event; -errno. After -ENOMEM the next call goes on where this one stopped. */
int peer_recv(struct peer *p, struct msg *ret);
/* Messages that were lost since the last call (stream_missing). */
uint64_t peer_missing(struct peer *p);
/* Whether an epoch began with the last message or before it, since the last call of
 * peer_epoch_taken; the first epoch of all does not count. */
bool peer_epoch_began(const struct peer *p);
void peer_epoch_taken(struct peer *p);

/* --- sending --- */

/* As stream_put and stream_flush. peer_flush: -EAGAIN where there is no room, -ENOTCONN. */
int peer_put(struct peer *p, const struct msg *m);
int peer_flush(struct peer *p);
/* Whether something was put and has not left. */
bool peer_has_unsent(const struct peer *p);

/* --- a listener --- */

/* Serves the lane. 0, -errno: for lack of descriptors the lane's peer waits, but nothing else. */
int peer_poll_lane(struct peer *p);
/* To be called before peer_put: sends the page and puts the hello, if this peer does not have them.
 * 0, -ENOTCONN without a peer, -errno. */
int peer_greet(struct peer *p);
/* Whether this peer has its page, so that it can say what it dies of. */
bool peer_has_page(const struct peer *p);
/* Sends a file (borrowed) over the lane, as fdlane_send. */
int peer_send_file(struct peer *p, uint64_t id, int fd);
/* Drops a peer that broke the rules. PEER_WENT follows, and nothing else of it. */
void peer_drop(struct peer *p);
/* Whether this peer was dropped and PEER_WENT is still to come, or has just come. */
bool peer_dropped(const struct peer *p);
/* The work of this peer, or of the one that just went; nothing before the first one. */
struct lastword peer_lastword(const struct peer *p);
/* As of lastword_grant and lastword_wanted. */
void peer_grant(struct peer *p, uint64_t bytes);
uint64_t peer_wanted(const struct peer *p);
/* As of lastword_stop and lastword_rest. A peer that comes rests as the last one did. */
void peer_stop(struct peer *p, uint64_t id, uint64_t after_ns);
void peer_rest(struct peer *p, uint64_t ms);

/* --- a dialer --- */

/* The next file of the lane, which the caller owns; *ret_fd is -1 if it did not fit. The page for
 * our last word is not handed out, but begun. 0, -EAGAIN, -ENOTCONN, -errno. */
int peer_recv_file(struct peer *p, uint64_t *ret_id, int *ret_fd);

#endif
