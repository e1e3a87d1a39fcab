/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bus: one pair of tools, joined by nng's byte streams over a socket, a message a call; what is
 * said there is nng's pair protocol, version 0, so that who speaks that can be a peer. busroute.h
 * has the routes. The listener stays when its peer goes, and takes the next one; a dialer that loses
 * its peer is to exit.
 *
 * The peer's uid is checked before a byte of it is read. One peer at a time: another one is turned
 * away at once. One that has not said in five seconds what it speaks goes; so does one that sends
 * an empty message or one that is too large, before there is memory for it. Nothing more is read of
 * one while as many of its messages wait as may.
 */
#ifndef PROFPIPE_BUS_H
#define PROFPIPE_BUS_H

#include <stdbool.h>
#include <sys/types.h>
#include "common/base/buf.h"
#include "common/base/span.h"
#include "common/wire/busroute.h"

struct bus;

/* Both open the route's socket below run_dir (`<run_dir>/<listening tool>/<route>.sock`, mode 0660)
 * and accept only a peer with uid `peer`. bus_dial waits up to timeout_ms for the listener to be
 * there and to take us (-ETIMEDOUT); its first event is BUS_PEER_CAME, too. -errno; the caller owns
 * *ret. Both start threads: after the sandbox is entered. The socket's folder exists already and is
 * the listener's. */
int bus_listen(enum bus_route_id route, const char *run_dir, uid_t peer, struct bus **ret);
int bus_dial(enum bus_route_id route, const char *run_dir, uid_t peer, int timeout_ms,
	     struct bus **ret);
/* Closes all of it, and drops messages that were accepted and have not left: a sender that must not
 * lose its last ones first awaits BUS_PEER_WENT, since a receiver closes its end after the last
 * message (END). Waits for no peer. Takes NULL. */
void bus_free(struct bus *b);

/* Readable (level) while a message waits or the peer came or went since the last bus_recv.
 * Borrowed. */
int bus_fd(const struct bus *b);

enum bus_event {
	BUS_EMPTY = 1,	   /* nothing waits */
	BUS_PEER_CAME = 2, /* a peer was accepted: a new epoch */
	BUS_PEER_WENT = 3, /* its pipe closed; all it sent before was handed out first */
};
/* Never blocks. 0 with a message appended to *into (reset first), enum bus_event, or -errno: the
 * message of -ENOMEM is handed out by a later call. Call it until BUS_EMPTY. */
int bus_recv(struct bus *b, struct buf *into);
/* Never blocks. To the peer whose coming bus_recv has handed out (a dialer has but one). A message
 * is copied and never empty (-EINVAL), nor larger than the route allows
 * (-EMSGSIZE). 0, -EAGAIN when the route's queue is full, -ENOTCONN without a peer, -errno. */
int bus_send(struct bus *b, struct span message);
/* Waits up to timeout_ms for room. For tools that may wait; prof-bpf does not call it. 0,
 * -ETIMEDOUT, -ENOTCONN, -errno. */
int bus_send_wait(struct bus *b, struct span message, int timeout_ms);
/* Whether bus_send would find it there. */
bool bus_connected(const struct bus *b);
/* Closes the pipe of the peer whose messages bus_recv hands out: it broke the rules. BUS_PEER_WENT
 * is what follows of it, no message more; a listener takes the next one. */
void bus_drop_peer(struct bus *b);

#endif
