/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * Whether the current process is to be sampled (target.h), by its age, pid, user, name and cgroup.
 * begin() of sample.bpf.c checks this before it does any other work for a tick, except that it
 * first skips processes that -p or COMMAND did not select. Without targets the verifier removes all
 * of this, since target_checks is constant.
 *
 * Processes are excluded by pid. Their descendants are excluded by the address of their
 * signal_struct, which no other process can have while they live; their pids may be reused.
 */
#ifndef BPF_PROGRAMS_TARGET_BPF_H
#define BPF_PROGRAMS_TARGET_BPF_H

#include "bpf/programs/shared.bpf.h"
#include "bpf/target/target.h"
#include "bpf/programs/task.bpf.h"

const volatile __u32 target_checks; /* enum target_check */
const volatile __u32 target_tree;   /* enum target_tree */
const volatile __u64 target_min_age_ns;
const volatile bool target_descendants; /* also exclude descendants of excluded processes */

/* prof-bpf sets the sizes of the maps. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct target_cgroup);
	__type(value, __u32);
} target_cgroups SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct target_name);
	__type(value, __u32);
} target_names SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct target_id);
	__type(value, __u32);
} target_ids SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, struct target_comm);
	__type(value, __u32);
} target_comms SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32); /* real uid */
	__type(value, __u32);
} target_users SEC(".maps");

/* The processes that prof-bpf excludes: pid to start time (struct sample). */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} target_pids SEC(".maps");

/* Their descendants, by the addresses of their signal_struct. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, __u64);
	__type(value, __u32);
} target_descended SEC(".maps");

/* --- cgroups --- */

struct kernfs_node {
	const char *name;
	__u64 id;
} __attribute__((preserve_access_index));
struct cgroup;
struct cgroup_subsys_state {
	struct cgroup *cgroup;
	struct cgroup_subsys_state *parent;
} __attribute__((preserve_access_index));
struct cgroup_root {
	int hierarchy_id;
} __attribute__((preserve_access_index));
struct cgroup {
	struct cgroup_subsys_state self;
	struct kernfs_node *kn;
	struct cgroup_root *root;
} __attribute__((preserve_access_index));
struct css_set {
	struct cgroup_subsys_state *subsys[1];
	struct cgroup *dfl_cgrp;
} __attribute__((preserve_access_index));
struct task_struct___in_cgroups {
	struct css_set *cgroups;
} __attribute__((preserve_access_index));
/* CO-RE replaces the numbers with those of the running kernel. */
enum cgroup_subsys_id { cpu_cgrp_id = 1, memory_cgrp_id = 2, pids_cgrp_id = 3 };

static __always_inline struct target_cgroup target_key(struct cgroup *cg)
{
	return (struct target_cgroup){ .id = BPF_CORE_READ(cg, kn, id),
				       .hierarchy = BPF_CORE_READ(cg, root, hierarchy_id) };
}

/* Returns the flags of a cgroup and of all above it. */
static __always_inline __u32 target_flags_from(struct cgroup *cg)
{
	struct target_cgroup key = target_key(cg);
	__u32 flags = 0;

	for (int i = 0; i < TARGET_DEPTH && cg; i++) {
		key.id = BPF_CORE_READ(cg, kn, id);
		const __u32 *found = bpf_map_lookup_elem(&target_cgroups, &key);

		if (found)
			flags |= *found;
		cg = BPF_CORE_READ(cg, self.parent, cgroup);
	}
	return flags;
}

/* Returns the cgroup of a task in the tree of v1. */
static __always_inline struct cgroup *target_in_tree(struct css_set *set)
{
	struct cgroup_subsys_state *css = NULL;
	__u32 at = 0;

	if (target_tree == TARGET_MEMORY &&
	    bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		at = bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id);
	else if (target_tree == TARGET_PIDS_TREE &&
		 bpf_core_enum_value_exists(enum cgroup_subsys_id, pids_cgrp_id))
		at = bpf_core_enum_value(enum cgroup_subsys_id, pids_cgrp_id);
	else if (target_tree == TARGET_CPU &&
		 bpf_core_enum_value_exists(enum cgroup_subsys_id, cpu_cgrp_id))
		at = bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id);
	else
		return NULL;
	bpf_probe_read_kernel(&css, sizeof(css),
			      (void *)__builtin_preserve_access_index(&set->subsys[0]) +
				      at * sizeof(css));
	return css ? BPF_CORE_READ(css, cgroup) : NULL;
}

/* Global, for the reason given in search.h. */
__attribute__((noinline)) __u32 target_by_cgroup(void)
{
	struct task_struct___in_cgroups *task = (void *)bpf_get_current_task();
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	struct cgroup *v1 = target_in_tree(set);
	__u32 flags = target_flags_from(BPF_CORE_READ(set, dfl_cgrp));

	return v1 ? flags | target_flags_from(v1) : flags;
}

/* --- other properties --- */

__attribute__((noinline)) __u32 target_by_comm(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct target_comm key = { .bits = 8 * TARGET_COMM };

	BPF_CORE_READ_STR_INTO(&key.comm, task, group_leader, comm);
	const __u32 *found = bpf_map_lookup_elem(&target_comms, &key);

	return found ? *found : 0;
}

static __always_inline __u32 target_by_user(void)
{
	const __u32 uid = (__u32)bpf_get_current_uid_gid(),
		    *found = bpf_map_lookup_elem(&target_users, &uid);

	return found ? *found : 0;
}

/* Whether a process is excluded by its pid, or as a descendant. */
static __always_inline bool target_has_pid(struct task_struct *task, __u32 pid)
{
	const __u64 process = (__u64)BPF_CORE_READ(task, signal);
	const __u64 *start_ns = bpf_map_lookup_elem(&target_pids, &pid);

	if (start_ns && *start_ns == task_start(task))
		return true;
	return target_descendants && bpf_map_lookup_elem(&target_descended, &process);
}

static __always_inline bool target_refuses(__u32 flags, bool only)
{
	return flags & TARGET_EXCLUDE || (only && !(flags & TARGET_INCLUDE));
}

/* Whether the current process is not to be sampled. pid: as prof-bpf sees it. */
__attribute__((noinline)) int target_skips(__u32 pid)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (target_checks & TARGET_AGES &&
	    bpf_ktime_get_boot_ns() < task_start(task) + target_min_age_ns)
		return 1;
	if (target_checks & TARGET_PIDS && target_has_pid(task, pid))
		return 1;
	if (target_checks & TARGET_USERS &&
	    target_refuses(target_by_user(), target_checks & TARGET_USERS_ONLY))
		return 1;
	if (target_checks & TARGET_COMMS &&
	    target_refuses(target_by_comm(), target_checks & TARGET_COMMS_ONLY))
		return 1;
	if (target_checks & TARGET_CGROUPS &&
	    target_refuses(target_by_cgroup(), target_checks & TARGET_CGROUPS_ONLY))
		return 1;
	return 0;
}

/* Called when a process forks: the child of an excluded process is also excluded. */
static __always_inline void target_forked(struct task_struct *parent, __u32 parent_pid,
					  struct task_struct *child)
{
	const __u32 yes = TARGET_EXCLUDE;
	const __u64 process = (__u64)BPF_CORE_READ(child, signal);

	if (target_checks & TARGET_PIDS && target_descendants && target_has_pid(parent, parent_pid))
		bpf_map_update_elem(&target_descended, &process, &yes, BPF_ANY);
}

/* Called when the last thread of a process is gone, so that no sample of it can come any more. Its
 * leader stays to the end, unless another thread took its place in an exec. */
SEC("raw_tp/sched_process_free")
int on_free(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = (void *)ctx->args[0];
	const __u64 process = (__u64)BPF_CORE_READ(task, signal);

	if (BPF_CORE_READ(task, pid) == BPF_CORE_READ(task, tgid))
		bpf_map_delete_elem(&target_descended, &process);
	return 0;
}

/* --- cgroups that come and go --- */

/* A new cgroup's name, and the container's id in it. One is enough, since the hook runs under the
 * kernel's lock of cgroups. */
struct target_new {
	struct target_name name;
	struct target_id id;
	struct container_id found;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct target_new);
} target_new SEC(".maps");

static __always_inline __u32 target_by_id(struct target_new *n)
{
	container_find(n->name.name, &n->found);
	if (!n->found.count)
		return 0;
	const __u64 start = at_most(n->found.start, CONTAINER_NAME - CONTAINER_ID),
		    count = at_most(n->found.count, CONTAINER_ID);

	__builtin_memset(&n->id, 0, sizeof(n->id));
	n->id.bits = 8 * CONTAINER_ID;
	bpf_probe_read_kernel(n->id.id, count, n->name.name + start);
	const __u32 *found = bpf_map_lookup_elem(&target_ids, &n->id);

	return found ? *found : 0;
}

/* The new cgroup is not visible yet, so it contains no process. */
SEC("raw_tp/cgroup_mkdir")
int on_cgroup(struct bpf_raw_tracepoint_args *ctx)
{
	struct cgroup *cg = (void *)ctx->args[0];
	const struct target_cgroup key = target_key(cg);
	__u32 zero = 0, flags = 0;
	struct target_new *n = bpf_map_lookup_elem(&target_new, &zero);

	if (!n)
		return 0;
	__builtin_memset(&n->name, 0, sizeof(n->name));
	bpf_probe_read_kernel_str(n->name.name, sizeof(n->name.name), BPF_CORE_READ(cg, kn, name));
	const __u32 *found = bpf_map_lookup_elem(&target_names, &n->name);

	if (found)
		flags = *found;
	flags |= target_by_id(n);
	n->name.parent.id = BPF_CORE_READ(cg, self.parent, cgroup, kn, id);
	n->name.parent.hierarchy = key.hierarchy;
	found = bpf_map_lookup_elem(&target_names, &n->name);
	if (found)
		flags |= *found;
	if (flags)
		bpf_map_update_elem(&target_cgroups, &key, &flags, BPF_ANY);
	return 0;
}

SEC("raw_tp/cgroup_rmdir")
int on_cgroup_end(struct bpf_raw_tracepoint_args *ctx)
{
	const struct target_cgroup key = target_key((void *)ctx->args[0]);

	bpf_map_delete_elem(&target_cgroups, &key);
	return 0;
}

#endif
