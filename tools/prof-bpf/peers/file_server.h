/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file server for prof-symd: takes requests from the files route, passes them on, and sends the
 * answers with their descriptors. host.c, jitfiles.c, opener.c and memory.c decide what is opened.
 * A request names one of these:
 *
 * - a file of the stream
 * - a debug file, by build id, by one name, or by a path with a build id
 * - a process whose perf map, jitdump or memory is wanted
 */
#ifndef PROF_BPF_PEERS_FILE_SERVER_H
#define PROF_BPF_PEERS_FILE_SERVER_H

#include <stdint.h>
#include <sys/types.h>
#include "common/base/bytes/buf.h"
#include "common/wire/msg.h"
#include "common/wire/peer/lastword.h"

#define FILE_SERVER_OPEN_MAX 64 /* pending requests; if there are more, the peer loses its pipe */

struct file_server;
struct file_server_config {
	const char *run_dir;
	uid_t peer; /* of prof-symd */
	/* Callbacks for requests. Each leads to one file_server_answer, now or later. Borrowed
	 * parts of m are valid until they return. */
	void (*want_file)(void *ctx, uint64_t ticket, const struct msg_file_request *m);
	void (*want_debug)(void *ctx, uint64_t ticket, const struct msg_debug_request *m);
	void (*want_jit)(void *ctx, uint64_t ticket, const struct msg_jit_request *m);
	/* Takes the runtime that a file of the stream holds. False: the message breaks the
	 * rules. */
	bool (*take_runtime)(void *ctx, const struct msg_runtime *m);
	/* Leads to one file_server_memory, now or later. */
	void (*want_memory)(void *ctx, uint64_t ticket, const struct msg_memory_request *m);
	/* The peer is gone. last: what it was working on. */
	void (*peer_died)(void *ctx, const struct lastword *last);
	void *ctx;
};
int file_server_new(const struct file_server_config *c, struct file_server **ret);
void file_server_free(struct file_server *f);
/* Whether no request is pending. */
bool file_server_idle(const struct file_server *f);
/* Readable when file_server_run has something to do. Borrowed. */
int file_server_bus_fd(const struct file_server *f);
int file_server_lane_fd(const struct file_server *f);
/* Takes requests and sends answers. 0, or -errno if the route failed, e.g. for lack of memory: the
 * next call goes on, and nothing is lost. */
int file_server_run(struct file_server *f);
/* file_server_grant tells prof-symd how many bytes of memory it may take. file_server_wanted
 * returns how many it says it could use, 0 if it says nothing. */
void file_server_grant(struct file_server *f, uint64_t bytes);
uint64_t file_server_wanted(const struct file_server *f);
/* How long prof-symd rests after each tick of work on a file or process (lastword.h). */
void file_server_rest(struct file_server *f, uint64_t ms);
/* Completes a request. fd: taken (-1: none); status: 0 or a positive errno; size: in bytes. Drops
 * the answer if the peer is gone. */
void file_server_answer(struct file_server *f, uint64_t ticket, int fd, int status, uint64_t size,
			uint64_t place);
/* Completes a request for memory. bytes: taken; NULL: none. lengths: of the pieces, copied. */
void file_server_memory(struct file_server *f, uint64_t ticket, int status, struct buf *bytes,
			struct msg_list lengths);

#endif
