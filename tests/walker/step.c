/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The walker after every instruction: `step [-k EVERY] [-m MAX] PROGRAM ARGUMENT...` runs a program
 * by single steps and compares the stack that the walker finds with a shadow of it, which is kept
 * from nothing but the calls, returns and signals that were seen: no unwind rule has a part in it.
 *
 * EVERY: instructions between two comparisons (1); MAX: after which the program is killed (all).
 * Prints `steps N checked N equal N cut N jumps N guessed N wrong N`, a line for each reason of a
 * cut, and before that where the first of them, one a pc, were. A stack is cut when it is the
 * beginning of the shadow with a reason for its end; guessed when it is not, and a frame of it says
 * that it was found by frame pointer for want of rows; else wrong, and the exit status 1.
 *
 * What the shadow does not know: stacks that are switched without a call (Go, coroutines), and that
 * longjmp means to jump before it does (jumps). A call that stands below RSP is over, but for
 * vfork's, whose return address is in a register then: so either is right, with it and without.
 */
#include <err.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include "bpf/unwind.h"
#include "common/msg.h"
#include "tests/walker/process.h"

#define MAX_SHADOW (1u << 16)
#define MAX_SHOWN 400
#define PAGE 4096u
#define PAGES 4096u
#define RED_ZONE 128

enum instruction { OTHER, CALL, RETURN, JUMP, SYSCALL };

struct call {
	uint64_t address; /* where it returns to */
	uint64_t slot;	  /* where that stands on the stack */
	bool interrupted; /* by a signal: the pc itself */
};

static struct call shadow[MAX_SHADOW];
static size_t depth;
static struct {
	uint64_t page;
	uint8_t bytes[PAGE];
} code[PAGES];

static struct space space;
static struct user_regs_struct regs;
static uint64_t checked, equal, cut, guessed, wrong, jumps, reasons[WALK_REASONS];
static uint64_t shown[MAX_SHOWN];
static size_t shown_count;

/* --- instructions --- */

static void forget_code(void)
{
	for (size_t i = 0; i < PAGES; i++)
		code[i].page = 0;
}

static uint8_t code_byte(uint64_t at)
{
	uint64_t page = at & ~(uint64_t)(PAGE - 1);
	size_t i = (page / PAGE) % PAGES;

	if (code[i].page != page) {
		if (process_read(NULL, code[i].bytes, PAGE, page))
			return 0;
		code[i].page = page;
	}
	return code[i].bytes[at - page];
}

/* Intel's manual, volume 2, chapter 2: prefixes, then the opcode. */
static enum instruction look(uint64_t pc)
{
	uint8_t b = code_byte(pc);

	while (b == 0x66 || b == 0x67 || b == 0xf2 || b == 0xf3 || b == 0x2e || b == 0x36 ||
	       b == 0x3e || b == 0x26 || b == 0x64 || b == 0x65)
		b = code_byte(++pc);
	if ((b & 0xf0) == 0x40)
		b = code_byte(++pc);
	uint8_t reg = code_byte(pc + 1) >> 3 & 7;

	if (b == 0xe8 || (b == 0xff && reg == 2))
		return CALL;
	if (b == 0xff && reg == 4)
		return JUMP;
	if (b == 0xc3 || b == 0xc2)
		return RETURN;
	return b == 0x0f && code_byte(pc + 1) == 0x05 ? SYSCALL : OTHER;
}

/* --- the shadow --- */

static uint64_t word_at(uint64_t address)
{
	uint64_t word = 0;

	(void)process_read(NULL, &word, sizeof(word), address);
	return word;
}

static void push(uint64_t address, uint64_t slot, bool interrupted)
{
	if (depth == MAX_SHADOW)
		errx(1, "deeper than %u calls", MAX_SHADOW);
	shadow[depth++] = (struct call){ address, slot, interrupted };
}

/* Back to before the call that stands at `slot`; a return that no call belongs to is a jump. */
static void pop(uint64_t slot)
{
	for (size_t i = depth; i-- > 0;) {
		if (shadow[i].slot == slot) {
			depth = i;
			return;
		}
	}
}

/* A jump to elsewhere with RSP above where calls stand: they are never returned from (longjmp). */
static void pop_below(uint64_t sp)
{
	while (depth && shadow[depth - 1].slot < sp)
		depth--;
}

static void pop_signal(void)
{
	while (depth && !shadow[--depth].interrupted)
		;
}

/* --- comparison --- */

static bool same(const struct stack *s, bool below)
{
	size_t at = 1;

	if (!s->count || s->frames[0].pc != regs.rip)
		return false;
	for (size_t i = depth; i-- > 0;) {
		if (!below && shadow[i].slot < regs.rsp)
			continue;
		if (at == s->count)
			return s->reason != WALK_COMPLETE;
		if (s->frames[at++].pc != shadow[i].address)
			return false;
	}
	return at == s->count;
}

/* glibc's longjmp, about to jump, says that it is where it will jump to: a register holds that. */
static bool is_jump(const struct stack *s, const uint64_t *registers)
{
	bool held = false;

	for (unsigned i = 0; i < 16 && s->count > 1; i++)
		held |= registers[i] == s->frames[1].pc;
	if (!held || s->count - 2 > depth)
		return false;
	for (size_t i = 2; i < s->count; i++)
		if (s->frames[i].pc != shadow[s->count - 1 - i].address)
			return false;
	return true;
}

/* Some frame was found by frame pointer, and says so. */
static bool is_guess(const struct stack *s)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->frames[i].by_fp)
			return true;
	return false;
}

static void show_pc(uint64_t pc)
{
	const struct space_mapping *m = space_at(&space, pc);
	const char *path = m && m->file != SPACE_NO_FILE ? space.files[m->file].path : "anon";
	const char *slash = strrchr(path, '/');

	printf(" %#lx[%s+%#lx]", pc, slash ? slash + 1 : path, m ? pc - m->start + m->offset : pc);
}

static void show(const struct stack *s, const char *what)
{
	uint64_t key = regs.rip << 8 | (uint8_t)what[0];

	for (size_t i = 0; i < shown_count; i++)
		if (shown[i] == key)
			return;
	if (shown_count == MAX_SHOWN)
		return;
	shown[shown_count++] = key;
	printf("%s (%s) after %lu:\n  walker", what, walk_reason_word(s->reason), checked);
	for (size_t i = 0; i < s->count && i < 8; i++)
		show_pc(s->frames[i].pc);
	printf(s->count > 8 ? " … %u\n  shadow" : "\n  shadow", s->count);
	show_pc(regs.rip);
	for (size_t i = 0; i < depth && i < 8; i++) {
		const struct call *c = &shadow[depth - 1 - i];

		show_pc(c->address);
		if (c->slot < regs.rsp)
			printf("(below)");
	}
	printf(depth > 8 ? " … %zu\n" : "\n", depth + 1);
}

static void check(void)
{
	struct half_thread t = { .pc = regs.rip, .tls = regs.fs_base, .exact = 1 };
	const uint64_t numbered[16] = { regs.rax, regs.rdx, regs.rcx, regs.rbx, regs.rsi, regs.rdi,
					regs.rbp, regs.rsp, regs.r8,  regs.r9,	regs.r10, regs.r11,
					regs.r12, regs.r13, regs.r14, regs.r15 };
	struct stack s;

	memcpy(t.regs, numbered, sizeof(numbered));
	if (stack_walk(&space, &t, &s))
		errx(1, "no memory");
	checked++;
	bool holds = same(&s, true) || same(&s, false);

	if (!holds && is_jump(&s, numbered)) {
		jumps++;
	} else if (!holds) {
		*(is_guess(&s) ? &guessed : &wrong) += 1;
		show(&s, is_guess(&s) ? "guessed" : "wrong");
	} else if (s.reason == WALK_COMPLETE) {
		equal++;
	} else {
		cut++;
		reasons[s.reason]++;
		show(&s, "cut");
	}
	stack_done(&s);
}

/* --- the program --- */

static bool changes_mappings(uint64_t number)
{
	return number == 9 || number == 10 || number == 11 || number == 25; /* mmap, mprotect,
								  munmap, mremap */
}

/* One step; `signal` is delivered first. False when the program is over. */
static bool step(pid_t pid, int *signal)
{
	struct user_regs_struct before = regs;
	enum instruction i = look(regs.rip);
	int status, delivered = *signal;

	*signal = 0;
	if (ptrace(PTRACE_SINGLESTEP, pid, NULL, (long)delivered) < 0)
		err(1, "step");
	if (waitpid(pid, &status, __WALL) < 0)
		err(1, "wait");
	if (!WIFSTOPPED(status))
		return false;
	if (ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
		err(1, "registers");
	if (WSTOPSIG(status) != SIGTRAP)
		*signal = WSTOPSIG(status);
	if (delivered && regs.rsp < before.rsp - RED_ZONE) {
		/* The kernel laid a frame, and no instruction ran. */
		push(before.rip, regs.rsp + 8, true);
		push(word_at(regs.rsp), regs.rsp, false);
		return true;
	}
	if (*signal && regs.rip == before.rip && regs.rsp == before.rsp)
		return true; /* it came before the instruction */
	if (i == CALL)
		push(word_at(regs.rsp), regs.rsp, false);
	else if (i == RETURN)
		pop(before.rsp);
	else if (i == JUMP)
		pop_below(before.rsp);
	else if (i == SYSCALL && before.rax == 15 /* rt_sigreturn */)
		pop_signal();
	else if (i == SYSCALL && changes_mappings(before.rax)) {
		forget_code();
		process_load(&space);
	}
	return true;
}

int main(int argc, char **argv)
{
	const struct tables_config c = { .slabs_fd = -1,
					 .files_fd = -1,
					 .rules_fd = -1,
					 .processes_fd = -1,
					 .max_bytes = (size_t)SLAB_MAX * SLAB_BYTES };
	uint64_t every = 1, max = UINT64_MAX, steps = 0;
	struct tables *t;
	int option, status, signal = 0;

	while ((option = getopt(argc, argv, "+k:m:")) != -1) {
		if (option == 'k' && atol(optarg) > 0)
			every = strtoull(optarg, NULL, 10);
		else if (option == 'm')
			max = strtoull(optarg, NULL, 10);
		else
			errx(2, "usage: step [-k EVERY] [-m MAX] PROGRAM ARGUMENT...");
	}
	if (optind == argc)
		errx(2, "no program");
	pid_t pid = fork();

	if (pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		execvp(argv[optind], argv + optind);
		err(127, "%s", argv[optind]);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status) ||
	    ptrace(PTRACE_SETOPTIONS, pid, NULL, (long)PTRACE_O_EXITKILL) < 0 ||
	    ptrace(PTRACE_GETREGS, pid, NULL, &regs) < 0)
		errx(1, "%s cannot be traced", argv[optind]);
	if (tables_new(&c, &t))
		errx(1, "no memory");
	process_open(&space, t, pid);
	process_load(&space);
	do {
		if (steps++ % every == 0)
			check();
	} while (steps < max && step(pid, &signal));
	kill(pid, SIGKILL);
	printf("steps %lu checked %lu equal %lu cut %lu jumps %lu guessed %lu wrong %lu\n", steps,
	       checked, equal, cut, jumps, guessed, wrong);
	for (size_t i = 0; i < WALK_REASONS; i++)
		if (reasons[i])
			printf("%s %lu\n", walk_reason_word(i), reasons[i]);
	space_done(&space);
	tables_free(t);
	return wrong != 0;
}
