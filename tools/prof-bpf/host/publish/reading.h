/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readings of the mappings of living processes, which then replace the known ones. A worker reads
 * (mapreader.h), so they end later. Records of mappings keep arriving during a reading. Those that
 * are newer than its beginning are applied to its result.
 */
#ifndef PROF_BPF_HOST_PUBLISH_READING_H
#define PROF_BPF_HOST_PUBLISH_READING_H

#include <stdint.h>

struct host;
struct map;
struct process;

/* Begins a reading, if there is none. If it cannot begin or fails, it is tried again later. */
void reading_begin(struct host *h, struct process *p);
/* Schedules a later reading, because memory, descriptors or an answer were missing. */
void reading_later(struct host *h, struct process *p, uint64_t now_ns);
/* Takes a record of a mapping, made at time_ns, that the process keeps. Takes no reference. */
void reading_heard(struct process *p, const struct map *m, uint64_t time_ns);
/* Cancels all readings when the host ends. */
void readings_free(struct host *h);

#endif
