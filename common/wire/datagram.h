/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A datagram socket from one tool to another. There is no connection, so either side may be
 * restarted. The kernel tells the receiver each sender's uid, and the receiver drops datagrams of
 * other users.
 */
#ifndef COMMON_WIRE_DATAGRAM_H
#define COMMON_WIRE_DATAGRAM_H

#include <stddef.h>
#include <sys/types.h>
#include <sys/un.h>

struct datagram {
	int fd; /* -1: none */
	uid_t peer;
	struct sockaddr_un to; /* the receiver's address, for a sender */
};
#define DATAGRAM_NONE ((struct datagram){ .fd = -1 })

/* Receives at `<run_dir>/<folder>/<name>` what this user sends. Returns 0, -ENAMETOOLONG or
 * -errno. */
int datagram_bind(const char *run_dir, const char *folder, const char *name, uid_t peer,
		  struct datagram *ret);
/* Sends to that path. The receiver may come later. Results of datagram_bind. */
int datagram_open(const char *run_dir, const char *folder, const char *name, struct datagram *ret);
void datagram_done(struct datagram *d);
/* Never waits. Returns 0; -EAGAIN: the receiver has not read earlier ones; -errno: there is no
 * receiver. */
int datagram_send(const struct datagram *d, const void *data, size_t size);
/* Never waits. Returns 0: a datagram of exactly this size came from the peer; -EAGAIN: none waits;
 * -errno. */
int datagram_recv(const struct datagram *d, void *ret, size_t size);

#endif
