/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests the walker after single instructions: `step [OPTION]... PROGRAM ARGUMENT...` runs a program
 * by single steps and compares the stacks that the walker finds with a shadow of them (shadow.h).
 *
 *   -k EVERY    instructions between two comparisons (1)
 *   -m MAX      instructions, after which the program is killed (all)
 *   -t SECONDS  likewise
 *   -f SECONDS  first lets the program run freely this long, then steps the thread that ran most.
 *               The frames below that thread's are unknown until it returns to them.
 *   -c THREAD   steps the THREAD-th thread that the program makes, from its first instruction
 *   -r          finds runtimes, and lets them take over frames of their code
 *   -q          does not show the stacks that are not equal
 *
 * Other threads run freely, and so do children. An exec is followed.
 *
 * Prints `steps N checked N equal N cut N jumps N unknown N guessed N wrong N false N`, a line of
 * shares, and a line for each reason of a cut. Before that it shows the first of the stacks that
 * are not equal, one for each pc:
 *
 *   cut      the beginning of the shadow, with a reason for its end
 *   jumps    longjmp or the like, which is about to jump: has the target's stack already
 *   unknown  equal as far as the shadow is known, which is not up to a root
 *   disputed of the unknown: the rest is a claim that no stack had made before
 *   guessed  not equal, but a frame is marked as found by frame pointer for lack of rows
 *   wrong    not equal
 *   false    of the guessed and the wrong: those that were called complete
 *
 * The exit status is 1 if a stack is wrong or false.
 */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "bpf/unwind.h"
#include "common/wire/msg.h"
#include "common/wire/reason.h"
#include "tests/memory_tables.h"
#include "tests/walker/process.h"
#include "tests/walker/shadow.h"
#include "tools/prof-dump/names/runtimes.h"

#define MAX_SHOWN 400
#define PAGE 4096u
#define PAGES 4096u
#define RED_ZONE 128
#define WRITABLE 256
#define RELOAD_EVERY 64 /* comparisons between two checks for mappings that another thread made */

enum instruction {
	OTHER,
	CALL,
	RETURN,
	JUMP,
	SYSCALL,
	POP_TO_RBP, /* and a byte */
	LOAD_RBP,   /* from memory that is not addressed by RSP or RBP */
};

static struct {
	uint64_t page;
	uint8_t bytes[PAGE];
} code[PAGES];

static struct tables *tables;
static struct space space;
static struct shadow shadow;
static struct user_regs_struct regs;
static pid_t process, thread; /* the stepped thread */
static uint64_t checked, complete, equal, cut, unknown, guessed, wrong, false_complete, jumps;
static uint64_t loaded_at, reasons[WALK_REASONS];
/* The last pushed word and the last popped word, and their places. */
static struct {
	uint64_t word, slot;
} pushed, popped;
static uint64_t aligned; /* where RSP was when it was aligned last */
/* Memory that is writable and executable. */
static struct {
	uint64_t start, end;
} writable[WRITABLE];
static size_t writable_count;
static uint64_t shown[MAX_SHOWN];
static size_t shown_count;
static bool quiet;
static volatile sig_atomic_t late;

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

/* The effect on RSP of an instruction other than a call, return or jump. */
static enum shadow_move look_move(uint64_t pc)
{
	uint8_t b = code_byte(pc), modrm = code_byte(pc + 1);
	uint8_t rm = modrm & 7, sib = code_byte(pc + 2);

	if ((b & 0xfe) == 0xc8 || (b == 0x89 && modrm == 0xec) || (b == 0x8b && modrm == 0xe5))
		return SHADOW_FRAME; /* enter, leave, mov rsp, rbp */
	if (b == 0x8b && modrm >= 0x40 && modrm < 0xc0 && rm == 5)
		return SHADOW_FRAME; /* mov rsp, [rbp+N], where it was saved */
	if (b == 0x5c || (b == 0x8b && modrm < 0xc0) || (b == 0x87 && modrm < 0xc0))
		return SHADOW_MEMORY;
	if (b == 0x8b || b == 0x89 || b == 0x87 || (b & 0xf8) == 0x90)
		return SHADOW_REGISTER;
	if (b == 0x8d && rm == 5)
		return SHADOW_FRAME;
	if (b == 0x8d && (rm != 4 || (sib & 7) != 4))
		return rm == 4 && (sib & 7) == 5 ? SHADOW_FRAME : SHADOW_REGISTER;
	return SHADOW_ADJUST;
}

/* Intel's manual, volume 2, chapter 2: prefixes, then the opcode. */
static enum instruction look(uint64_t pc, enum shadow_move *ret_move)
{
	uint8_t b = code_byte(pc), rex = 0;

	while (b == 0x66 || b == 0x67 || b == 0xf2 || b == 0xf3 || b == 0x2e || b == 0x36 ||
	       b == 0x3e || b == 0x26 || b == 0x64 || b == 0x65)
		b = code_byte(++pc);
	if ((b & 0xf0) == 0x40) {
		rex = b;
		b = code_byte(++pc);
	}
	uint8_t reg = code_byte(pc + 1) >> 3 & 7;

	*ret_move = look_move(pc);
	/* r13 in place of RBP, r12 as an index: not a frame. */
	if (rex & 1 && *ret_move == SHADOW_FRAME && b != 0xc9)
		*ret_move = SHADOW_REGISTER;
	if (rex & 1 && b == 0x5c)
		*ret_move = SHADOW_ADJUST; /* pop r12 */
	if (b == 0xe8 || (b == 0xff && reg == 2))
		return CALL;
	if (b == 0xff && reg == 4)
		return JUMP;
	if (b == 0xc3 || b == 0xc2)
		return RETURN;
	if (b == 0x8f && code_byte(pc + 1) == 0x45 && !rex)
		return POP_TO_RBP;
	if (b == 0x8b && (rex & 0xc) == 8 && reg == 5 && code_byte(pc + 1) < 0xc0 &&
	    (code_byte(pc + 1) & 6) != 4)
		return LOAD_RBP;
	return b == 0x0f && code_byte(pc + 1) == 0x05 ? SYSCALL : OTHER;
}

/* --- comparison --- */

static uint64_t word_at(uint64_t address)
{
	uint64_t word = 0;

	(void)process_read(NULL, &word, sizeof(word), address);
	return word;
}

/* A part of SBCL's code is in a file: it is recognized as memory that is writable and
 * executable. */
static void find_writable(void)
{
	unsigned long start, end;
	char path[64], line[PATH_MAX + 128], mode[8];

	snprintf(path, sizeof(path), "/proc/%d/maps", process);
	FILE *f = fopen(path, "re");

	writable_count = 0;
	while (f && writable_count < WRITABLE && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %7s", &start, &end, mode) != 3 ||
		    strncmp(mode, "rwx", 3) != 0)
			continue;
		writable[writable_count].start = start;
		writable[writable_count++].end = end;
	}
	if (f)
		fclose(f);
}

static bool is_writable(uint64_t pc)
{
	for (size_t i = 0; i < writable_count; i++)
		if (pc >= writable[i].start && pc < writable[i].end)
			return true;
	return false;
}

static void load(void)
{
	forget_code();
	process_load(&space);
	find_writable();
	loaded_at = checked;
}

/* A frame was found by frame pointer, and is marked as such. */
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
	size_t known = 0;

	for (size_t i = 0; i < shown_count; i++)
		if (shown[i] == key)
			return;
	if (quiet || shown_count == MAX_SHOWN)
		return;
	shown[shown_count++] = key;
	printf("%s (%s) after %lu:\n  walker", what, reason_walk_word(s->reason), checked);
	for (size_t i = 0; i < s->count && i < 8; i++)
		show_pc(s->frames[i].pc);
	printf(s->count > 8 ? " … %u\n  shadow" : "\n  shadow", s->count);
	show_pc(regs.rip);
	for (const struct shadow_call *c; (c = shadow_at(&shadow, known)); known++) {
		if (known >= 8)
			continue;
		show_pc(c->address);
		if (c->slot < regs.rsp)
			printf("(below)");
	}
	printf(known > 8 ? " … %zu\n" : "\n", known + 1);
}

static void walk(const uint64_t numbered[16], struct stack *ret)
{
	struct message_thread t = { .pc = regs.rip, .tls = regs.fs_base };

	memcpy(t.regs, numbered, sizeof(t.regs));
	if (stack_walk(&space, &t, ret))
		errx(1, "no memory");
}

static void check(void)
{
	const uint64_t numbered[16] = { regs.rax, regs.rdx, regs.rcx, regs.rbx, regs.rsi, regs.rdi,
					regs.rbp, regs.rsp, regs.r8,  regs.r9,	regs.r10, regs.r11,
					regs.r12, regs.r13, regs.r14, regs.r15 };
	struct stack s;

	walk(numbered, &s);
	if ((s.reason == WALK_NO_MAPPING || !space_at(&space, regs.rip)) &&
	    checked >= loaded_at + RELOAD_EVERY) {
		stack_done(&s);
		load();
		walk(numbered, &s);
	}
	checked++;
	complete += s.reason == WALK_COMPLETE;
	switch (shadow_compare(&shadow, &s, regs.rip, regs.rsp, numbered)) {
	case SHADOW_EQUAL:
		equal++;
		break;
	case SHADOW_CUT:
		cut++;
		reasons[s.reason]++;
		show(&s, "cut");
		break;
	case SHADOW_JUMP:
		jumps++;
		break;
	case SHADOW_UNKNOWN:
		unknown++;
		break;
	case SHADOW_DISPUTED:
		unknown++;
		show(&s, "disputed");
		break;
	case SHADOW_WRONG:
		*(is_guess(&s) ? &guessed : &wrong) += 1;
		false_complete += s.reason == WALK_COMPLETE;
		show(&s, s.reason == WALK_COMPLETE ? "false" : is_guess(&s) ? "guessed" : "wrong");
		break;
	}
	stack_done(&s);
}

/* --- the program --- */

static bool is_generated(uint64_t pc)
{
	const struct space_mapping *m = space_at(&space, pc);

	return m && m->file == SPACE_NO_FILE;
}

/* Generated code calls by a push of the return address and a jump, and returns by a pop and a jump
 * (HotSpot's interpreter). */
static void note_word(const struct user_regs_struct *before)
{
	if (before->rsp - regs.rsp == 8) {
		pushed.slot = regs.rsp;
		pushed.word = word_at(regs.rsp);
	} else if (regs.rsp - before->rsp == 8) {
		popped.slot = before->rsp;
		popped.word = word_at(before->rsp);
	}
}

static void jumped(const struct user_regs_struct *before)
{
	bool generated = is_generated(before->rip);

	if (generated && popped.word == regs.rip && popped.slot <= regs.rsp)
		shadow_return(&shadow, regs.rip, popped.slot);
	shadow_jump(&shadow, before->rsp);
	if (generated && pushed.slot == regs.rsp && pushed.word == word_at(regs.rsp) &&
	    is_generated(pushed.word)) {
		const struct shadow_call *c = shadow_at(&shadow, 0);

		if (c && c->slot == aligned && c->address == pushed.word)
			shadow_relocate(&shadow, c->slot, regs.rsp);
		else if (!c || c->slot != regs.rsp)
			shadow_call(&shadow, pushed.word, pushed.slot);
	}
	pushed.slot = popped.word = aligned = 0;
}

/* By a pop into memory, but not into memory that RSP has passed. */
static void popped_to(uint64_t slot, uint64_t to)
{
	if (to > slot)
		shadow_relocate(&shadow, slot, to);
}

static bool aligns(uint64_t pc)
{
	return code_byte(pc) == 0x48 && (code_byte(pc + 1) & ~2) == 0x81 &&
	       code_byte(pc + 2) == 0xe4; /* and rsp, mask */
}

static bool changes_mappings(uint64_t number)
{
	return number == 9 || number == 10 || number == 11 || number == 25; /* mmap, mprotect,
								  munmap, mremap */
}

static void registers(void)
{
	if (ptrace(PTRACE_GETREGS, thread, NULL, &regs) < 0)
		err(1, "registers");
}

/* Continues from a stop, with its signal. A SIGTRAP that is no event is the program's own: SBCL
 * collects garbage in the handler of one. */
static void let_go(pid_t p, int status)
{
	ptrace(PTRACE_CONT, p, NULL, (long)(status >> 16 ? 0 : WSTOPSIG(status)));
}

/* Whether a SIGTRAP after a step is the program's own, of an int3. */
static bool is_breakpoint(const struct user_regs_struct *before)
{
	return code_byte(before->rip) == 0xcc && regs.rip == before->rip + 1;
}

/* Waits for the thread's next stop; others continue. False: it has ended, or time is up. */
static bool wait_stop(int *ret_status)
{
	while (!late) {
		int status;
		pid_t p = waitpid(-1, &status, __WALL);

		if (p < 0 && errno == EINTR)
			continue;
		if (p < 0)
			return false;
		if (p == thread) {
			*ret_status = status;
			if (WIFSIGNALED(status))
				printf("ended by signal %d\n", WTERMSIG(status));
			return WIFSTOPPED(status);
		}
		if (WIFSTOPPED(status))
			let_go(p, status);
	}
	return false;
}

static bool is_event(int status, int event)
{
	return status >> 16 == event;
}

static void after_exec(void)
{
	space_done(&space);
	process_open(&space, tables, process);
	load();
	registers();
	shadow_begin(&shadow, regs.rsp, true);
}

/* One step; `signal` is delivered first. False if the program has ended. */
static bool step(int *signal)
{
	struct user_regs_struct before = regs;
	enum shadow_move move;
	enum instruction i = look(regs.rip, &move);
	int status, delivered = *signal;

	*signal = 0;
	if (ptrace(PTRACE_SINGLESTEP, thread, NULL, (long)delivered) < 0)
		return false;
	while (wait_stop(&status)) {
		if (is_event(status, PTRACE_EVENT_EXEC)) {
			after_exec();
			return true;
		}
		if (!(status >> 16))
			break;
		if (ptrace(PTRACE_SINGLESTEP, thread, NULL, 0) < 0)
			return false;
	}
	if (late || !WIFSTOPPED(status))
		return false;
	registers();
	if (WSTOPSIG(status) != SIGTRAP || is_breakpoint(&before))
		*signal = WSTOPSIG(status);
	if (delivered && regs.rip != before.rip &&
	    (regs.rsp < before.rsp - RED_ZONE || regs.rsp > before.rsp + RED_ZONE)) {
		/* The kernel set up a signal frame, and no instruction ran. */
		shadow_signal(&shadow, before.rip, before.rsp, regs.rsp, word_at(regs.rsp));
		return true;
	}
	if (*signal && regs.rip == before.rip && regs.rsp == before.rsp)
		return true; /* it came before the instruction */
	if (aligns(before.rip))
		aligned = before.rsp;
	if (i == CALL) {
		shadow_call(&shadow, word_at(regs.rsp), regs.rsp);
	} else if (i == RETURN) {
		shadow_return(&shadow, regs.rip, before.rsp);
	} else if (i == JUMP) {
		jumped(&before);
	} else if (i == SYSCALL && before.rax == 15 /* rt_sigreturn */) {
		shadow_sigreturn(&shadow, regs.rip, regs.rsp);
	} else if (i == SYSCALL && changes_mappings(before.rax)) {
		load();
	} else if (i == LOAD_RBP) {
		/* From a record of the place where it continues (SBCL, to a handler). */
		if (is_writable(before.rip) && shadow_is_frame(&shadow, regs.rbp))
			shadow_unwound(&shadow, regs.rbp);
	} else if (regs.rsp != before.rsp) {
		/* Such a return may also remove arguments, just as a pop does. */
		if (move == SHADOW_ADJUST)
			note_word(&before);
		/* Within generated code only calls leave a stack. */
		if (move == SHADOW_REGISTER &&
		    (is_generated(before.rip) || is_writable(before.rip)))
			move = SHADOW_FRAME;
		if (i == POP_TO_RBP)
			popped_to(before.rsp,
				  before.rbp + (uint64_t)(int8_t)code_byte(before.rip + 2));
		shadow_moved(&shadow, move, before.rsp, regs.rsp);
	}
	return true;
}

static void on_alarm(int signal)
{
	late = 1;
	alarm(1); /* it may have come before a wait */
}

static pid_t start(char **argv)
{
	int go[2], status;
	char c = 0;

	if (pipe(go))
		err(1, "pipe");
	pid_t pid = fork();

	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &c, 1) == 1) {
			close(go[0]);
			execvp(argv[0], argv);
		}
		err(127, "%s", argv[0]);
	}
	if (pid < 0 ||
	    ptrace(PTRACE_SEIZE, pid, NULL,
		   (long)(PTRACE_O_EXITKILL | PTRACE_O_TRACEEXEC | PTRACE_O_TRACECLONE)) < 0 ||
	    write(go[1], &c, 1) != 1)
		err(1, "%s cannot be traced", argv[0]);
	close(go[0]);
	close(go[1]);
	if (waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status) ||
	    !is_event(status, PTRACE_EVENT_EXEC))
		errx(1, "%s does not begin", argv[0]);
	return pid;
}

/* Lets all threads run until the n-th new one is at its first instruction; that one is stepped. */
static void choose_new(long n)
{
	int status;

	ptrace(PTRACE_CONT, thread, NULL, 0);
	for (;;) {
		pid_t p = waitpid(-1, &status, __WALL);

		if (p < 0 || (p == process && !WIFSTOPPED(status)))
			errx(1, "the program has too few threads");
		if (!WIFSTOPPED(status))
			continue;
		if (p != process && is_event(status, PTRACE_EVENT_STOP) && --n == 0) {
			thread = p;
			return;
		}
		let_go(p, status);
	}
}

/* ns on a cpu. */
static uint64_t cpu_time(const char *tid)
{
	unsigned long long ns = 0;
	char path[300];

	snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", process, tid);
	FILE *f = fopen(path, "re");

	if (f && fscanf(f, "%llu", &ns) != 1)
		ns = 0;
	if (f)
		fclose(f);
	return ns;
}

static double seconds_of(clockid_t clock)
{
	struct timespec now = { 0 };

	clock_gettime(clock, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Lets all threads run for this long; the one that ran most is stepped. On a busy machine they run
 * up to four times as long, until they have had the cpu for most of the time, because the stacks of
 * a program depend on that. */
static void choose_busy(double seconds)
{
	const double start = seconds_of(CLOCK_MONOTONIC);
	clockid_t cpu = CLOCK_MONOTONIC;
	uint64_t most = 0;
	char path[64];
	int stop;

	(void)clock_getcpuclockid(process, &cpu);
	ptrace(PTRACE_CONT, thread, NULL, 0);
	thread = 0; /* of none: all continue */
	for (;;) {
		pid_t p = waitpid(-1, &stop, __WALL | WNOHANG);

		if (p > 0 && WIFSTOPPED(stop)) {
			let_go(p, stop);
			continue;
		}
		if (p == process || p < 0)
			errx(1, "the program is over after less than %g seconds", seconds);
		const double ran = seconds_of(CLOCK_MONOTONIC) - start;
		if (ran > 4 * seconds || (ran > seconds && seconds_of(cpu) > 0.8 * seconds))
			break;
		usleep(1000);
	}
	snprintf(path, sizeof(path), "/proc/%d/task", process);
	DIR *d = opendir(path);

	for (struct dirent *e; d && (e = readdir(d));) {
		uint64_t ns = e->d_name[0] == '.' ? 0 : cpu_time(e->d_name);

		if (ns > most) {
			most = ns;
			thread = atoi(e->d_name);
		}
	}
	if (d)
		closedir(d);
	if (!thread || ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) < 0)
		errx(1, "no thread to be stepped");
	while (wait_stop(&stop)) {
		if (is_event(stop, PTRACE_EVENT_STOP))
			return;
		let_go(thread, stop);
	}
	errx(1, "the program is over");
}

static double share(uint64_t n)
{
	return checked ? 100.0 * (double)n / (double)checked : 0;
}

static void print(uint64_t steps)
{
	/* Whether one of those frames was a guess is no longer known. */
	shadow_end(&shadow);
	unknown -= shadow.disproved;
	wrong += shadow.disproved;
	false_complete += shadow.disproved_complete;
	printf("steps %lu checked %lu equal %lu cut %lu jumps %lu unknown %lu guessed %lu "
	       "wrong %lu false %lu\n",
	       steps, checked, equal, cut, jumps, unknown, guessed, wrong, false_complete);
	printf("%.2f %% complete, %.4f %% wrong, %.4f %% wrong but called complete, "
	       "%.2f %% unknown\n",
	       share(complete), share(guessed + wrong), share(false_complete), share(unknown));
	for (size_t i = 0; i < WALK_REASONS; i++)
		if (reasons[i])
			printf("%s %lu\n", reason_walk_word(i), reasons[i]);
}

int main(int argc, char **argv)
{
	const struct tables_config c = memory_tables((size_t)TABLES_MAX_SLABS * TABLES_SLAB_BYTES);
	uint64_t every = 1, max = UINT64_MAX, steps = 0;
	unsigned seconds = 0;
	double freely = 0;
	long new_thread = 0;
	int option, signal = 0;

	while ((option = getopt(argc, argv, "+k:m:t:f:c:qr")) != -1) {
		if (option == 'k' && atol(optarg) > 0)
			every = strtoull(optarg, NULL, 10);
		else if (option == 'r')
			process_find_runtimes(runtimes_describe);
		else if (option == 'm')
			max = strtoull(optarg, NULL, 10);
		else if (option == 't')
			seconds = (unsigned)atoi(optarg);
		else if (option == 'f')
			freely = atof(optarg);
		else if (option == 'c')
			new_thread = atol(optarg);
		else if (option == 'q')
			quiet = true;
		else
			errx(2, "usage: step [-k EVERY] [-m MAX] [-t SECONDS] "
				"[-f SECONDS | -c THREAD] [-q] PROGRAM ARGUMENT...");
	}
	if (optind == argc)
		errx(2, "no program");
	process = thread = start(argv + optind);
	if (tables_new(&c, &tables))
		errx(1, "no memory");
	const struct sigaction act = { .sa_handler = on_alarm };

	sigaction(SIGALRM, &act, NULL);
	if (new_thread)
		choose_new(new_thread);
	else if (freely > 0)
		choose_busy(freely);
	process_open(&space, tables, process);
	load();
	registers();
	shadow_begin(&shadow, regs.rsp, !(freely > 0) || new_thread);
	alarm(seconds);
	do {
		if (steps++ % every == 0)
			check();
	} while (steps < max && !late && step(&signal));
	kill(process, SIGKILL);
	print(steps);
	shadow_done(&shadow);
	space_done(&space);
	tables_free(tables);
	return wrong || false_complete;
}
