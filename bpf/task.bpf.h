/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The kernel's structs of a task: only the fields that are used (CO-RE). */
#ifndef BPF_TASK_BPF_H
#define BPF_TASK_BPF_H

#include <linux/types.h>
#include <bpf/bpf_core_read.h>

struct mm_struct {
	unsigned long start_stack, flags;
} __attribute__((preserve_access_index));
/* From 6.18 on. */
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
	int level; /* 0: the host's */
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
	struct pid_namespace *ns;
} __attribute__((preserve_access_index));
struct pid {
	unsigned int level;
	struct upid numbers[1]; /* one for each level, from 0 on */
} __attribute__((preserve_access_index));
struct task_struct {
	unsigned int flags;
	int pid, tgid;
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

/* The name of the field before 5.5, kernel commit cf25e24db61c. */
struct task_struct___before_5_5 {
	__u64 real_start_time;
} __attribute__((preserve_access_index));

/* Newer kernels, such as 7.3, keep here what was in mm_struct.flags. */
struct task_struct___exec_state {
	void *exec_state;
} __attribute__((preserve_access_index));

#endif
