/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The kernel's structs of a task. Only the used fields are declared (CO-RE). */
#ifndef BPF_PROGRAMS_TASK_BPF_H
#define BPF_PROGRAMS_TASK_BPF_H

#include <linux/types.h>
#include <stdbool.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include "bpf/sample.h"

/* The inode number of the pid namespace in which prof-bpf runs; 0: the host's. */
const volatile __u32 viewer_pid_ns;

struct mm_struct {
	unsigned long start_stack, flags;
} __attribute__((preserve_access_index));
/* since 6.18 */
struct mm_struct___bitmap {
	struct {
		unsigned long __mm_flags[1];
	} flags;
} __attribute__((preserve_access_index));
struct return_instance {
	unsigned long stack, orig_ret_vaddr;
	struct return_instance *next;
} __attribute__((preserve_access_index));
struct thread_struct {
	unsigned long fsbase; /* since 4.7 */
} __attribute__((preserve_access_index));
struct uprobe_task {
	struct return_instance *return_instances;
	unsigned long vaddr, xol_vaddr;
	void *active_uprobe;
} __attribute__((preserve_access_index));
struct kuid {
	__u32 val;
};
struct user_namespace {
	struct user_namespace *parent;
	int level; /* 0: the host's namespace */
	struct kuid owner;
} __attribute__((preserve_access_index));
struct cred {
	struct user_namespace *user_ns;
} __attribute__((preserve_access_index));
struct ns_common {
	unsigned int inum;
} __attribute__((preserve_access_index));
struct pid_namespace {
	struct user_namespace *user_ns;
	struct ns_common ns;
} __attribute__((preserve_access_index));
struct upid {
	int nr;
	struct pid_namespace *ns;
} __attribute__((preserve_access_index));
struct pid {
	unsigned int level;
	struct upid numbers[1]; /* one for each level, from 0 on */
} __attribute__((preserve_access_index));
struct signal_struct;
struct task_struct {
	unsigned int flags;
	int pid, tgid;
	char comm[16];
	struct signal_struct *signal;
	__u64 start_boottime;
	struct task_struct *group_leader, *real_parent;
	struct mm_struct *mm;
	const struct cred *real_cred;
	struct pid *thread_pid;
	void *stack;
	struct thread_struct thread;
	struct uprobe_task *utask; /* with CONFIG_UPROBES */
	unsigned long sas_ss_sp, sas_ss_size;
} __attribute__((preserve_access_index));

/* The name of start_boottime before 5.5, kernel commit cf25e24db61c. */
struct task_struct___before_5_5 {
	__u64 real_start_time;
} __attribute__((preserve_access_index));

/* Newer kernels, such as 7.3, store here what was in mm_struct.flags. */
struct task_struct___exec_state {
	void *exec_state;
} __attribute__((preserve_access_index));

/* Returns the start time of a process as /proc/PID/stat shows it: rounded down to clock ticks,
 * since user space has no better value. */
static __always_inline __u64 task_start(struct task_struct *task)
{
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	__u64 t;

	if (bpf_core_field_exists(leader->start_boottime))
		t = BPF_CORE_READ(leader, start_boottime);
	else
		t = BPF_CORE_READ((struct task_struct___before_5_5 *)leader, real_start_time);
	return t - t % SAMPLE_START_TICK_NS;
}

/* A struct pid holds a number for each pid namespace from the host's to the task's own, at most
 * this many (MAX_PID_NS_LEVEL). */
#define TASK_PID_LEVELS 33

static __always_inline struct upid *task_upid(struct pid *pid, unsigned int level)
{
	return (void *)__builtin_preserve_access_index(&pid->numbers[0]) +
	       level * bpf_core_type_size(struct upid);
}

/* Returns the number of the struct pid at this address in prof-bpf's pid namespace, and from bit
 * TASK_LEVEL on the level of that namespace. 0: it is not visible there. Global, for the reason
 * given in search.h. */
#define TASK_LEVEL 32
__attribute__((noinline)) __u64 task_pid_in_view(__u64 address)
{
	struct pid *pid = (struct pid *)address;
	const unsigned int level = BPF_CORE_READ(pid, level);

	for (unsigned int i = 0; i < TASK_PID_LEVELS && i <= level; i++) {
		struct upid *at = task_upid(pid, i);

		if (BPF_CORE_READ(at, ns, ns.inum) == viewer_pid_ns)
			return (__u64)i << TASK_LEVEL | (__u32)BPF_CORE_READ(at, nr);
	}
	return 0;
}

/* Return the pid of a task's process, and the task's own id, as prof-bpf sees them. */
static __always_inline __u32 task_process(struct task_struct *task)
{
	return viewer_pid_ns ? (__u32)task_pid_in_view(
				       (__u64)BPF_CORE_READ(task, group_leader, thread_pid))
			     : (__u32)BPF_CORE_READ(task, tgid);
}

static __always_inline __u32 task_thread(struct task_struct *task)
{
	return viewer_pid_ns ? (__u32)task_pid_in_view((__u64)BPF_CORE_READ(task, thread_pid))
			     : (__u32)BPF_CORE_READ(task, pid);
}

#endif
