/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Which processes to sample, as prof-bpf tells the sampling program: keys and values of the maps in
 * target.bpf.h. Values are sets of enum target_flag.
 */
#ifndef BPF_TARGET_TARGET_H
#define BPF_TARGET_TARGET_H

#include "bpf/target/container.h"
#include "bpf/sample.h"

enum target_flag { TARGET_INCLUDE = 1, TARGET_EXCLUDE = 2 };

/* The properties that the program must check. *_ONLY: a process that matches none of the included
 * values is not sampled. */
enum target_check {
	TARGET_AGES = 1,
	TARGET_USERS = 2,
	TARGET_USERS_ONLY = 4,
	TARGET_COMMS = 8,
	TARGET_COMMS_ONLY = 16,
	TARGET_CGROUPS = 32,
	TARGET_CGROUPS_ONLY = 64,
	TARGET_PIDS = 128,
};

/* The tree of cgroup v1 that is checked besides the unified one. */
enum target_tree { TARGET_NO_TREE, TARGET_MEMORY, TARGET_PIDS_TREE, TARGET_CPU };

#define TARGET_DEPTH 64 /* nested cgroups; deeper ones match nothing */

/* A cgroup, by its number, which is unique in its tree. */
struct target_cgroup {
	__sample_u64 id;
	__sample_u32 hierarchy; /* the kernel's number of the tree; 0: the unified one */
	__sample_u32 zero;
};

/* A cgroup that may be created later: any cgroup with this name. If parent is not 0, only in that
 * cgroup. */
#define TARGET_NAME 240 /* bytes, filled with zeros */
struct target_name {
	struct target_cgroup parent;
	char name[TARGET_NAME];
};

/* The keys of two tries. A shorter key matches all that begin with it. Only the value of the
 * longest matching key counts, so that value includes those of all shorter keys. */
#define TARGET_COMM 16 /* bytes, filled with zeros */
struct target_comm {
	__sample_u32 bits;
	char comm[TARGET_COMM];
};
/* The beginning of a container's id (container.h). */
struct target_id {
	__sample_u32 bits;
	char id[CONTAINER_ID];
};

#ifndef __bpf__
static_assert(TARGET_NAME == CONTAINER_NAME, "an id is looked for in all of a name");
static_assert(sizeof(struct target_cgroup) == 16 && sizeof(struct target_name) == 256 &&
		      sizeof(struct target_comm) == 20 && sizeof(struct target_id) == 68,
	      "no padding");
#endif

#endif
