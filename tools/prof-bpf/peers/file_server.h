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

#define FILE_SERVER_OPEN_MAX 64 /* pending requests; if there are more, the peer is disconnected */

struct file_server;
struct file_server_config {
	const char *run_dir;
	uid_t peer; /* uid of prof-symd */
	/* Callbacks for requests. Each leads to one file_server_answer, during the call or later.
	 * Borrowed parts of m are valid until they return. */
	void (*want_file)(void *ctx, uint64_t ticket, const struct msg_file_request *m);
	void (*want_debug)(void *ctx, uint64_t ticket, const struct msg_debug_request *m);
	void (*want_jit)(void *ctx, uint64_t ticket, const struct msg_jit_request *m);
	/* Takes prof-symd's report about the runtime in a file of the stream. Returns false if the
	 * message breaks the rules. */
	bool (*take_runtime)(void *ctx, const struct msg_runtime *m);
	/* Leads to one file_server_memory, during the call or later. */
	void (*want_memory)(void *ctx, uint64_t ticket, const struct msg_memory_request *m);
	/* The peer disconnected. last: what it was working on. */
	void (*peer_died)(void *ctx, const struct lastword *last);
	void *ctx;
};
int file_server_new(const struct file_server_config *c, struct file_server **ret);
void file_server_free(struct file_server *f);
/* Whether no request is pending. */
bool file_server_idle(const struct file_server *f);
/* Returns descriptors that are readable when file_server_run has something to do. Borrowed. */
int file_server_bus_fd(const struct file_server *f);
int file_server_lane_fd(const struct file_server *f);
/* Takes requests and sends answers. Returns 0, or -errno if the route failed, e.g. for lack of
 * memory: the next call continues, and nothing is lost. */
int file_server_run(struct file_server *f);
/* file_server_grant tells prof-symd how many bytes of memory it may take. file_server_wanted
 * returns how many it has asked for, 0 if it has not. */
void file_server_grant(struct file_server *f, uint64_t bytes);
uint64_t file_server_wanted(const struct file_server *f);
/* Sets how long prof-symd sleeps after each tick of work on a file or process (lastword.h). */
void file_server_rest(struct file_server *f, uint64_t ms);
/* Completes a request. fd is owned by f from then on (-1: none); status: 0 or a positive errno;
 * size: in bytes. Drops the answer if the peer is gone. */
void file_server_answer(struct file_server *f, uint64_t ticket, int fd, int status, uint64_t size,
			uint64_t place);
/* Completes a request for memory. *bytes is taken over; NULL: none. lengths: of the pieces,
 * copied. */
void file_server_memory(struct file_server *f, uint64_t ticket, int status, struct buf *bytes,
			struct msg_list lengths);

#endif
