/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The confinement of prof-send. It is the only tool with the network of the host, so it has little
 * else: it reads the files that name resolution takes, and keeps files in the folder of its spool.
 * It connects to the ports of its endpoints and of their proxies, and to DNS.
 *
 * Two steps, as for the other tools: confine_enter before the first socket, which starts threads,
 * and confine_seal behind it, before the first byte of a peer or receiver is read.
 */
#ifndef PROF_SEND_CONFINE_H
#define PROF_SEND_CONFINE_H

#include <stdbool.h>
#include "tools/prof-send/options.h"

struct confine {
	int landlock; /* version; 0: none */
	bool calls;
	int spool; /* the folder, borrowed; -1: none */
	uint16_t ports[2 * OPTIONS_ENDPOINTS + 8];
	size_t port_count;
};

/* spool: the folder, or -1. 0, -errno, logged. */
int confine_enter(struct confine *c, const struct options *o, int spool);
int confine_seal(struct confine *c);

#endif
