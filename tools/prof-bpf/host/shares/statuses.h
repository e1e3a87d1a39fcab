/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads /proc/PID/status, for which the kernel writes a list of all groups: of 65,536 groups, which
 * a container's root may have, in some ten milliseconds. Slow ones are charged to the owner of the
 * process as time for mappings (mapping_turns.h). While there are some, an owner that has used up
 * its time must wait.
 */
#ifndef PROF_BPF_HOST_SHARES_STATUSES_H
#define PROF_BPF_HOST_SHARES_STATUSES_H

#include <stdint.h>

#define STATUSES_SLOW_NS 1000000ull /* cpu time; others take some ten microseconds */
/* For this long after a slow one, owners may have to wait. */
#define STATUSES_WATCH_NS 60000000000ull
/* Those of unknown owners: a second at once, and then a twentieth of the time. */
#define STATUSES_UNKNOWN_PART 20
#define STATUSES_UNKNOWN_SAVED_NS 20000000000ull

struct host;
struct owner;
struct procfs_ids;

/* Read ids of a process (procfs.h). w: who is charged; NULL: not known yet. Return also -EBUSY: w
 * must wait. */
int statuses_read_uid(struct host *h, struct owner *w, uint32_t pid, uint32_t *ret_uid);
int statuses_read_ids(struct host *h, struct owner *w, uint32_t pid, struct procfs_ids *ret);

#endif
