/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/*
 * The sampling program. On each tick of a cpu's perf event it puts one sample into the ring buffer.
 * A sample has the kernel's part of the stack, and the user's part by the walker. Two hooks, for
 * fork and exec, keep the table of processes right until user space learns of the event.
 *
 * Only on_tick reads its context. The programs that follow it take everything from the cpu's
 * scratch memory, and use their context only to call the next one. So they can also follow a
 * program for another kind of event, if they are loaded as its type, with a table `programs` of
 * that type.
 */
#include "bpf/programs/shared.bpf.h"
#include <bpf/bpf_tracing.h>
#include "bpf/programs/defer.bpf.h"
#include "bpf/programs/target.bpf.h"
#include "bpf/programs/task.bpf.h"

/* The kernel has no name for Apache-2.0 with GPL-2.0. As loaded, the program is under GPL-2.0. */
char LICENSE[] SEC("license") = "GPL";

const volatile bool only_selected; /* sample only selected processes */
/* The offset of `dumpable` in the target of exec_state; 0: there is none. Not by CO-RE: libbpf
 * would search the kernel's modules for a type that the kernel lacks, which takes CAP_SYS_ADMIN. */
const volatile __u32 exec_state_dumpable;
const volatile bool follow_forks;	  /* children of selected processes are also selected */
const volatile bool have_task_pt_regs;	  /* bpf_task_pt_regs, 5.15 */
const volatile __u32 thread_size = 16384; /* THREAD_SIZE of x86-64 without KASAN */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, TABLES_MAX_PROCESSES);
	__type(key, __u32);
	__type(value, struct process_entry);
} processes SEC(".maps");

/* The last exec of each pid, at index pid modulo TABLES_EXECS. prof-bpf notices when one pid
 * replaces another: when it reads the sample (struct sample: generation), or when it looks up the
 * exec of a record. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TABLES_EXECS);
	__type(key, __u32);
	__type(value, struct exec_entry);
} execs SEC(".maps");

#define SYS_CLONE 56
#define SYS_EXECVE 59
#define SYS_EXECVEAT 322
#define SYS_CLONE3 435

static __always_inline __u64 env_tls(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	return BPF_CORE_READ(task, thread.fsbase);
}

/* Active functions with uretprobes in one thread; this is the kernel's own limit. */
#define RETURNS_MAX 64
#define XOL_SLOT 128	    /* bytes for the copy of an instruction */
#define TRAMPOLINE_STACK 64 /* bytes that the trampoline itself may have pushed */

/* Returns the pc without the probe. From bit PROBED_SHIFT on the result has how far above sp the
 * stack pointer is without it. 0: there is no probe. Global, for the reason given in search.h. */
#define PROBED_SHIFT 56
__attribute__((noinline)) __u64 probed(__u64 pc, __u64 sp, __u32 leaf)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (!bpf_core_field_exists(task->utask))
		return 0;
	struct uprobe_task *utask = BPF_CORE_READ(task, utask);
	if (!utask)
		return 0;
	__u64 copy = BPF_CORE_READ(utask, xol_vaddr);
	/* The result is one byte too high, like a return address. The same row covers it, unless it
	 * is a function's first instruction. */
	if (leaf && copy && pc - copy < XOL_SLOT && BPF_CORE_READ(utask, active_uprobe))
		return BPF_CORE_READ(utask, vaddr) + (pc - copy) + 1;
	struct return_instance *r = BPF_CORE_READ(utask, return_instances);
	for (int i = 0; i < RETURNS_MAX && r; i++) {
		/* The probe's return address was popped, and the trampoline has pushed
		 * something. */
		__u64 above = BPF_CORE_READ(r, stack) - (sp - 8);

		if (above < (leaf ? TRAMPOLINE_STACK + 8 : 1))
			return above << PROBED_SHIFT |
			       (BPF_CORE_READ(r, orig_ret_vaddr) & ((1ull << PROBED_SHIFT) - 1));
		r = BPF_CORE_READ(r, next);
	}
	return 0;
}

static __always_inline bool env_probed(__u64 *pc, __u64 *sp, bool leaf)
{
	__u64 is = probed(*pc, *sp, leaf);

	if (!is)
		return false;
	*pc = is & ((1ull << PROBED_SHIFT) - 1);
	*sp += is >> PROBED_SHIFT;
	return true;
}

/* Reads the user registers of a task that was interrupted in the kernel: they are at the top of its
 * kernel stack. */
static __always_inline bool kernel_mode_regs(struct task_struct *task, struct pt_regs *ret)
{
	const void *at;

	if (have_task_pt_regs)
		at = (const void *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
	else
		at = BPF_CORE_READ(task, stack) + thread_size - sizeof(*ret);
	return bpf_probe_read_kernel(ret, sizeof(*ret), at) == 0;
}

/* Bits of task_struct.flags for kernel threads that may have a user's memory: PF_IO_WORKER (since
 * 5.7), and on newer kernels (6.4) also PF_USER_WORKER of vhost. The bit of PF_USER_WORKER had
 * another meaning before. */
#define PF_IO_WORKER 0x10
#define PF_USER_WORKER 0x4000
#define PF_KTHREAD 0x200000

/* Whether the task is a kernel worker for a process and never ran user code. Its user registers are
 * then zero (arch/x86/kernel/process.c: copy_thread). */
static __always_inline bool is_worker(struct task_struct *task, const struct pt_regs *r)
{
	unsigned int flags = BPF_CORE_READ(task, flags);

	return flags & (PF_IO_WORKER | PF_KTHREAD) ||
	       (flags & PF_USER_WORKER && !r->rip && !r->rsp);
}

/* Whether the pc is after a system call instruction, like a return address. While a signal is being
 * delivered it is not: then it is the handler's first byte. */
static __always_inline bool behind_syscall(const struct pt_regs *r)
{
	__u16 insn;

	if ((__s64)r->orig_rax < 0)
		return false;
	return bpf_probe_read_user(&insn, sizeof(insn), (void *)(r->rip - 2)) != 0 ||
	       insn == 0x050f;
}

static __always_inline void take_regs(struct walk *w, const struct pt_regs *r)
{
	w->pc = r->rip;
	w->sp = r->rsp;
	w->fp = r->rbp;
	w->regs[0] = r->rax;
	w->regs[1] = r->rdx;
	w->regs[2] = r->rcx;
	w->regs[3] = r->rbx;
	w->regs[4] = r->rsi;
	w->regs[5] = r->rdi;
	w->regs[6] = r->rbp;
	w->regs[7] = r->rsp;
	w->regs[8] = r->r8;
	w->regs[9] = r->r9;
	w->regs[10] = r->r10;
	w->regs[11] = r->r11;
	w->regs[12] = r->r12;
	w->regs[13] = r->r13;
	w->regs[14] = r->r14;
	w->regs[15] = r->r15;
}

/* Whether the entry belongs to a program that the process no longer runs. */
static __always_inline bool is_stale(const struct process_entry *p, __u32 pid)
{
	__u32 at = pid % TABLES_EXECS;
	const struct exec_entry *e = bpf_map_lookup_elem(&execs, &at);

	return e && e->pid == pid && e->ns >= p->heard_ns;
}

#define USER_NAMESPACES 32 /* limit of nested user namespaces */

/* Returns the container of the task: its outermost pid namespace below prof-bpf's, if the host's
 * root made it, or made the user namespace in which it was made; otherwise 0. */
static __always_inline __u32 container_of_task(struct task_struct *task)
{
	struct pid *pid = BPF_CORE_READ(task, thread_pid);
	const __u32 viewer = viewer_pid_ns ? task_pid_in_view((__u64)pid) >> TASK_LEVEL : 0;

	if (!pid || BPF_CORE_READ(pid, level) <= viewer)
		return 0;
	struct pid_namespace *ns = BPF_CORE_READ(task_upid(pid, viewer + 1), ns);
	struct user_namespace *user = BPF_CORE_READ(ns, user_ns);
	const int level = BPF_CORE_READ(user, level);

	if (level > 1 || (level == 1 && BPF_CORE_READ(user, owner.val)))
		return 0;
	return BPF_CORE_READ(ns, ns.inum);
}

/* Records who is charged for the sample. */
__attribute__((noinline)) int take_owner(void)
{
	struct walk *w = scratch();
	struct task_struct *task = (void *)bpf_get_current_task();
	struct user_namespace *user = BPF_CORE_READ(task, real_cred, user_ns);
	int level = BPF_CORE_READ(user, level);

	if (!w)
		return 0;
	for (int i = 0; i <= USER_NAMESPACES && level > 1; i++) {
		user = BPF_CORE_READ(user, parent);
		level = BPF_CORE_READ(user, level);
	}
	__u32 container = container_of_task(task),
	      maker = level ? BPF_CORE_READ(user, owner.val) : 0;

	/* A container that root made is one owner: its own root can take any user id. A process in
	 * a user namespace that root made, but in no container, is a service. It is charged to its
	 * user, whom root chose. */
	w->sample.owner_uid = maker || container ? maker : w->sample.uid;
	w->sample.owner_container = container;
	return 0;
}

/* Returns the number of the process's cgroup. Threads may be in cgroups of their own below it. */
static __always_inline __u64 cgroup_of_process(const struct task_struct *task, __u64 ids)
{
	const struct task_struct___in_cgroups *leader = NULL;

	if ((__u32)ids == ids >> 32 || !bpf_core_field_exists(leader->cgroups))
		return bpf_get_current_cgroup_id();
	leader = (void *)BPF_CORE_READ(task, group_leader);
	return BPF_CORE_READ(leader, cgroups, dfl_cgrp, kn, id);
}

/* Fills the sample except its user frames. Returns true if there are user frames to walk, and false
 * if the sample is complete. *ret is NULL if no sample is to be taken. */
static __always_inline bool begin(struct bpf_perf_event_data *ctx, struct walk **ret)
{
	__u64 now = bpf_ktime_get_ns(), ids = bpf_get_current_pid_tgid();
	struct task_struct *task = (void *)bpf_get_current_task();
	__u32 pid = viewer_pid_ns ? task_process(task) : ids >> 32;

	*ret = NULL;
	/* The cpu is idle, or the process is outside of prof-bpf's pid namespace. */
	if ((__u32)ids == 0 || pid == 0)
		return false;
	struct process_entry *p = bpf_map_lookup_elem(&processes, &pid);
	if (only_selected && (!p || !(p->flags & TABLES_PROCESS_SELECTED)))
		return false;
	if (target_checks && target_skips(pid)) {
		count(SHARED_COUNTER_SKIPPED, 1);
		return false;
	}
	struct walk *w = scratch();
	if (!w)
		return false;
	*ret = w;

	w->sample.time_ns = now;
	w->sample.start_ns = task_start(task);
	w->sample.value = ctx->sample_period;
	w->sample.pid = pid;
	w->sample.tid = viewer_pid_ns ? task_thread(task) : (__u32)ids;
	/* User space needs the parent only for a process that it does not know yet. */
	w->sample.parent_pid = p ? 0 : task_process(BPF_CORE_READ(task, real_parent));
	w->sample.cpu = bpf_get_smp_processor_id();
	w->sample.generation = 0;
	w->sample.uid = (__u32)bpf_get_current_uid_gid();
	w->sample.source = SAMPLE_SOURCE_EVENT;
	w->sample.host_pid = viewer_pid_ns ? ids >> 32 : 0;
	w->sample.cgroup = cgroup_of_process(task, ids);
	take_owner();
	w->sample.reason = WALK_COMPLETE;
	w->sample.flags = 0;
	w->sample.kernel_frames = 0;
	w->sample.user_frames = 0;
	w->sample.at_slot = 0;
	w->sample.items = 0;
	w->count = 0;
	w->reason = WALK_COMPLETE;
	w->at_slot = 0;
	bpf_get_current_comm(w->sample.comm, sizeof(w->sample.comm));

	struct pt_regs regs;
	__u8 exact = true;
	if (ctx->regs.cs & 3) {
		/* Copy field by field, which the compiler turns into the kernel's accessors: the
		 * context is not plain memory. */
		regs.rip = ctx->regs.rip;
		regs.rsp = ctx->regs.rsp;
		regs.rbp = ctx->regs.rbp;
		regs.rax = ctx->regs.rax;
		regs.rdx = ctx->regs.rdx;
		regs.rcx = ctx->regs.rcx;
		regs.rbx = ctx->regs.rbx;
		regs.rsi = ctx->regs.rsi;
		regs.rdi = ctx->regs.rdi;
		regs.r8 = ctx->regs.r8;
		regs.r9 = ctx->regs.r9;
		regs.r10 = ctx->regs.r10;
		regs.r11 = ctx->regs.r11;
		regs.r12 = ctx->regs.r12;
		regs.r13 = ctx->regs.r13;
		regs.r14 = ctx->regs.r14;
		regs.r15 = ctx->regs.r15;
		regs.cs = ctx->regs.cs;
	} else {
		__u64 stack_begin = bpf_ktime_get_ns();
		long n = bpf_get_stack(ctx, w->words, SAMPLE_MAX_KERNEL * sizeof(__u64), 0);

		count(SHARED_COUNTER_KERNEL_STACKS, 1);
		count(SHARED_COUNTER_KERNEL_STACKS_NS, bpf_ktime_get_ns() - stack_begin);

		w->sample.flags = SAMPLE_IN_KERNEL;
		if (n > 0)
			w->sample.kernel_frames = (n / sizeof(__u64)) & 0x7f;
		else
			w->sample.flags |= SAMPLE_KERNEL_MISSING;
		if (!BPF_CORE_READ(task, mm)) {
			w->sample.flags |= SAMPLE_KERNEL_THREAD;
			return false;
		}
		if (!kernel_mode_regs(task, &regs)) {
			w->reason = WALK_NO_REGISTERS;
			return false;
		}
		if (is_worker(task, &regs))
			return false;
		/* A task in exec or exit has no user registers any more. */
		if (!(regs.cs & 3)) {
			w->reason = WALK_NO_REGISTERS;
			return false;
		}
		exact = !behind_syscall(&regs);
		if (regs.orig_rax == SYS_EXECVE || regs.orig_rax == SYS_EXECVEAT)
			w->sample.flags |= SAMPLE_IN_EXEC;
	}
	if (regs.cs == 0x23) {
		w->reason = WALK_COMPAT;
		return false;
	}
	/* A thread that has not started yet has the pc of the thread that made it, but another
	 * stack. */
	if (w->sample.flags & SAMPLE_IN_KERNEL && ids >> 32 != (__u32)ids && regs.rax == 0 &&
	    (regs.orig_rax == SYS_CLONE || regs.orig_rax == SYS_CLONE3))
		exact = WALK_NOT_BEGUN;
	take_regs(w, &regs);
	w->leaf_pc = regs.rip;
	w->leaf_exact = exact;
	if (!p || p->start_ns != w->sample.start_ns || !p->generation || is_stale(p, pid)) {
		w->reason = WALK_NO_PROCESS;
		return false;
	}
	w->sample.generation = p->generation;
	walk_begin(w, p, exact);
	return true;
}

#define DUMPABLE 1 /* SUID_DUMP_USER, in the lowest two bits of mm_struct.flags */

/* Returns the address space if it may be read, otherwise 0. The rule is that of ptrace. It excludes
 * set-id programs that changed their rights, and processes that changed identity or asked not to be
 * read. */
static __always_inline __u64 readable_memory(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	struct task_struct___exec_state *e = (void *)task;
	unsigned long flags = 0;

	if (exec_state_dumpable && bpf_core_field_exists(e->exec_state)) {
		__u32 dumpable = 0;

		bpf_probe_read_kernel(&dumpable, sizeof(dumpable),
				      BPF_CORE_READ(e, exec_state) + exec_state_dumpable);
		flags = dumpable;
	} else if (bpf_core_field_exists(mm->flags)) {
		flags = BPF_CORE_READ(mm, flags);
	} else if (bpf_core_field_exists(((struct mm_struct___bitmap *)mm)->flags.__mm_flags)) {
		flags = BPF_CORE_READ((struct mm_struct___bitmap *)mm, flags.__mm_flags[0]);
	}
	return (flags & 3) == DUMPABLE ? (__u64)mm : 0;
}

#define STEPS_AT_ONCE 64

/*
 * The verifier checks a global function once, and not once per call. So a step costs it the same
 * for any depth of stack. The loop over steps needs neither bpf_loop nor tail calls, on any kernel
 * from 5.6 on. There are two levels of loops, since the verifier follows each turn of a loop.
 */
__attribute__((noinline)) int step(void)
{
	struct walk *w = scratch();

	return w ? walk_step(w) : 1;
}

__attribute__((noinline)) int steps(void)
{
	for (int i = 0; i < STEPS_AT_ONCE; i++) {
		int next = step();

		if (next)
			return next;
	}
	return WALK_GOES_ON;
}

/* Continues in the program of the runtime that takes over the frame; that program calls on_walk
 * again. If the program is missing, on_walk does not ask this runtime again. Returns if the walk is
 * over. */
static __always_inline void take_over(void *ctx, struct walk *w)
{
	const struct runtime_entry *e = runtime_entry(runtime_taker(w));

	if (w->takes >= WALK_TAKES || !e) {
		walk_stop(w, WALK_DEPTH);
		return;
	}
	w->takes++;
	w->slot = e->slot;
	bpf_tail_call(ctx, &programs, RUNTIME_MAX + e->runtime);
	w->refused |= 1u << (w->taker & 7);
	bpf_tail_call(ctx, &programs, RUNTIME_NONE);
	walk_stop(w, WALK_DEPTH);
}

/* Lets each runtime that takes over frames fetch what the deferred walk will need. Each calls
 * on_walk again, and this function returns after the last one. */
static __always_inline void fetch_next(void *ctx, struct walk *w)
{
	__u32 first = w->phase == WALK_FETCHES ? w->taker + 1 : 0;

	w->phase = WALK_FETCHES;
	for (__u32 k = 0; k < TABLES_PROCESS_RUNTIMES_MAX; k++) {
		if (k < first || k >= w->runtime_count || w->takes >= WALK_TAKES)
			continue;
		w->taker = k;
		const struct runtime_entry *e = runtime_entry(runtime_taker(w));

		if (!e)
			return;
		w->takes++;
		w->slot = e->slot;
		bpf_tail_call(ctx, &programs, RUNTIME_MAX + e->runtime);
		w->takes--;
	}
}

/* The second half of a sample with user frames. It follows the runtimes' programs and always runs
 * after on_tick. The first half left its state in the cpu's scratch memory, and so do programs that
 * take over frames. */
SEC("perf_event")
int on_walk(void *ctx)
{
	struct walk *w = scratch();

	if (!w)
		return 0;
	if (w->phase == WALK_BEGINS) {
		walk_place(w);
		w->phase = WALK_WALKS;
	}
	int next = w->phase != WALK_WALKS;

	for (int i = 0; i <= SAMPLE_MAX_USER / STEPS_AT_ONCE && !next; i++)
		next = steps();
	if (next == WALK_IS_TAKEN)
		take_over(ctx, w);
	if (can_defer(w) && w->runtime_count)
		fetch_next(ctx, w);
	finish();
	return 0;
}

SEC("perf_event")
int on_tick(struct bpf_perf_event_data *ctx)
{
	struct walk *w;

	count(SHARED_COUNTER_TICKS, 1);
	if (begin(ctx, &w)) {
		if (w->runtimes_left) {
			w->tls = env_tls();
			w->memory = readable_memory();
			if (!w->memory)
				w->sample.flags |= SAMPLE_UNDUMPABLE;
			runtime_next(ctx, w);
		}
		walk_next(ctx);
	} else if (w) {
		finish();
	}
	return 0;
}

/* A child has its parent's mappings until it execs, and it can be sampled before user space learns
 * of it. */
SEC("raw_tp/sched_process_fork")
int on_fork(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *parent = (void *)ctx->args[0], *child = (void *)ctx->args[1];

	if (BPF_CORE_READ(child, tgid) == BPF_CORE_READ(parent, tgid))
		return 0;
	__u32 parent_pid = task_process(parent), pid = task_process(child);
	if (!pid)
		return 0;
	target_forked(parent, parent_pid, child);
	/* An earlier process with this pid is gone, even if user space does not know that yet. */
	bpf_map_delete_elem(&processes, &pid);
	struct process_entry *p = bpf_map_lookup_elem(&processes, &parent_pid);
	if (!p)
		return 0;
	struct process_entry e = *p;
	if (is_stale(p, parent_pid))
		e.generation = 0;
	if (!follow_forks)
		e.flags &= ~TABLES_PROCESS_SELECTED;
	if (only_selected && !(e.flags & TABLES_PROCESS_SELECTED))
		return 0;
	e.start_ns = task_start(child);
	/* If the map is full, user space makes room when it publishes the child. */
	bpf_map_update_elem(&processes, &pid, &e, BPF_ANY);
	return 0;
}

/* After an exec the old mappings are invalid, even if user space publishes them once more before it
 * learns of the exec. A moment later it publishes the new ones. */
SEC("raw_tp/sched_process_exec")
int on_exec(struct bpf_raw_tracepoint_args *ctx)
{
	__u32 pid = task_process((void *)bpf_get_current_task()), at = pid % TABLES_EXECS;
	struct exec_entry *e = bpf_map_lookup_elem(&execs, &at);

	if (e && pid) {
		e->skipped = target_checks && target_skips(pid);
		e->pid = pid;
		e->ns = bpf_ktime_get_ns();
	}
	return 0;
}
