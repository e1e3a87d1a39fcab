/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bus connects a pair of tools over a socket, with nng's byte streams, one message per call.
 * The protocol is nng's pair, version 0, so any program that implements it can be a peer.
 * busroute.h has the routes. If its peer leaves, a listener stays and takes the next one, but a
 * dialer must exit.
 *
 * The bus checks a peer's uid before it reads from it. It accepts one peer at a time, and refuses
 * others at once. It drops a peer that sends no greeting within five seconds, or that sends an
 * empty message or one that is too large. It checks the size before it allocates. While as many
 * messages wait as the route allows, the bus does not read.
 */
#ifndef COMMON_WIRE_BUS_BUS_H
#define COMMON_WIRE_BUS_BUS_H

#include <stdbool.h>
#include <sys/types.h>
#include "common/base/bytes/buf.h"
#include "common/base/bytes/span.h"
#include "common/wire/bus/busroute.h"

struct bus;

/* Events of bus_recv besides a message. */
enum bus_event {
	BUS_EMPTY = 1,	   /* nothing waits */
	BUS_PEER_CAME = 2, /* a peer was accepted: a new epoch */
	/* Its pipe closed; bus_recv has returned everything that it sent before. */
	BUS_PEER_WENT = 3,
};

/* Both open the route's socket below run_dir (`<run_dir>/<listening tool>/<route>.sock`, mode 0660)
 * and accept only a peer with uid `peer`. The socket's folder must exist and belong to the
 * listener. bus_dial waits up to timeout_ms until a listener accepts it (-ETIMEDOUT); its first
 * event is also BUS_PEER_CAME. -errno; the caller owns *ret. Both start threads, so enter the
 * sandbox before. */
int bus_listen(enum busroute_id route, const char *run_dir, uid_t peer, struct bus **ret);
int bus_dial(enum busroute_id route, const char *run_dir, uid_t peer, int timeout_ms,
	     struct bus **ret);
/* Closes the bus and drops messages that were accepted but not sent yet. A sender that must not
 * lose its last messages first waits for BUS_PEER_WENT: a receiver closes its end after the last
 * message (END). Does not wait for a peer. b may be NULL. */
void bus_free(struct bus *b);

/* Readable (level-triggered) while a message waits, or if the peer came or went since the last
 * bus_recv. Borrowed. */
int bus_fd(const struct bus *b);

/* Never blocks. Returns 0 with a message in *into (which is reset first), enum bus_event, or
 * -errno. After -ENOMEM a later call returns the message. Call it until BUS_EMPTY. */
int bus_recv(struct bus *b, struct buf *into);
/* The next event of a route that carries nothing this way. A peer that sends a message all the same
 * is dropped. enum bus_event; call it until BUS_EMPTY. */
int bus_event(struct bus *b);
/* Never blocks. Copies a message for the peer that bus_recv reported last (a dialer has only one).
 * Returns 0; -EINVAL: it is empty; -EMSGSIZE: it is larger than the route allows; -EAGAIN: the
 * route's queue is full; -ENOTCONN: there is no peer; -errno. */
int bus_send(struct bus *b, struct span message);
/* Waits up to timeout_ms for room. For tools that may wait, so not for prof-bpf. Returns 0,
 * -ETIMEDOUT, -ENOTCONN or -errno. */
int bus_send_wait(struct bus *b, struct span message, int timeout_ms);
/* Whether bus_send would find a peer. */
bool bus_connected(const struct bus *b);
/* Drops the present peer, because it broke the rules. The next event is BUS_PEER_WENT, with no
 * message before it. A listener then takes the next peer. */
void bus_drop_peer(struct bus *b);

#endif
