/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files for prof-symd: takes its requests off the files route, has them looked for, and sends the
 * answers with their descriptors. What is opened is decided elsewhere (host.c, jitfiles.c,
 * opener.c, memory.c): a request names a file of the stream, a debug file by build id, by one name,
 * or by a path with a build id, or a process whose perf map or jitdump it means, or whose memory.
 */
#ifndef PROFPIPE_FILESRV_H
#define PROFPIPE_FILESRV_H

#include <stdint.h>
#include <sys/types.h>
#include "common/base/buf.h"
#include "common/wire/lastword.h"
#include "common/wire/msg.h"

#define FILESRV_OPEN_MAX 64 /* requests being looked after at once; more cost the peer its pipe */

struct filesrv;
struct filesrv_config {
	const char *run_dir;
	uid_t peer; /* of prof-symd */
	/* Look for these; each ends in one filesrv_answer, now or later. What m borrows holds until
	 * they return. */
	void (*want_file)(void *ctx, uint64_t ticket, const struct msg_file_request *m);
	void (*want_debug)(void *ctx, uint64_t ticket, const struct msg_debug_request *m);
	void (*want_jit)(void *ctx, uint64_t ticket, const struct msg_jit_request *m);
	/* What a file of the stream is. False: the message breaks the rules. */
	bool (*take_runtime)(void *ctx, const struct msg_runtime *m);
	/* Ends in one filesrv_memory, now or later. */
	void (*want_memory)(void *ctx, uint64_t ticket, const struct msg_memory_request *m);
	/* The peer is gone, and this is what it was working on. */
	void (*peer_died)(void *ctx, const struct lastword *last);
	void *ctx;
};
int filesrv_new(const struct filesrv_config *c, struct filesrv **ret);
void filesrv_free(struct filesrv *f);
/* Nobody waits for an answer. */
bool filesrv_idle(const struct filesrv *f);
/* Readable when filesrv_run has something to do. Borrowed. */
int filesrv_bus_fd(const struct filesrv *f);
int filesrv_lane_fd(const struct filesrv *f);
/* Takes requests, sends answers. 0, or -errno where the route failed, for want of memory say: it
 * goes on with the next call, and nothing is lost. */
int filesrv_run(struct filesrv *f);
/* Tells prof-symd how many bytes of memory it may take; and how many it says that it could use, 0
 * where it says nothing. */
void filesrv_grant(struct filesrv *f, uint64_t bytes);
uint64_t filesrv_wanted(const struct filesrv *f);
/* The end of a request: fd is taken (-1: none), status 0 or a positive errno, size in bytes. An
 * answer to a peer that is gone is dropped. */
void filesrv_answer(struct filesrv *f, uint64_t ticket, int fd, int status, uint64_t size);
/* The same of a request for memory. bytes: taken; NULL: none; lengths: of the pieces, copied. */
void filesrv_memory(struct filesrv *f, uint64_t ticket, int status, struct buf *bytes,
		    struct u64s lengths);

#endif
