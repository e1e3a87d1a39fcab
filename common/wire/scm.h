/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages with descriptors over AF_UNIX sockets. Source: unix(7), SCM_RIGHTS; cmsg(3).
 */
#ifndef COMMON_WIRE_SCM_H
#define COMMON_WIRE_SCM_H

#include <stddef.h>
#include <sys/types.h>

#define SCM_FDS 3 /* at most, with a message */

/* Sends one message with `count` descriptors (borrowed; 0: none). flags: of sendmsg(2); adds
 * MSG_NOSIGNAL. Returns the bytes sent, or -errno; never -EINTR. */
ssize_t scm_send(int socket, const void *data, size_t size, const int *fds, size_t count,
		 int flags);
/* Receives one message and its descriptors, which become O_CLOEXEC and the caller's. ret_fds has
 * `max` places, -1 where none came; closes further ones. flags: of recvmsg(2). Returns the bytes
 * received (0: the peer closed), or -errno and no descriptor; never -EINTR. */
ssize_t scm_receive(int socket, void *data, size_t size, int *ret_fds, size_t max, int flags);

#endif
