/* SPDX-License-Identifier: Apache-2.0 */
/* Allowed actions that the other tools must tolerate. Each returns how often it succeeded. */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include "common/wire/peer/lastword.h"
#include "tests/redteam/attempts.h"

#define MESSAGES_MOST 10000
#define WORDS 1000

static long give(int socket, int fd)
{
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_len = CMSG_LEN(sizeof(int)),
				.cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS } };
	uint64_t id = 1;
	const struct iovec v = { &id, sizeof(id) };
	const struct msghdr h = { .msg_iov = (struct iovec *)&v,
				  .msg_iovlen = 1,
				  .msg_control = &control,
				  .msg_controllen = sizeof(control) };

	memcpy(CMSG_DATA(&control.head), &fd, sizeof(fd));
	return CALL(SYS_sendmsg, socket, &h, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Sends every descriptor over every socket: its own end, which makes a circle, its epoll, its log,
 * and files that other tools handed over. */
long send_descriptors(void)
{
	long n = 0;

	for (int socket = next_socket(0); socket >= 0; socket = next_socket(socket + 1))
		for (int fd = 0; fd < SOCKETS_END; fd++)
			n += give(socket, fd) > 0;
	return n;
}

long fill_queues(void)
{
	static uint8_t noise[1024];
	long n = 0, r;

	for (int socket = next_socket(0); socket >= 0; socket = next_socket(socket + 1)) {
		for (int i = 0; i < MESSAGES_MOST; i++) {
			CALL(SYS_getrandom, noise, sizeof(noise), 0);
			r = CALL(SYS_sendto, socket, noise, sizeof(noise),
				 MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
			if (r < 0)
				break;
			n++;
		}
	}
	return n;
}

/* Writes every possible blame into the page that prof-bpf reads after its death, and dies. */
long blame_others(void)
{
	uint64_t id = 0;

	for (int i = 0; i < WORDS; i++) {
		CALL(SYS_getrandom, &id, sizeof(id), 0);
		lastword_begin((enum lastword_kind)(id >> 32), id);
	}
	abort();
}
