/* SPDX-License-Identifier: Apache-2.0 */
/* The process that libdw runs in, with a libdw that does what a bug in it, or whoever took it over,
 * would do. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <criterion/criterion.h>
#include "common/base/clock.h"
#include "common/names/dwarf/dwarf.h"
#include "common/names/dwarf/dwarfinfo.h"
#include "common/names/dwarf/dwarfkeeper.h"
#include "common/names/dwarf/dwarfwire.h"
#include "common/names/dwarf/dwarfworker.h"

#define MAX (1u << 20)

/* What the other libdw does with an address. */
enum deed {
	NAME = 1,
	MANY, /* names as large as they can be */
	NOTHING,
	CRASH,
	LEAVE,
	LOOP,
	MEMORY,
	MEMORY_ABORT,	/* does not believe that there can be none */
	MEMORY_THROUGH, /* nor looks */
	SHOUT,
	CHATTER, /* writes into its socket what is no answer */
	NAP,	 /* half a second, and then as NAME */
	WANT,	 /* a file, and then as NAME; another one if there is none */
	WANT_NO_END,
	WANT_ODDLY, /* what is no want */
	FIRST_CALL = 100,
};

struct dwarfinfo {
	bool alt;
	bool offered; /* the file that it wanted */
	unsigned vain;
};

uint64_t dwarfinfo_size(const struct symfile *f)
{
	(void)f;
	return 1;
}

int dwarfinfo_open(const struct symfile *f, const struct symfile *alt, uint64_t max,
		   struct dwarfinfo **ret)
{
	(void)f;
	if (max != MAX)
		return SYMFILE_TOO_LARGE;
	*ret = calloc(1, sizeof(**ret));
	(*ret)->alt = alt != NULL;
	return 0;
}

void dwarfinfo_free(struct dwarfinfo *d)
{
	free(d);
}

void dwarfinfo_offer(struct dwarfinfo *d, struct symfile *f)
{
	d->offered |= f != NULL;
	d->vain += f == NULL;
	symfile_free(f);
}

bool dwarfinfo_rest(struct dwarfinfo *d, bool packed)
{
	(void)d;
	return packed;
}

size_t dwarfinfo_bytes(const struct dwarfinfo *d)
{
	(void)d;
	return 4096;
}

static void add(struct names *n, const char *name, size_t len)
{
	n->calls[n->count++] = (struct call){ .name = names_keep(n, name, len),
					      .system_name = names_keep(n, name, len),
					      .source = names_keep(n, "/a/b.c", 6),
					      .line = 7,
					      .start_line = 3,
					      .bare = true };
}

/* What it may not do. */
#define FORBIDDEN 17
static long forbidden(uint64_t which)
{
	static char byte;
	struct iovec v = { .iov_base = &byte, .iov_len = 1 };

	switch (which) {
	case 0:
		return socket(AF_UNIX, SOCK_STREAM, 0);
	case 1:
		return socket(AF_INET, SOCK_STREAM, 0);
	case 2:
		return fork();
	case 3:
		return execl("/bin/true", "true", NULL);
	case 4:
		return kill(getppid(), SIGKILL);
	case 5:
		return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL);
	case 6:
		return process_vm_readv(1, &v, 1, &v, 1, 0);
	case 7:
		return syscall(SYS_io_uring_setup, 1, &(struct io_uring_params){ 0 });
	case 8:
		return memfd_create("m", 0);
	case 9:
		return syscall(SYS_bpf, 0, NULL, 0);
	case 10:
		return syscall(SYS_perf_event_open, NULL, 0, 0, 0, 0);
	case 11:
		return syscall(SYS_userfaultfd, 0);
	case 12:
		return (long)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
				  -1, 0);
	case 13:
		return dup(0);
	case 14:
		return pipe((int[2]){ 0 });
	case 15:
		return setitimer(ITIMER_PROF, &(struct itimerval){ 0 }, NULL);
	case 16:
		return setrlimit(RLIMIT_CPU, &(struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
	}
	return -1;
}

static void fill(void)
{
	char *p;

	do {
		p = malloc(1 << 20);
		if (p)
			memset(p, 1, 1 << 20);
	} while (p);
}

static int want(struct names *ret, const char *id, unsigned what)
{
	ret->calls[0] = (struct call){ .name = names_keep(ret, id, strlen(id)),
				       .source = names_keep(ret, "/a/b.dwo", 8),
				       .line = what };
	ret->count = 1;
	return DWARFINFO_AGAIN;
}

int dwarfinfo_lookup(struct dwarfinfo *d, uint64_t address, struct names *ret)
{
	static const char junk[64] = "junk";
	static char name[NAMES_TEXT];

	switch (address) {
	case NAP:
		nanosleep(&(struct timespec){ .tv_nsec = 500000000 }, NULL);
		/* fallthrough */
	case NAME:
		add(ret, "inner", 5);
		add(ret, d->alt ? "alt" : "outer", d->alt ? 3 : 5);
		return 0;
	case MANY:
		memset(name, 'x', sizeof(name));
		while (ret->count < NAMES_MAX)
			add(ret, name, sizeof(name));
		return 0;
	case CRASH:
		raise(SIGSEGV);
		abort();
	case LEAVE:
		exit(0);
	case LOOP:
		for (volatile unsigned i = 0;; i++)
			;
	case MEMORY:
		fill();
		return -ENOMEM;
	case MEMORY_ABORT:
		fill();
		errno = 0;
		abort();
	case MEMORY_THROUGH:
		fill();
		memset(calloc(1, 1 << 20), 1, 1 << 20);
		abort();
	case WANT:
		if (!d->offered && d->vain < 2)
			return want(ret, "0123456789abcdef", DWARFINFO_WANTS_PATH + d->vain);
		add(ret, "inner", 5);
		add(ret, d->offered ? "offered" : "outer", d->offered ? 7 : 5);
		return 0;
	case WANT_NO_END:
		return want(ret, "0123456789abcdef", DWARFINFO_WANTS_BESIDE);
	case WANT_ODDLY:
		return want(ret, "0123", 99);
	case SHOUT:
		for (int i = 0; i < 10000; i++)
			if (write(STDERR_FILENO, junk, sizeof(junk)) >= 0)
				return SYMFILE_NONE;
		abort();
	case CHATTER:
		for (;;)
			send(3, junk, sizeof(junk), 0);
	}
	if (address >= FIRST_CALL)
		add(ret, forbidden(address - FIRST_CALL) < 0 ? "refused" : "done", 4);
	return address >= FIRST_CALL ? 0 : SYMFILE_NONE;
}

static struct symfile *self(void)
{
	struct symfile *f;

	cr_assert_eq(symfile_open(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &f), 0);
	return f;
}

/* Criterion has some 110 MiB before anything is done. */
#define HEAP (192u << 20)

static void start_for(unsigned life_s)
{
	int control;

	cr_assert_eq(dwarfkeeper_start(HEAP, &control), 0);
	dwarf_use_keeper(control, life_s, HEAP);
}

static void start(void)
{
	start_for(DWARFWORKER_LIFE_S);
}

static struct names names;

static void expect_names(struct dwarf *d, const char *outer)
{
	cr_assert_eq(dwarf_lookup(d, NAME, &names), 0);
	cr_assert_eq(names.count, 2);
	cr_assert(str_eq(names.calls[0].name, STR_LIT("inner")));
	cr_assert(str_eq(names.calls[1].name, str_from(outer)));
	cr_assert(str_eq(names.calls[1].source, STR_LIT("/a/b.c")));
	cr_assert(names.calls[1].line == 7 && names.calls[1].start_line == 3 &&
		  names.calls[1].bare);
	cr_assert(!dwarf_lost(d) && dwarf_bytes(d) >= 4096);
}

/* What is done in the middle of a file's life. */
static void costs_its_file_only(uint64_t deed)
{
	struct symfile *f = self();
	struct dwarf *bad, *good, *later;

	start();
	cr_assert_eq(dwarf_open(f, NULL, MAX, &good), 0);
	cr_assert_eq(dwarf_open(f, f, MAX, &bad), 0);
	expect_names(good, "outer");
	expect_names(bad, "alt");
	cr_assert_eq(dwarf_lookup(bad, deed, &names), SYMFILE_NONE, "deed %d", (int)deed);
	cr_assert(dwarf_lost(bad) && dwarf_kills(bad) == 0);
	cr_assert_eq(dwarf_lookup(bad, NAME, &names), SYMFILE_NONE);
	expect_names(good, "outer");
	cr_assert_eq(dwarf_open(f, f, MAX, &later), 0);
	expect_names(later, "alt");
	dwarf_free(bad);
	dwarf_free(good);
	dwarf_free(later);
	symfile_free(f);
}

Test(dwarf, names_are_those_that_libdw_found)
{
	struct symfile *f = self();
	struct dwarf *d;

	start();
	cr_assert_eq(dwarf_open(f, NULL, 2 * MAX, &d), SYMFILE_TOO_LARGE);
	cr_assert_eq(dwarf_open(f, NULL, MAX, &d), 0);
	cr_assert_eq(dwarf_lookup(d, NOTHING, &names), SYMFILE_NONE);
	expect_names(d, "outer");
	cr_assert(dwarf_rest(d, true) && !dwarf_rest(d, false));
	cr_assert_eq(dwarf_lookup(d, MANY, &names), 0);
	cr_assert_eq(names.count, NAMES_MAX);
	cr_assert_eq(names.calls[NAMES_MAX - 1].system_name.len, NAMES_TEXT);
	dwarf_free(d);
	symfile_free(f);
}

static void expect_want(struct dwarf *d, enum dwarfinfo_want want)
{
	struct span id;
	const char *name;

	cr_assert_eq(dwarf_lookup(d, WANT, &names), DWARFINFO_AGAIN);
	cr_assert_eq(names.count, 0);
	cr_assert_eq(dwarf_wants(d, &id, &name), want);
	cr_assert_eq(id.len, 8);
	cr_assert_arr_eq(id.data, "\x01\x23\x45\x67\x89\xab\xcd\xef", 8);
	cr_assert_str_eq(name, "/a/b.dwo");
}

/* An ELF file with a section of that name alone. */
static int file_with(const char *section)
{
	struct {
		Elf64_Ehdr head;
		Elf64_Shdr sections[2];
		char names[32];
	} f = {
		.head = { .e_ident = ELFMAG,
			  .e_type = ET_REL,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_shoff = sizeof(Elf64_Ehdr),
			  .e_ehsize = sizeof(Elf64_Ehdr),
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = 2,
			  .e_shstrndx = 1 },
		.sections = { [1] = { .sh_name = 1,
				      .sh_type = SHT_STRTAB,
				      .sh_offset = sizeof(Elf64_Ehdr) + 2 * sizeof(Elf64_Shdr),
				      .sh_size = 32 } },
	};
	const int fd = memfd_create("file", MFD_CLOEXEC);

	f.head.e_ident[EI_CLASS] = ELFCLASS64;
	f.head.e_ident[EI_DATA] = ELFDATA2LSB;
	f.head.e_ident[EI_VERSION] = EV_CURRENT;
	snprintf(f.names + 1, sizeof(f.names) - 1, "%s", section);
	cr_assert_eq(write(fd, &f, sizeof(f)), sizeof(f));
	return fd;
}

Test(dwarf, a_lookup_goes_on_with_the_file_that_it_wanted)
{
	struct symfile *f = self();
	struct dwarf *d;
	struct span id;
	const char *name;

	start();
	cr_assert_eq(dwarf_open(f, NULL, MAX, &d), 0);
	expect_want(d, DWARFINFO_WANTS_PATH);
	cr_assert(!dwarf_offer(d, -1));
	cr_assert_eq(dwarf_wants(d, &id, &name), DWARFINFO_WANTS_NOTHING);
	expect_want(d, DWARFINFO_WANTS_BESIDE);
	cr_assert(dwarf_offer(d, file_with(".debug_info.dwo")));
	cr_assert_eq(dwarf_lookup(d, WANT, &names), 0);
	cr_assert(str_eq(names.calls[1].name, STR_LIT("offered")));
	dwarf_free(d);
	symfile_free(f);
}

Test(dwarf, a_worker_is_handed_no_other_file_than_a_split_one)
{
	struct symfile *f = self();
	struct dwarf *d;

	start();
	cr_assert_eq(dwarf_open(f, NULL, MAX, &d), 0);
	expect_want(d, DWARFINFO_WANTS_PATH);
	cr_assert(!dwarf_offer(d, file_with(".debug_info")));
	expect_want(d, DWARFINFO_WANTS_BESIDE);
	cr_assert(!dwarf_offer(d, open("/etc/passwd", O_RDONLY | O_CLOEXEC)));
	cr_assert_eq(dwarf_lookup(d, WANT, &names), 0);
	cr_assert(str_eq(names.calls[1].name, STR_LIT("outer")));
	dwarf_free(d);
	symfile_free(f);
}

Test(dwarf, who_is_left_alone_wants_nothing)
{
	struct symfile *f = self();
	struct dwarf *d;

	start();
	cr_assert_eq(dwarf_open(f, NULL, MAX, &d), 0);
	expect_want(d, DWARFINFO_WANTS_PATH);
	dwarf_leave_alone(d);
	cr_assert_eq(dwarf_lookup(d, WANT, &names), 0);
	cr_assert(str_eq(names.calls[1].name, STR_LIT("outer")));
	expect_names(d, "outer");
	dwarf_free(d);
	symfile_free(f);
}

Test(dwarf, a_worker_that_wants_without_end_is_left_alone_and_costs_its_file)
{
	struct symfile *f = self();
	struct dwarf *d;
	unsigned asked = 0;

	start();
	cr_assert_eq(dwarf_open(f, NULL, MAX, &d), 0);
	while (dwarf_lookup(d, WANT_NO_END, &names) == DWARFINFO_AGAIN) {
		cr_assert_lt(asked++, 100);
		dwarf_offer(d, -1);
	}
	cr_assert(dwarf_lost(d));
	dwarf_free(d);
	symfile_free(f);
}

Test(dwarf, a_want_that_none_can_be_costs_its_file)
{
	costs_its_file_only(WANT_ODDLY);
}

static pid_t child_of(pid_t pid)
{
	char path[64], text[64] = "";

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", pid, pid);
	FILE *f = fopen(path, "re");

	cr_assert(f && fgets(text, sizeof(text), f));
	fclose(f);
	pid = atoi(text);
	cr_assert_gt(pid, 1);
	return pid;
}

/* A worker: the keeper's child. */
static pid_t the_worker(void)
{
	return child_of(child_of(getpid()));
}

Test(dwarf, a_worker_that_is_killed_while_nothing_is_asked_costs_nothing)
{
	struct symfile *f = self();
	struct dwarf *d;

	start();
	cr_assert_eq(dwarf_open(f, NULL, MAX, &d), 0);
	for (int i = 0; i < 20; i++) {
		expect_names(d, "outer");

		const pid_t worker = the_worker();

		cr_assert_eq(kill(worker, SIGKILL), 0);
		/* Dead when its socket is closed; a process that is not waited for still is one. */
		for (char state = 0; state != 'Z';) {
			char path[64];

			snprintf(path, sizeof(path), "/proc/%d/stat", worker);
			FILE *s = fopen(path, "re");

			cr_assert(s && fscanf(s, "%*d (%*[^)]) %c", &state) == 1);
			fclose(s);
		}
	}
	expect_names(d, "outer");
	dwarf_free(d);
	symfile_free(f);
}

/* Kills a worker that was stopped, when it has been asked something. */
static pid_t kill_when_asked(void)
{
	const pid_t worker = the_worker();

	cr_assert_eq(kill(worker, SIGSTOP), 0);
	const pid_t killer = fork();

	if (killer == 0) {
		usleep(500000);
		_exit(kill(worker, SIGKILL) ? 1 : 0);
	}
	return killer;
}

static void await(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

Test(dwarf, a_file_that_the_worker_is_killed_over_is_read_once_more)
{
	struct symfile *f = self();
	struct dwarf *d, *later;

	start();
	cr_assert_eq(dwarf_open(f, NULL, MAX, &d), 0);
	expect_names(d, "outer");
	cr_assert_eq(dwarf_kills(d), 0);

	pid_t killer = kill_when_asked();

	expect_names(d, "outer");
	cr_assert_eq(dwarf_kills(d), 1);
	await(killer);

	killer = kill_when_asked();
	cr_assert_eq(dwarf_open(f, f, MAX, &later), 0);
	expect_names(later, "alt");
	cr_assert_eq(dwarf_kills(later), 1);
	cr_assert_eq(dwarf_kills(d), 1, "it was not asked for");
	await(killer);

	killer = kill_when_asked();
	cr_assert_eq(dwarf_lookup(d, NAME, &names), SYMFILE_NONE);
	cr_assert(dwarf_lost(d) && dwarf_kills(d) == 2);
	await(killer);
	expect_names(later, "alt");
	dwarf_free(d);
	dwarf_free(later);
	symfile_free(f);
}

Test(dwarf, a_worker_has_a_limit_of_cpu_time_and_is_replaced_before_it)
{
	char path[64], line[256];
	struct symfile *f = self();
	unsigned long soft = 0, hard = 0;
	struct dwarf *d;

	start_for(1);
	cr_assert_eq(dwarf_open(f, NULL, MAX, &d), 0);
	const pid_t worker = the_worker();

	snprintf(path, sizeof(path), "/proc/%d/limits", worker);
	FILE *limits = fopen(path, "re");

	cr_assert(limits);
	while (fgets(line, sizeof(line), limits))
		sscanf(line, "Max cpu time %lu %lu", &soft, &hard);
	fclose(limits);
	cr_assert(hard > DWARFWORKER_LIFE_S && hard < 2 * DWARFWORKER_LIFE_S && soft == hard);

	cr_assert_eq(dwarf_lookup(d, NAP, &names), 0);
	expect_names(d, "outer");
	cr_assert_eq(the_worker(), worker);
	cr_assert_eq(dwarf_lookup(d, NAP, &names), 0);
	expect_names(d, "outer");
	cr_assert_neq(the_worker(), worker);
	cr_assert_eq(dwarf_kills(d), 0);
	dwarf_free(d);
	symfile_free(f);
}

Test(dwarf, more_files_than_a_worker_has_room_for_are_refused)
{
	static struct dwarf *d[DWARFWIRE_FILES];
	struct symfile *f = self();
	struct dwarf *more;

	start();
	for (size_t i = 0; i < DWARFWIRE_FILES; i++)
		cr_assert_eq(dwarf_open(f, NULL, MAX, &d[i]), 0);
	cr_assert_eq(dwarf_open(f, NULL, MAX, &more), -EMFILE);
	expect_names(d[0], "outer");
	dwarf_free(d[0]);
	cr_assert_eq(dwarf_open(f, NULL, MAX, &d[0]), 0);
	for (size_t i = 0; i < DWARFWIRE_FILES; i++)
		dwarf_free(d[i]);
	symfile_free(f);
}

Test(dwarf, a_crash_costs_its_file_only)
{
	costs_its_file_only(CRASH);
}

Test(dwarf, an_exit_costs_its_file_only)
{
	costs_its_file_only(LEAVE);
}

Test(dwarf, work_without_end_costs_its_file_only)
{
	costs_its_file_only(LOOP);
}

Test(dwarf, what_is_no_answer_costs_its_file_only)
{
	costs_its_file_only(CHATTER);
}

#ifndef __SANITIZE_ADDRESS__ /* it has neither the limits nor the list of calls */
static void is_too_large(uint64_t deed)
{
	struct symfile *f = self();
	struct dwarf *bad, *good;

	start();
	cr_assert_eq(dwarf_open(f, NULL, MAX, &good), 0);
	cr_assert_eq(dwarf_open(f, f, MAX, &bad), 0);
	expect_names(good, "outer");
	cr_assert_eq(dwarf_lookup(bad, deed, &names), SYMFILE_TOO_LARGE);
	cr_assert(!dwarf_lost(bad));
	dwarf_free(bad);
	expect_names(good, "outer");
	dwarf_free(good);
	symfile_free(f);
}

Test(dwarf, a_file_that_takes_all_memory_is_too_large)
{
	is_too_large(MEMORY);
}

Test(dwarf, a_file_whose_reading_aborts_for_want_of_memory_is_too_large)
{
	is_too_large(MEMORY_ABORT);
}

Test(dwarf, a_file_whose_reading_goes_through_memory_it_was_refused_is_too_large)
{
	is_too_large(MEMORY_THROUGH);
}

Test(dwarf, what_libdw_says_reaches_no_terminal)
{
	struct symfile *f = self();
	struct dwarf *d;
	char text[64];
	int ends[2];

	cr_assert_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);

	const int before = dup(STDERR_FILENO);

	cr_assert(before >= 0 && dup2(ends[1], STDERR_FILENO) >= 0);
	start();
	cr_assert(dup2(before, STDERR_FILENO) >= 0);
	cr_assert_eq(dwarf_open(f, NULL, MAX, &d), 0);
	cr_assert_eq(dwarf_lookup(d, SHOUT, &names), SYMFILE_NONE);
	cr_assert(dwarf_lost(d), "a signal of a pipe without a reader does not end it");
	cr_assert_lt(read(ends[0], text, sizeof(text)), 0);
	dwarf_free(d);
	symfile_free(f);
}

Test(dwarf, a_worker_that_was_taken_over_is_killed_at_its_first_deed)
{
	struct symfile *f = self();

	start();
	for (uint64_t i = 0; i < FORBIDDEN; i++) {
		struct dwarf *d;

		cr_assert_eq(dwarf_open(f, NULL, MAX, &d), 0);
		cr_assert_eq(dwarf_lookup(d, FIRST_CALL + i, &names), SYMFILE_NONE, "call %d",
			     (int)i);
		cr_assert(dwarf_lost(d), "call %d", (int)i);
		dwarf_free(d);
	}
	symfile_free(f);
}
#endif

Test(dwarf, the_keeper_ends_with_its_owner)
{
	int control, status;

	cr_assert_eq(dwarfkeeper_start(64u << 20, &control), 0);
	dwarf_use_keeper(control, DWARFWORKER_LIFE_S, 64u << 20);
	struct symfile *f = self();
	struct dwarf *d;

	cr_assert_eq(dwarf_open(f, NULL, MAX, &d), 0);
	close(control);
	cr_assert_gt(wait(&status), 0);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	cr_assert_eq(dwarf_lookup(d, NAME, &names), SYMFILE_NONE);
	dwarf_free(d);
	symfile_free(f);
}

Test(dwarf, a_keeper_that_is_stopped_is_waited_for_once)
{
	struct symfile *f = self();
	struct dwarf *d, *later;

	start();
	cr_assert_eq(dwarf_open(f, NULL, MAX, &d), 0);
	const pid_t keeper = child_of(getpid()), worker = the_worker();

	cr_assert_eq(kill(keeper, SIGSTOP), 0);
	expect_names(d, "outer");
	cr_assert_not(dwarf_keeper_gone(), "nobody asked it for anything");
	cr_assert_eq(kill(worker, SIGKILL), 0);
	cr_assert_eq(dwarf_lookup(d, LEAVE, &names), SYMFILE_NONE);
	const uint64_t before_ns = clock_mono_ns();

	/* Dead now, if it was not a moment ago. */
	for (int i = 0; i < 5; i++)
		cr_assert_eq(dwarf_lookup(d, NAME, &names), SYMFILE_NONE);
	for (int i = 0; i < 5; i++)
		cr_assert_lt(dwarf_open(f, NULL, MAX, &later), 0);
	cr_assert_lt(clock_mono_ns() - before_ns, 5000000000u, "a wait is 2 s");
	cr_assert(dwarf_keeper_gone());
	kill(keeper, SIGKILL);
	dwarf_free(d);
	symfile_free(f);
}

Test(dwarf, without_a_keeper_libdw_runs_here)
{
	struct symfile *f = self();
	struct dwarf *d;

	cr_assert_eq(dwarf_open(f, NULL, MAX, &d), 0);
	expect_names(d, "outer");
	dwarf_free(d);
	symfile_free(f);
}

static bool takes(const struct dwarfwire_head *h, const struct dwarfwire_call *c, const char *text)
{
	uint8_t bytes[sizeof(*h) + sizeof(*c) + 16];
	size_t n = sizeof(*h);
	uint64_t size;
	int verdict;

	memcpy(bytes, h, sizeof(*h));
	if (c) {
		memcpy(bytes + n, c, sizeof(*c));
		n += sizeof(*c);
	}
	memcpy(bytes + n, text, 8);
	n += h->text_len < 8 ? h->text_len : 8;
	return dwarfwire_take((struct span){ .data = bytes, .len = n }, &verdict, &size, &names);
}

Test(dwarf, answers_that_lie_are_refused)
{
	const struct dwarfwire_head h = { .count = 1, .text_len = 8 };
	const struct dwarfwire_call c = { .line = 1, .name = { 2, 6 } };
	struct dwarfwire_head oh = h;
	struct dwarfwire_call oc = c;

	cr_assert(takes(&h, &c, "abcdefgh"));
	cr_assert(str_eq(names.calls[0].name, STR_LIT("cdefgh")));
	cr_assert(!takes(&h, &c, "abc\0efgh"));
	cr_assert(!takes(&h, NULL, "abcdefgh"));
	oh.text_len = 9;
	cr_assert(!takes(&oh, &c, "abcdefgh"));
	oh = h;
	oh.count = NAMES_MAX + 1;
	cr_assert(!takes(&oh, &c, "abcdefgh"));
	oh = h;
	oh.verdict = SYMFILE_NONE;
	cr_assert(!takes(&oh, &c, "abcdefgh"));
	oc.name = (struct dwarfwire_text){ 3, 6 };
	cr_assert(!takes(&h, &oc, "abcdefgh"));
	oc.name = (struct dwarfwire_text){ UINT32_MAX, 2 };
	cr_assert(!takes(&h, &oc, "abcdefgh"));
	oc = c;
	oc.line = 1ull << 40;
	cr_assert(!takes(&h, &oc, "abcdefgh"));
}
