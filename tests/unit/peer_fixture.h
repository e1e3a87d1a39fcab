/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for messages of a peer at the other end of a real route. */
#ifndef TESTS_UNIT_PEER_FIXTURE_H
#define TESTS_UNIT_PEER_FIXTURE_H

#include <poll.h>
#include "common/wire/peer/peer.h"

/* The next message or event within ten seconds; PEER_EMPTY: there was none. */
static inline int hear(struct peer *p, struct msg *ret)
{
	for (int i = 0; i < 1000; i++) {
		struct pollfd wait = { .fd = peer_bus_fd(p), .events = POLLIN };
		const int r = peer_recv(p, ret);

		if (r != PEER_EMPTY)
			return r;
		poll(&wait, 1, 10);
	}
	return PEER_EMPTY;
}

#endif
