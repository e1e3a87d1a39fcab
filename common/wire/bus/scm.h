/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages with descriptors over AF_UNIX sockets. Source: unix(7), SCM_RIGHTS; cmsg(3).
 */
#ifndef COMMON_WIRE_BUS_SCM_H
#define COMMON_WIRE_BUS_SCM_H

#include <stddef.h>
#include <sys/types.h>

#define SCM_FDS 3 /* limit for one message */

/* Sends one message with `count` descriptors (borrowed; 0: none). flags: as for sendmsg(2); adds
 * MSG_NOSIGNAL. Returns the number of bytes sent, or -errno; never -EINTR. */
ssize_t scm_send(int socket, const void *data, size_t size, const int *fds, size_t count,
		 int flags);
/* Receives one message and its descriptors, which become O_CLOEXEC and owned by the caller. ret_fds
 * has `max` elements, set to -1 where none came; further descriptors are closed. flags: as for
 * recvmsg(2). Returns the number of bytes received (0: the peer closed), or -errno and no
 * descriptor; never -EINTR. */
ssize_t scm_receive(int socket, void *data, size_t size, int *ret_fds, size_t max, int flags);

#endif
