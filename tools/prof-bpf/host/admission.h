/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: adds processes and their mappings to the host, within its limits (eviction.h). */
#ifndef PROF_BPF_HOST_ADMISSION_H
#define PROF_BPF_HOST_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

struct host;
struct map;
struct process;

/* Makes a new object for a pid, and retires a living one. born_ns: 0 if the process began before
 * profpipe. Returns NULL at the limit, or without memory. May forget the object of another pid. */
struct process *admission_process(struct host *h, uint32_t pid, uint64_t born_ns);
/* Makes an object for the process that had this pid before all known ones; it is retired at once.
 * last: the pid's newest object. */
struct process *admission_behind(struct host *h, struct process *last, uint64_t end_ns);
/* Reads a process from /proc. Returns NULL if it does not exist, or if nothing runs in it any
 * more. */
struct process *admission_running(struct host *h, uint32_t pid, bool selected);
/* Adds a mapping, or counts that there is no space. Takes over the reference to its backing. */
void admission_mapping(struct host *h, struct process *p, const struct map *m);

#endif
