/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The route to prof-bpf: requests for files, for perf maps and for memory, and reports of runtimes.
 * prof-bpf's answers come over the same route, and serve.c takes them.
 */
#ifndef PROF_SYMD_ROUTE_H
#define PROF_SYMD_ROUTE_H

#include "common/names/jit/jit.h"
#include "common/wire/peer/peer.h"
#include "tools/prof-symd/files/filestore.h"
#include "tools/prof-symd/objects/objects.h"
#include "tools/prof-symd/stream/namer.h"

struct route {
	struct peer *files;	   /* borrowed */
	const struct namer *namer; /* borrowed; knows the paths of files */
};

/* For filestore_init, jit_init, objects_new and namer_use_objects. ctx is a struct route. Each puts
 * one message. Returns 0 if it is sent now or with a later peer_flush; -EAGAIN: the route is full,
 * and the caller repeats the call later; or another -errno. */
int route_ask_file(void *ctx, const struct filestore_request *rq);
int route_ask_jit(void *ctx, const struct jit_request *rq);
int route_ask_memory(void *ctx, const struct objects_request *rq);
int route_tell_runtime(void *ctx, uint64_t file, const struct runtime_build *b);

#endif
