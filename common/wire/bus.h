/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bus joins one pair of tools over a socket, with nng's byte streams, one message per call. The
 * bytes are nng's pair protocol, version 0, so a program that speaks that can be a peer. busroute.h
 * has the routes. If its peer goes, a listener stays and takes the next one, and a dialer must
 * exit.
 *
 * The bus checks a peer's uid before it reads a byte of it. It takes one peer at a time, and turns
 * others away at once. It drops a peer that does not name its protocol within five seconds. It also
 * drops one that sends an empty message, or one that is too large, before it allocates for it.
 * While as many messages wait as the route allows, the bus reads no more.
 */
#ifndef COMMON_WIRE_BUS_H
#define COMMON_WIRE_BUS_H

#include <stdbool.h>
#include <sys/types.h>
#include "common/base/buf.h"
#include "common/base/span.h"
#include "common/wire/busroute.h"

struct bus;

/* Both open the route's socket below run_dir (`<run_dir>/<listening tool>/<route>.sock`, mode 0660)
 * and accept only a peer with uid `peer`. The socket's folder exists and is the listener's.
 * bus_dial waits up to timeout_ms until a listener accepts it (-ETIMEDOUT); its first event is also
 * BUS_PEER_CAME. -errno; the caller owns *ret. Both start threads: enter the sandbox before. */
int bus_listen(enum bus_route_id route, const char *run_dir, uid_t peer, struct bus **ret);
int bus_dial(enum bus_route_id route, const char *run_dir, uid_t peer, int timeout_ms,
	     struct bus **ret);
/* Closes the bus and drops accepted messages that have not left. A sender that must not lose its
 * last ones waits for BUS_PEER_WENT first: a receiver closes its end after the last message (END).
 * Does not wait for a peer. Takes NULL. */
void bus_free(struct bus *b);

/* Readable (level) while a message waits or the peer came or went since the last bus_recv.
 * Borrowed. */
int bus_fd(const struct bus *b);

/* Never blocks. 0 with a message appended to *into (reset first), enum bus_event, or -errno. After
 * -ENOMEM a later call hands out the message. Call it until BUS_EMPTY. */
int bus_recv(struct bus *b, struct buf *into);
/* Never blocks. Copies a message for the peer whose coming bus_recv has handed out (a dialer has
 * only one). 0; -EINVAL: it is empty; -EMSGSIZE: it is larger than the route allows; -EAGAIN: the
 * route's queue is full; -ENOTCONN: there is no peer; -errno. */
int bus_send(struct bus *b, struct span message);
/* Waits up to timeout_ms for room. For tools that may wait, so not for prof-bpf. 0,
 * -ETIMEDOUT, -ENOTCONN, -errno. */
int bus_send_wait(struct bus *b, struct span message, int timeout_ms);
/* Whether bus_send would find a peer. */
bool bus_connected(const struct bus *b);
/* Drops the peer whose messages bus_recv hands out: it broke the rules. Its next event is
 * BUS_PEER_WENT, without any message before. A listener takes the next peer. */
void bus_drop_peer(struct bus *b);

#endif
