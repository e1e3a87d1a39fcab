/* SPDX-License-Identifier: Apache-2.0 */
/* The bus and the lane of rowsrv.c, for whoever plays the extractor: what it says and writes as its
 * last word is set here, and nothing moves but by the calls of rowsrv_run. */
#ifndef PROFPIPE_TEST_ROWS_PIPE_H
#define PROFPIPE_TEST_ROWS_PIPE_H

#include <errno.h>
#include <stdlib.h>
#include "common/bus.h"
#include "common/fdlane.h"
#include "common/lastword.h"

#define FAR_FD 1000000 /* that nobody has open */

static struct {
	bool connected, came, went, dropped;
	struct buf batch; /* that is to be received */
	bool has_batch;
	struct lastword last;
	unsigned sent; /* files */
} pipe_;

static void must(bool what)
{
	if (!what)
		abort();
}

int __wrap_bus_listen(enum bus_route_id route, const char *run_dir, uid_t peer, struct bus **ret);
int __wrap_bus_listen(enum bus_route_id route, const char *run_dir, uid_t peer, struct bus **ret)
{
	*ret = NULL;
	return 0;
}

void __wrap_bus_free(struct bus *b);
void __wrap_bus_free(struct bus *b)
{
}

bool __wrap_bus_connected(const struct bus *b);
bool __wrap_bus_connected(const struct bus *b)
{
	return pipe_.connected;
}

int __wrap_bus_send(struct bus *b, struct span batch);
int __wrap_bus_send(struct bus *b, struct span batch)
{
	return pipe_.connected ? 0 : -ENOTCONN;
}

int __wrap_bus_recv(struct bus *b, struct buf *into);
int __wrap_bus_recv(struct bus *b, struct buf *into)
{
	if (pipe_.went) {
		pipe_.went = pipe_.connected = false;
		return BUS_PEER_WENT;
	}
	if (pipe_.came) {
		pipe_.came = false;
		pipe_.connected = true;
		return BUS_PEER_CAME;
	}
	if (!pipe_.has_batch || !pipe_.connected)
		return BUS_EMPTY;
	pipe_.has_batch = false;
	buf_reset(into);
	must(buf_append(into, pipe_.batch.data, pipe_.batch.len) == 0);
	return 0;
}

void __wrap_bus_drop_peer(struct bus *b);
void __wrap_bus_drop_peer(struct bus *b)
{
	must(pipe_.connected && !pipe_.dropped);
	pipe_.dropped = true;
}

int __wrap_fdlane_listen(enum bus_route_id route, const char *run_dir, uid_t peer,
			 struct fdlane **ret);
int __wrap_fdlane_listen(enum bus_route_id route, const char *run_dir, uid_t peer,
			 struct fdlane **ret)
{
	*ret = NULL;
	return 0;
}

void __wrap_fdlane_free(struct fdlane *l);
void __wrap_fdlane_free(struct fdlane *l)
{
}

int __wrap_fdlane_poll(struct fdlane *l);
int __wrap_fdlane_poll(struct fdlane *l)
{
	return 0;
}

int __wrap_fdlane_send(struct fdlane *l, uint64_t id, int fd);
int __wrap_fdlane_send(struct fdlane *l, uint64_t id, int fd)
{
	pipe_.sent += id != LASTWORD_LANE_ID;
	return 0;
}

int __wrap_lastword_new(void);
int __wrap_lastword_new(void)
{
	return FAR_FD;
}

struct lastword __wrap_lastword_read(int fd);
struct lastword __wrap_lastword_read(int fd)
{
	return pipe_.last;
}

#endif
