/* SPDX-License-Identifier: Apache-2.0 */
/* Publishes the mappings that host.c knows to the tables: a process at most once a tick, and a
 * large one less often. */
#ifndef PROF_BPF_HOST_PUBLISH_H
#define PROF_BPF_HOST_PUBLISH_H

#include <stddef.h>
#include <stdint.h>

struct host;
struct process;
struct tables_mapping;

/* Publishes these mappings of a process. As tables_process_set. */
int process_publish(struct host *h, struct process *p, const struct tables_mapping *m, size_t n);
/* Publishes everything that has changed and can be published now. */
void publish_all(struct host *h, uint64_t now_ns);

#endif
