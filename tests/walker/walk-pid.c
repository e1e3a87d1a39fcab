/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker in user space, on a live process: `walk-pid PID` stops its threads, makes rows of the
 * files it maps, and prints each thread's stack by the text that BPF runs: `thread TID`, a line
 * `0xADDRESS` a frame, and `end REASON`. What gdb says of the same process is the test's oracle.
 */
#include <dirent.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include "bpf/walk.h"
#include "common/msg.h"
#include "tests/walker/process.h"

const struct env *env_current;

static void walk_thread(const struct process_entry *p, struct env *env, pid_t tid)
{
	static struct walk w;
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &r) < 0)
		err(1, "registers of %d", tid);
	walk_begin(&w, p, 0, (long)r.orig_rax < 0);
	const uint64_t regs[16] = { r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp,
				    r.r8,  r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15 };
	memcpy(w.regs, regs, sizeof(regs));
	w.pc = r.rip;
	w.sp = r.rsp;
	w.fp = r.rbp;
	env->tls = r.fs_base;
	printf("thread %d\n", tid);
	for (;;) {
		uint64_t pc = w.pc;
		uint32_t before = w.count;
		int stop = walk_step(&w);

		if (w.count > before)
			printf("%#lx%s\n", pc, w.frames[before] & SAMPLE_FRAME_FP ? " fp" : "");
		if (stop)
			break;
	}
	printf("end %s\n", walk_reason_word(w.reason));
}

int main(int argc, char **argv)
{
	const struct tables_config c = { .slabs_fd = -1,
					 .files_fd = -1,
					 .rules_fd = -1,
					 .processes_fd = -1,
					 .max_bytes = 256 * SLAB_BYTES };
	struct tables *t;
	struct process_entry p;
	struct env env = { .read_user = process_read };
	size_t n;
	pid_t pid;
	char path[64];

	if (argc != 2 || (pid = atoi(argv[1])) <= 0)
		errx(2, "usage: walk-pid PID");
	if (tables_new(&c, &t))
		errx(1, "no memory");
	const struct tables_mapping *m = process_load(t, pid, &n);
	if (tables_walk_maps(t, m, n, &p))
		errx(1, "mappings refused");
	tables_env(t, &env);
	env_current = &env;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	DIR *d = opendir(path);
	if (!d)
		err(1, "%s", path);
	for (struct dirent *e = readdir(d); e; e = readdir(d)) {
		pid_t tid = atoi(e->d_name);
		int status;

		if (tid <= 0 || ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0)
			continue;
		if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0 ||
		    waitpid(tid, &status, __WALL) < 0)
			err(1, "stopping %d", tid);
		walk_thread(&p, &env, tid);
		ptrace(PTRACE_DETACH, tid, NULL, NULL);
	}
	closedir(d);
	tables_free(t);
	return 0;
}
