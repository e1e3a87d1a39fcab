/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The routes of the bus: each joins two tools. The table in busroute.c lists all routes: who
 * listens, the largest message, how many may wait, and which messages travel each way.
 */
#ifndef COMMON_WIRE_BUS_BUSROUTE_H
#define COMMON_WIRE_BUS_BUSROUTE_H

#include <stddef.h>
#include "common/wire/msg.h"

enum busroute_id {
	BUSROUTE_ROWS,	 /* prof-bpf listens, prof-deltas dials: requests for rows, rows */
	BUSROUTE_STREAM, /* prof-bpf listens, prof-symd dials: the raw stream, one way */
	BUSROUTE_FILES,	 /* prof-bpf listens, prof-symd dials: requests for files, answers */
	BUSROUTE_NAMED,	 /* prof-export listens, prof-symd dials: the named stream, one way */
	BUSROUTE_EXPORT, /* prof-export listens, prof-send dials: finished requests, one way */
	BUSROUTES
};

/* One direction. */
struct busroute_way {
	enum msg_way way;
	unsigned depth; /* how many messages of the bus may wait */
};

struct busroute {
	const char *listener; /* the socket is in the folder of this tool */
	const char *name;
	size_t max; /* bytes of a message of the bus */
	struct busroute_way from_listener, from_dialer;
};

#define BUSROUTE_DEPTH 64 /* the largest `depth` */

/* Static storage. */
const struct busroute *busroute_of(enum busroute_id id);
/* `<run_dir>/<listening tool>/<route>.<ending>` into ret. 0, -ENAMETOOLONG. */
int busroute_path(enum busroute_id id, const char *run_dir, const char *ending, char *ret,
		  size_t size);

#endif
