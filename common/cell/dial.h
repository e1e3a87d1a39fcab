/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dialing: how a tool of a deployment connects to its peers. Services start in any order, so a tool
 * waits for a missing peer. It logs that after a second, unless a launcher supervises the start.
 */
#ifndef COMMON_CELL_DIAL_H
#define COMMON_CELL_DIAL_H

#include "common/cell/deploy.h"
#include "common/wire/bus/bus.h"
#include "common/wire/peer/peer.h"

struct dial {
	const struct deploy *deploy;
	enum deploy_tool to; /* its user is the peer's */
	int timeout_ms;
};

/* As peer_dial and bus_dial, but with errors logged. Sets c->run_dir and c->uid. */
int dial_peer(const struct dial *d, struct peer_config c, struct peer **ret);
int dial_bus(const struct dial *d, enum busroute_id route, struct bus **ret);

#endif
