/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages over AF_UNIX sockets that carry descriptors. Source: unix(7), SCM_RIGHTS; cmsg(3).
 */
#ifndef PROFPIPE_SCM_H
#define PROFPIPE_SCM_H

#include <stddef.h>
#include <sys/types.h>

#define SCM_FDS 2 /* that go with a message, at most */

/* Sends one message with `count` descriptors (borrowed; 0: none). flags: of sendmsg(2), besides
 * MSG_NOSIGNAL. How many bytes went, or -errno; never -EINTR. */
ssize_t scm_send(int socket, const void *data, size_t size, const int *fds, size_t count,
		 int flags);
/* Receives one message and what descriptors came with it, O_CLOEXEC, the caller's: ret_fds has
 * `max` places, -1 where none came; more are closed. flags: of recvmsg(2). How many bytes came (0:
 * the peer closed), or -errno and no descriptor; never -EINTR. */
ssize_t scm_receive(int socket, void *data, size_t size, int *ret_fds, size_t max, int flags);

#endif
