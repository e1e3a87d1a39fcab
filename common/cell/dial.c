/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cell/dial.h"

#include <errno.h>
#include <string.h>
#include "common/base/command/log.h"

#define SILENT_MS 1000 /* a peer that is being started needs less time than this */

/* Either `bus` or `peer` is given, the other one is NULL. */
static int try(const struct dial *d, enum busroute_id route, struct bus **bus,
	       const struct peer_config *c, struct peer **peer, int ms)
{
	return bus ? bus_dial(route, d->deploy->run_dir, d->deploy->uid[d->to], ms, bus)
		   : peer_dial(c, ms, peer);
}

static int dial(const struct dial *d, enum busroute_id route, struct bus **bus,
		const struct peer_config *c, struct peer **peer)
{
	const bool watched = d->deploy->life_fd >= 0 || d->timeout_ms <= SILENT_MS;
	int r = try(d, route, bus, c, peer, watched ? d->timeout_ms : SILENT_MS);

	if (r == -ETIMEDOUT && !watched) {
		log_warning("%s: %s is not there yet; waiting for it", d->deploy->run_dir,
			    deploy_tool_name(d->to));
		r = try(d, route, bus, c, peer, d->timeout_ms - SILENT_MS);
	}
	if (r)
		log_error("%s: cannot reach %s there: %s; start it", d->deploy->run_dir,
			  deploy_tool_name(d->to), strerror(-r));
	return r;
}

int dial_peer(const struct dial *d, struct peer_config c, struct peer **ret)
{
	c.run_dir = d->deploy->run_dir;
	c.uid = d->deploy->uid[d->to];
	return dial(d, c.route, NULL, &c, ret);
}

int dial_bus(const struct dial *d, enum busroute_id route, struct bus **ret)
{
	return dial(d, route, ret, NULL, NULL);
}
