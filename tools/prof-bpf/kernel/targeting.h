/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells the BPF programs whom to sample (bpf/target/target.h). The loader calls these steps in this
 * order:
 *
 * - targeting_new, before the programs are loaded; it computes constants and sizes of maps
 * - targeting_fill, before any program runs
 * - targeting_find, once the programs are notified of new cgroups and processes; it finds those
 *   that already exist, so none is missed in between
 */
#ifndef PROF_BPF_KERNEL_TARGETING_H
#define PROF_BPF_KERNEL_TARGETING_H

#include <stdbool.h>
#include <stdint.h>
#include "common/cell/targets/targets.h"

struct targeting;

/* Constants and numbers of elements. A map that is not used has one element. */
struct targeting_plan {
	uint32_t checks, tree; /* enum target_check, enum target_tree */
	uint64_t min_age_ns;
	bool cgroups;	  /* follow cgroups that come and go */
	bool descendants; /* exclude the descendants of excluded processes */
	uint32_t cgroup_room, name_room, id_room, comm_room, user_room, pid_room, descended_room;
};
/* Descriptors of the maps. Borrowed. */
struct targeting_maps {
	int cgroups, names, ids, comms, users, pids;
};

/* t is borrowed. again: an earlier prof-bpf of this run had these targets, so one may be gone by
 * now. The caller owns *ret. Returns 0; -ENOENT: no cgroups are mounted, logged; -ENOMEM. */
int targeting_new(const struct targets *t, bool again, struct targeting **ret);
void targeting_free(struct targeting *t);
const struct targeting_plan *targeting_plan(const struct targeting *t);
/* Fills the maps. Returns 0 or -errno of a map, logged. */
int targeting_fill(struct targeting *t, const struct targeting_maps *maps);
/* Finds existing targets. Returns 0; -ENOENT: a cgroup does not exist; -ESRCH: a process does not;
 * -E2BIG: there are too many; all logged. */
int targeting_find(struct targeting *t);

#endif
