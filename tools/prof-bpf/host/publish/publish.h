/* SPDX-License-Identifier: Apache-2.0 */
/* Publishes the mappings that host.c knows to the tables: a process at most once per tick, and a
 * large one less often. */
#ifndef PROF_BPF_HOST_PUBLISH_PUBLISH_H
#define PROF_BPF_HOST_PUBLISH_PUBLISH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct host;
struct host_file;
struct host_process;
struct process;
struct tables_mapping;

/* Withdraws the mappings of processes in which a file has lost its slot, until they are published
 * again. */
void publish_lost_slots(struct host *h);
/* Publishes everything that has changed and can be published now. */
void publish_all(struct host *h, uint64_t now_ns);

/* Gives the mappings of a process in the form of the tables, even if it has just ended. They are
 * those of time_ns, without places where another file was mapped then. *ret is borrowed until the
 * next call. *ret_whole: none of its files is still being opened. Returns their number; -EAGAIN:
 * the owner has used up its part of the time (mapping_turns.h); -ENOMEM. */
ssize_t publish_mappings(struct host *h, struct host_process *p, uint64_t time_ns,
			 const struct tables_mapping **ret, bool *ret_whole);

/* A walk of a sample reached code at these addresses, or may reach it: gives their files slots and
 * requests rows. The process will be published again. At most a few files at once. */
void publish_wants(struct host *h, struct host_process *p, const uint64_t *addresses, size_t n);
/* Publishes all processes that map a file again, since its entry in the tables has changed. */
void publish_again(struct host *h, const struct host_file *f);

#endif
