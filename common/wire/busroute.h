/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The routes of the bus: each joins two tools. The table in busroute.c lists all routes: who
 * listens, the largest message, how many may wait, and which messages travel each way.
 */
#ifndef COMMON_WIRE_BUSROUTE_H
#define COMMON_WIRE_BUSROUTE_H

#include <stddef.h>
#include "common/wire/msg.h"

enum bus_route_id {
	BUS_ROWS,   /* prof-bpf listens, prof-deltas dials: requests for rows, rows */
	BUS_STREAM, /* prof-bpf listens, prof-symd dials: the raw stream, one way */
	BUS_FILES,  /* prof-bpf listens, prof-symd dials: requests for files, answers */
	BUS_NAMED,  /* prof-export listens, prof-symd dials: the named stream, one way */
	BUS_EXPORT, /* prof-export listens, prof-send dials: finished requests, one way */
	BUS_ROUTES
};

/* One direction. */
struct bus_way {
	enum msg_way way;
	unsigned depth; /* how many messages of the bus may wait */
};

struct bus_route {
	const char *listener; /* whose folder the socket is in */
	const char *name;
	size_t max; /* bytes of a message of the bus */
	struct bus_way from_listener, from_dialer;
};

#define BUS_DEPTH 64 /* the largest `depth` */

/* Static storage. */
const struct bus_route *bus_route(enum bus_route_id id);
/* `<run_dir>/<listening tool>/<route>.<ending>` into ret. 0, -ENAMETOOLONG. */
int bus_route_path(enum bus_route_id id, const char *run_dir, const char *ending, char *ret,
		   size_t size);

/* Events of bus_recv besides a message. */
enum bus_event {
	BUS_EMPTY = 1,	   /* nothing waits */
	BUS_PEER_CAME = 2, /* a peer was accepted: a new epoch */
	/* Its pipe closed; bus_recv has returned everything that it sent before. */
	BUS_PEER_WENT = 3,
};

#endif
