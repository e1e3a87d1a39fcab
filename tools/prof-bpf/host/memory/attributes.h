/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Variables and command lines of sampled processes, which host_config.environment asks for. They
 * are in the memory of the processes, so a worker reads them (startreader.h), once, at the first
 * sample of a process. A process that makes its reader wait gets none.
 *
 * The worker reads no variables of processes that may not be dumped, of set-id programs, and of
 * programs on the deny list of memory.h. Any user may read command lines. The texts belong to the
 * process only if no exec was in progress. So they are used only after all records from before the
 * end of the reading were taken.
 *
 * The bytes of all processes together are limited, and are charged to the owners
 * (OWNER_ATTRIBUTES).
 */
#ifndef PROF_BPF_HOST_MEMORY_ATTRIBUTES_H
#define PROF_BPF_HOST_MEMORY_ATTRIBUTES_H

#include "common/base/bytes/str.h"
#include "tools/prof-bpf/host/processes/host_types.h"

struct host;
struct process;

/* Limit of bytes for all processes; lower if memory is scarce (host.c). */
#define ATTRIBUTES_BYTES (4u << 20)

/* Starts a reading of a process's attributes, if any are wanted. */
void attributes_want(struct host *h, struct process *p);
/* Stores what was read before h->heard_ns, and calls host_config.attributes_known. */
void attributes_tick(struct host *h);
/* Gives up all readings. */
void attributes_free(struct host *h);

/* Calls fn for each attribute of a process, with its key in the stream. Both texts are borrowed
 * during the call. */
typedef void attributes_fn(void *ctx, struct str key, struct str value);
void attributes_each(const struct host *h, const struct host_process *p, attributes_fn *fn,
		     void *ctx);

#endif
