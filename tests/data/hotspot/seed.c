/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a seed for the fuzz target `codeheap` of a thread of a live JVM: the memory that a walk of
 * it reads. make.py makes others, which hold more memory than one walk needs.
 *
 *     SEED PID TID LAYOUT BASE > FILE
 *
 * LAYOUT: an index of the target's layouts. BASE: where libjvm.so is, its executable mapping's
 * start minus its offset. Build it like the target, with this file in place of it.
 */
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include "tests/fuzz/prof-dump/codeheap.c"

#define KNOWN 4096

static struct known {
	uint64_t addr;
	uint32_t size;
} known[KNOWN];
static unsigned known_count;

static long read_process(void *ctx, void *dst, uint32_t size, uint64_t addr)
{
	const struct iovec to = { .iov_base = dst, .iov_len = size },
			   from = { .iov_base = (void *)addr, .iov_len = size };
	const uint16_t n = (uint16_t)size;

	/* Most is read again for each frame. */
	for (unsigned i = 0; i < known_count; i++)
		if (known[i].addr == addr && known[i].size >= size)
			return process_vm_readv(*(const pid_t *)ctx, &to, 1, &from, 1, 0) == size
				       ? 0
				       : -1;
	if (process_vm_readv(*(const pid_t *)ctx, &to, 1, &from, 1, 0) != size)
		return -1;
	if (known_count < KNOWN)
		known[known_count++] = (struct known){ .addr = addr, .size = size };
	fwrite(&addr, sizeof(addr), 1, stdout);
	fwrite(&n, sizeof(n), 1, stdout);
	fwrite(dst, size, 1, stdout);
	return 0;
}

int main(int argc, char **argv)
{
	static struct walk w;
	static struct hotspot_walk p;
	struct user_regs_struct r;
	struct process_entry process;
	struct env env = { 0 };
	struct head h = { .exact = 1 };

	if (argc != 5)
		return 2;
	pid_t pid = atoi(argv[1]), tid = atoi(argv[2]);

	h.layout = (uint8_t)atoi(argv[3]);
	h.base = strtoull(argv[4], NULL, 16);
	if (h.layout >= OWN_LAYOUT || ptrace(PTRACE_ATTACH, tid, NULL, NULL) ||
	    waitpid(tid, NULL, __WALL) != tid || ptrace(PTRACE_GETREGS, tid, NULL, &r))
		return 1;
	const uint64_t by_number[] = { r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
				       r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip };

	memcpy(h.regs, by_number, sizeof(by_number));
	fwrite(&h, sizeof(h), 1, stdout);
	begin_tables(&(struct runtime_config){ .takes = RUNTIME_TAKES_GENERATED });
	const struct tables_mapping m[] = {
		{ .start = 0x1000, .end = 0x2000, .slot = slot },
		{ .start = 0x10000, .end = WALK_ADDRESS_END },
	};

	if (tables_walk_maps(tables, m, 2, &process))
		return 1;
	tables_env(tables, &env);
	env.read_user = read_process;
	env.ctx = &pid;
	env_current = &env;
	p.config = layouts[h.layout];
	p.base = h.base;
	memcpy(w.regs, h.regs, sizeof(w.regs));
	w.pc = h.regs[16];
	w.sp = h.regs[7];
	w.fp = h.regs[6];
	walk_begin(&w, &process, 1);
	walk_place(&w);
	walk(&w, &p);
	fprintf(stderr, "%u words, reason %u\n", w.count, w.reason);
	return 0;
}
