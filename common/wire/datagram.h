/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A datagram socket from one tool to another. There is no connection, so either side may be
 * restarted. The receiver learns each sender's uid from the kernel, and drops datagrams of others.
 */
#ifndef COMMON_WIRE_DATAGRAM_H
#define COMMON_WIRE_DATAGRAM_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

struct datagram {
	int fd; /* -1: none */
	uid_t peer;
	struct sockaddr_un to; /* of a sender */
};
#define DATAGRAM_NONE ((struct datagram){ .fd = -1 })

/* Receives in `<run_dir>/<folder>/<name>` what this user sends. 0, -ENAMETOOLONG, -errno. */
int datagram_bind(const char *run_dir, const char *folder, const char *name, uid_t peer,
		  struct datagram *ret);
/* Sends there. The receiver may come later. The same results. */
int datagram_open(const char *run_dir, const char *folder, const char *name, struct datagram *ret);
void datagram_done(struct datagram *d);
/* Never waits. 0; -EAGAIN: the receiver has not read the last ones; -errno: nobody receives. */
int datagram_send(const struct datagram *d, const void *data, size_t size);
/* Never waits. 0: one of exactly this size came from the peer; -EAGAIN: none waits; -errno. */
int datagram_recv(const struct datagram *d, void *ret, size_t size);

#endif
