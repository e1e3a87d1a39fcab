/* SPDX-License-Identifier: Apache-2.0 */
/* Admission: takes processes and their mappings into the host, up to its ceilings (eviction.h). */
#ifndef PROF_BPF_HOST_ADMISSION_H
#define PROF_BPF_HOST_ADMISSION_H

#include <stdbool.h>
#include <stdint.h>

struct host;
struct map;
struct process;

/* Makes a new object for a pid, and retires a living one. born_ns: 0 if it began before profpipe.
 * NULL: the ceiling, or no memory. May forget an object of another pid. */
struct process *admission_process(struct host *h, uint32_t pid, uint64_t born_ns);
/* Makes an object for the process that had this pid before all known ones; it is retired at once.
 * last: the pid's newest object. */
struct process *admission_behind(struct host *h, struct process *last, uint64_t end_ns);
/* Reads a process from /proc. NULL: it does not exist, or nothing runs in it any more. */
struct process *admission_running(struct host *h, uint32_t pid, bool selected);
/* Adds a mapping, or counts that there is no room. Takes the reference to its backing. */
void admission_mapping(struct host *h, struct process *p, const struct map *m);

#endif
