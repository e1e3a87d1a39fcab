/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The confinement of prof-send. It is the only tool with access to the host's network, and has few
 * other rights. It reads the files that name resolution needs, and keeps files in the folder of its
 * spool. It connects to the ports of its endpoints, of their proxies, and of DNS.
 *
 * As in the other tools, there are two steps: confine_enter before the first socket, which starts
 * threads, and confine_seal after it, before the first byte of a peer or receiver is read.
 */
#ifndef PROF_SEND_CONFINE_H
#define PROF_SEND_CONFINE_H

#include <stdbool.h>
#include "tools/prof-send/options.h"

struct confine {
	int landlock; /* version of Landlock; 0: none */
	bool calls;
	int spool; /* folder of the spool, borrowed; -1: none */
	uint16_t ports[2 * OPTIONS_ENDPOINTS + 8];
	size_t port_count;
};

/* spool: its folder, or -1. Returns 0, or -errno, logged. */
int confine_enter(struct confine *c, const struct options *o, int spool);
int confine_seal(struct confine *c);

#endif
