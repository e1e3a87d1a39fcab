/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables and command lines of sampled processes, which host_config.startup asks for. They lie in
 * the memory of the processes, so a worker reads them (startreader.h), once, at the first sample of
 * a process. A process that keeps its reader waiting has none.
 *
 * The worker reads no variables of processes that may not be dumped, of set-id programs, and of
 * programs on the deny list of memory.h. Everybody may read command lines. The texts belong to the
 * process only if no exec was under way. So they wait until all records from before the end of the
 * reading were taken.
 *
 * The bytes of all processes have a ceiling, and are charged to the owners (OWNER_ATTRIBUTES).
 */
#ifndef PROF_BPF_HOST_MEMORY_ATTRIBUTES_H
#define PROF_BPF_HOST_MEMORY_ATTRIBUTES_H

#include "common/base/bytes/str.h"
#include "tools/prof-bpf/host/processes/host_types.h"

struct host;
struct process;

#define ATTRIBUTES_BYTES (4u << 20) /* of all; fewer fit into little memory (host.c) */

/* Has a worker read them, if any are wanted. */
void attributes_want(struct host *h, struct process *p);
/* Keeps what was read before h->heard_ns, and tells host_config.attributes_known. */
void attributes_tick(struct host *h);
/* Gives up all readings. */
void attributes_free(struct host *h);

/* Calls fn with each one of a process, by its key in the stream. Both texts are borrowed during the
 * call. */
typedef void attributes_fn(void *ctx, struct str key, struct str value);
void attributes_each(const struct host *h, const struct host_process *p, attributes_fn *fn,
		     void *ctx);

#endif
