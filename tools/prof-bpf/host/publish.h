/* SPDX-License-Identifier: Apache-2.0 */
/* Publishes the mappings that host.c knows to the tables: a process at most once a tick, and a
 * large one less often. */
#ifndef PROF_BPF_HOST_PUBLISH_H
#define PROF_BPF_HOST_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct host;
struct host_file;
struct host_process;
struct process;
struct tables_mapping;

/* Publishes these mappings of a process. As tables_process_set. */
int process_publish(struct host *h, struct process *p, const struct tables_mapping *m, size_t n);
/* Withdraws the mappings of processes in which a file has lost its slot, until they are published
 * again. */
void publish_lost_slots(struct host *h);
/* Withdraws the mappings of a process, if any are published. */
void publish_nothing(struct host *h, struct process *p);
/* Publishes everything that has changed and can be published now. */
void publish_all(struct host *h, uint64_t now_ns);

/* The mappings of a process as the tables take them, even if it has just ended. They are those of
 * time_ns, without places where another file was then. *ret: borrowed until the next call.
 * *ret_whole: none of its files is still being opened. Returns their number, or -ENOMEM. */
ssize_t host_mappings(struct host *h, struct host_process *p, uint64_t time_ns,
		      const struct tables_mapping **ret, bool *ret_whole);

/* The tables' entry of a file has changed: publishes all processes that map it again. */
void host_republish(struct host *h, const struct host_file *f);

#endif
