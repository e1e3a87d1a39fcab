/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A peer of prof-bpf without sockets. The bus returns what a test puts into fake_peer, and drops
 * what is sent. For one C file of a program that is linked with FAKE_PEER of module.mk.
 */
#ifndef TESTS_FUZZ_FAKE_PEER_H
#define TESTS_FUZZ_FAKE_PEER_H

#include <errno.h>
#include <stdlib.h>
#include "common/wire/bus/bus.h"
#include "common/wire/bus/fdlane.h"
#include "common/wire/peer/lastword.h"
#include "common/wire/stream.h"
#include "tests/fuzz/build_once.h"
#include "tests/fuzz/must.h"

#define FAR_FD 1000000 /* a descriptor number that is not open, nor is any above */

static struct {
	bool connected, came, went, dropped;
	unsigned files;	  /* files received, without the descriptor of its last word */
	bool busy;	  /* it accepts nothing at present */
	struct buf batch; /* the batch that prof-bpf receives next */
	bool has_batch;
	struct lastword last;
	uint64_t rest_ms;			    /* its pause after each tick of work */
	void (*sent)(void *ctx, struct span batch); /* NULL: not needed */
	void *ctx;
} fake_peer;

/* Begins a new run: empties everything but keeps memory. */
static inline void fake_peer_reset(void)
{
	buf_reset(&fake_peer.batch);
	const struct buf batch = fake_peer.batch;

	memset(&fake_peer, 0, sizeof(fake_peer));
	fake_peer.batch = batch;
}

int __wrap_bus_listen(enum busroute_id route, const char *run_dir, uid_t peer, struct bus **ret);
int __wrap_bus_listen(enum busroute_id route, const char *run_dir, uid_t peer, struct bus **ret)
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
	return fake_peer.connected;
}

int __wrap_bus_send(struct bus *b, struct span batch);
int __wrap_bus_send(struct bus *b, struct span batch)
{
	if (!fake_peer.connected)
		return -ENOTCONN;
	if (fake_peer.busy)
		return -EAGAIN;
	if (fake_peer.sent)
		fake_peer.sent(fake_peer.ctx, batch);
	return 0;
}

int __wrap_bus_recv(struct bus *b, struct buf *into);
int __wrap_bus_recv(struct bus *b, struct buf *into)
{
	if (fake_peer.went) {
		fake_peer.went = fake_peer.connected = false;
		return BUS_PEER_WENT;
	}
	if (fake_peer.came) {
		fake_peer.came = false;
		fake_peer.connected = true;
		return BUS_PEER_CAME;
	}
	if (!fake_peer.has_batch || !fake_peer.connected)
		return BUS_EMPTY;
	fake_peer.has_batch = false;
	buf_reset(into);
	must(buf_append(into, fake_peer.batch.data, fake_peer.batch.len) == 0);
	return 0;
}

void __wrap_bus_drop_peer(struct bus *b);
void __wrap_bus_drop_peer(struct bus *b)
{
	must(fake_peer.connected && !fake_peer.dropped);
	fake_peer.dropped = true;
}

int __wrap_fdlane_listen(enum busroute_id route, const char *run_dir, uid_t peer,
			 struct fdlane **ret);
int __wrap_fdlane_listen(enum busroute_id route, const char *run_dir, uid_t peer,
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
	if (fake_peer.busy)
		return -EAGAIN;
	fake_peer.files += id != LASTWORD_LANE_ID;
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
	return fake_peer.last;
}

void __wrap_lastword_rest(int fd, uint64_t ms);
void __wrap_lastword_rest(int fd, uint64_t ms)
{
	fake_peer.rest_ms = ms;
}

/* --- the peer's actions --- */

static inline int fake_peer_keep(void *ctx, struct span batch)
{
	return buf_append(&fake_peer.batch, batch.data, batch.len);
}

/* Connects and says hello before its next message. epoch: a new one each time. */
static inline void fake_peer_come(struct stream_out *out, uint64_t epoch)
{
	fake_peer.came = true;
	fake_peer.dropped = false;
	stream_out_epoch(out, epoch);
	must(stream_put(out, &(struct msg){ .id = MSG_HELLO,
					    .hello = { .schema = MSG_SCHEMA,
						       .build = msg_build(),
						       .producer = STR_LIT("a liar") } }) == 0);
}

/* Sends the same message several times. */
static inline void fake_peer_say(struct stream_out *out, const struct msg *m, unsigned times)
{
	buf_reset(&fake_peer.batch);
	while (times--)
		must(stream_put(out, m) == 0);
	must(stream_flush(out) == 0);
	fake_peer.has_batch = true;
}

/* Sends bytes that may be no stream at all. */
static inline void fake_peer_say_bytes(struct span bytes)
{
	buf_reset(&fake_peer.batch);
	must(buf_append(&fake_peer.batch, bytes.data, bytes.len) == 0);
	fake_peer.has_batch = true;
}

#endif
