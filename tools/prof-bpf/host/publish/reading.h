/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readings of the mappings of living processes, which then replace the known ones. A worker reads
 * (mapreader.h), so they end later. Records of mappings keep arriving during a reading: those that
 * are younger than its beginning are applied to its result.
 */
#ifndef PROF_BPF_HOST_PUBLISH_READING_H
#define PROF_BPF_HOST_PUBLISH_READING_H

#include <stdint.h>

struct host;
struct map;
struct process;

/* Begins a reading, if none is under way. If that fails, or the reading does, it is tried again
 * later. */
void reading_begin(struct host *h, struct process *p);
/* Memory, descriptors or an answer are lacking: reads its mappings later. */
void reading_later(struct host *h, struct process *p, uint64_t now_ns);
/* A record of a mapping, at time_ns, that the process keeps. Takes no reference. */
void reading_heard(struct process *p, const struct map *m, uint64_t time_ns);
/* The host ends: drops what any reading still delivers. */
void readings_free(struct host *h);

#endif
