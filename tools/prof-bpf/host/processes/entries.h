/* SPDX-License-Identifier: Apache-2.0 */
/* The entry of a process in the tables: its mappings, which the kernel uses to walk its stacks. */
#ifndef PROF_BPF_HOST_PROCESSES_ENTRIES_H
#define PROF_BPF_HOST_PROCESSES_ENTRIES_H

#include <stddef.h>

struct host;
struct process;
struct tables_mapping;

/* Publishes these mappings of a process. Returns as tables_process_set does. */
int entry_set(struct host *h, struct process *p, const struct tables_mapping *m, size_t n);
/* Withdraws the mappings of a process, if any are published. */
void entry_drop(struct host *h, struct process *p);

#endif
