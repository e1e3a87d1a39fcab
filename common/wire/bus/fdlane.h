/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptor lane: an AF_UNIX SEQPACKET socket next to a bus route. The listener (prof-bpf)
 * sends open files (SCM_RIGHTS), each with the id of the request that it belongs to. The dialer
 * receives and acknowledges them; at most FDLANE_IN_FLIGHT may be unacknowledged. A descriptor may
 * arrive before or after its bus message.
 */
#ifndef COMMON_WIRE_BUS_FDLANE_H
#define COMMON_WIRE_BUS_FDLANE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "common/wire/bus/bus.h"

#define FDLANE_IN_FLIGHT 32

struct fdlane;

/* The lane of a route: `<run_dir>/<listening tool>/<route>.fds`, mode 0660; the peer's uid is
 * checked (SO_PEERCRED). */
int fdlane_listen(enum busroute_id route, const char *run_dir, uid_t peer, struct fdlane **ret);
int fdlane_dial(enum busroute_id route, const char *run_dir, uid_t peer, int timeout_ms,
		struct fdlane **ret);
void fdlane_free(struct fdlane *l);
/* Readable when fdlane_poll (listener) or fdlane_recv (dialer) has work. Borrowed. */
int fdlane_fd(const struct fdlane *l);
/* Listener: accepts a waiting peer, but refuses a second one. Takes acknowledgements, and forgets
 * descriptors in flight to a peer that left. Returns 0 or -errno. After -errno, such as too few
 * descriptors, the peer waits and the descriptor stays readable. Never blocks. */
int fdlane_poll(struct fdlane *l);
/* Listener: the peer's pid; 0: none. */
uint32_t fdlane_pid(const struct fdlane *l);
/* Listener: closes the connection to the peer, which may hang, so that the next one is accepted. */
void fdlane_drop(struct fdlane *l);
/* Listener: sends fd under this id. fd is borrowed: the kernel keeps its own reference. Returns 0;
 * -EAGAIN: too many are in flight, or the socket is full; -ENOTCONN; -errno. */
int fdlane_send(struct fdlane *l, uint64_t id, int fd);
/* Dialer: receives and acknowledges one descriptor, which is O_CLOEXEC and owned by the caller.
 * Returns 0; -EAGAIN: none waits; -ENOTCONN: the peer closed; -EBADMSG: a packet came without its
 * descriptor (MSG_CTRUNC) and was acknowledged: *ret_id is set, *ret_fd is -1; -EPROTO: the peer
 * does not speak this protocol, so the lane cannot be used. */
int fdlane_recv(struct fdlane *l, uint64_t *ret_id, int *ret_fd);

#endif
