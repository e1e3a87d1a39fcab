/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptor lane: an AF_UNIX SEQPACKET socket beside a bus route, which carries open files
 * (SCM_RIGHTS), each with the id of the request it answers or accompanies. Bus message and
 * descriptor may arrive in either order. At most FDLANE_IN_FLIGHT are under way; each is
 * acknowledged by the receiver. One direction: the listener (prof-bpf) sends descriptors, the
 * dialer receives and acknowledges.
 */
#ifndef PROFPIPE_FDLANE_H
#define PROFPIPE_FDLANE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/wire/bus.h"

#define FDLANE_IN_FLIGHT 32

struct fdlane;

/* The lane of a route: `<run_dir>/<listening tool>/<route>.fds`, mode 0660; the peer's uid is
 * checked (SO_PEERCRED). */
int fdlane_listen(enum bus_route_id route, const char *run_dir, uid_t peer, struct fdlane **ret);
int fdlane_dial(enum bus_route_id route, const char *run_dir, uid_t peer, int timeout_ms,
		struct fdlane **ret);
void fdlane_free(struct fdlane *l);
/* Readable when fdlane_poll (listener) or fdlane_recv (dialer) has something to do. Borrowed. */
int fdlane_fd(const struct fdlane *l);
/* Listener: accepts a waiting peer (replacing one that went; a second one is turned away), takes
 * acknowledgements. What was in flight to a peer that went is forgotten. 0 or -errno, for want of
 * descriptors say: the peer waits, and the descriptor stays readable. Never blocks. */
int fdlane_poll(struct fdlane *l);
/* Listener: sends fd (borrowed: the kernel keeps its own reference) under id. 0; -EAGAIN when too
 * many are in flight or the socket is full; -ENOTCONN; -errno. */
int fdlane_send(struct fdlane *l, uint64_t id, int fd);
/* Dialer: takes one descriptor, O_CLOEXEC, owned by the caller, and acknowledges it. 0; -EAGAIN
 * when none waits; -ENOTCONN when the peer closed; -EBADMSG when a packet came without its
 * descriptor (MSG_CTRUNC), acknowledged all the same: *ret_id is set, *ret_fd is -1; -EPROTO when
 * the peer does not speak this protocol: of no further use. */
int fdlane_recv(struct fdlane *l, uint64_t *ret_id, int *ret_fd);

#endif
