/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trees of cgroups that this process sees, and the cgroups in them that a target (targets.h)
 * names. profpipe searches them before a run. prof-bpf searches them to get the cgroups' numbers
 * for its BPF programs.
 *
 * There are up to two trees: the unified one (v2), and one of v1, which is that of the first
 * controller in CGROUPTREE_CONTROLLERS that v1 has. The kernel's number of a cgroup is the inode
 * number of its folder. It is unique only in its tree.
 *
 * Source: cgroups(7); fs/kernfs/inode.c of the kernel.
 */
#ifndef COMMON_CELL_TARGETS_CGROUPTREE_H
#define COMMON_CELL_TARGETS_CGROUPTREE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/cell/targets/targets.h"

/* In order of preference. */
enum cgrouptree_controller {
	CGROUPTREE_UNIFIED,
	CGROUPTREE_MEMORY,
	CGROUPTREE_PIDS,
	CGROUPTREE_CPU,
	CGROUPTREE_CONTROLLERS,
};

struct cgrouptree {
	enum cgrouptree_controller controller;
	uint32_t hierarchy;  /* the kernel's number of the tree; 0: the unified one */
	char root[PATH_MAX]; /* its mount point; empty: it is not mounted */
};
struct cgrouptrees {
	struct cgrouptree unified, v1;
};

/* Finds the mounted trees. -ENOENT: there is none. */
int cgrouptrees_find(struct cgrouptrees *ret);

/* A cgroup that a target names. */
struct cgrouptree_found {
	const struct cgrouptree *tree;
	uint64_t id, parent_id; /* parent_id 0: this is the root */
	const char *name;	/* the last component of its path; borrowed until fn returns */
};
typedef void cgrouptree_fn(void *ctx, const struct cgrouptree_found *found);
/* Calls fn with each cgroup that a target of the kinds TARGETS_CGROUP, _CONTAINER or _UNIT names,
 * but not with cgroups below these. A path is searched for in v1 only if the unified tree lacks it;
 * the other kinds are searched for in both trees. Returns the number of calls. */
size_t cgrouptrees_each(const struct cgrouptrees *t, const struct target *target, cgrouptree_fn *fn,
			void *ctx);

/* --- pure --- */

/* The cgroup name of a unit: ".service" may be omitted. */
void cgrouptree_unit(const char *text, char ret[static TARGETS_NAME_MOST + 1]);

#endif
