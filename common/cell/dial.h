/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a tool of a deployment reaches its peers. Services start in any order, so a tool waits for a
 * peer that is not there yet. It says so after a second, unless a launcher watches the start.
 */
#ifndef COMMON_CELL_DIAL_H
#define COMMON_CELL_DIAL_H

#include "common/cell/deploy.h"
#include "common/wire/bus.h"
#include "common/wire/peer.h"

struct dial {
	const struct deploy *deploy;
	enum deploy_tool to; /* its user is the peer's */
	int timeout_ms;
};

/* As peer_dial and bus_dial, logged. c->run_dir and c->uid are filled in. */
int dial_peer(const struct dial *d, struct peer_config c, struct peer **ret);
int dial_bus(const struct dial *d, enum bus_route_id route, struct bus **ret);

#endif
