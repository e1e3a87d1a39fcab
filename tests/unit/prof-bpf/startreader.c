/* SPDX-License-Identifier: Apache-2.0 */
/* Variables and command lines of real processes, read by workers. */
#include "tools/prof-bpf/open/readers/startreader.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "tests/unit/workers_fixture.h"
#include "tools/prof-bpf/owners/owners.h"

#define PAGE 4096u

static const char *const names[] = { "WANTED", "MISSING" };
static struct workerpool *pool;
static struct owners *owners;

struct answer {
	unsigned calls;
	int status;
	bool exe_same;
	char variable[64], line[256];
};

static void take(void *ctx, const struct startreader_result *r)
{
	struct answer *a = ctx;
	struct span rest = r->values;
	unsigned which;
	struct str value;

	a->calls++;
	a->status = r->status;
	a->exe_same = r->exe_same;
	cr_assert(r->status || S_ISREG(r->exe_mode));
	while (environment_next(&rest, &which, &value)) {
		char *to = which ? a->line : a->variable;

		cr_assert_neq(which, 1);
		cr_assert_lt(value.len, which ? sizeof(a->line) : sizeof(a->variable));
		/* Arguments end in a NUL. */
		for (size_t i = 0; i < value.len; i++)
			to[i] = value.data[i] ? value.data[i] : '|';
		to[value.len] = '\0';
	}
	cr_assert_eq(rest.len, 0);
}

static void drop(void *ctx)
{
}

static void set_up(void)
{
	cr_assert_eq(workerpool_start("/proc", &pool), 0);
	cr_assert_eq(owners_new(&owners), 0);
	workerpool_charge(pool, owners);
}

static void clean_up(void)
{
	workerpool_free(pool);
	owners_free(owners);
}

TestSuite(startreader, .init = set_up, .fini = clean_up);

static void ask(pid_t pid, uint32_t uid, struct answer *a)
{
	const struct startreader_request q = {
		.pid = (uint32_t)pid,
		.payer = owners_get(owners, (struct owner_key){ .uid = uid }),
		.wanted = { .names = names, .count = 2, .command_line = true },
		.done = take,
		.drop = drop,
		.ctx = a,
	};

	*a = (struct answer){ 0 };
	cr_assert_eq(startreader_submit(pool, &q), 0);
}

/* Starts sleep(1), with nothing else in its environment but this. */
static pid_t start(const char *const variables[])
{
	int ends[2];
	char byte;

	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	const pid_t pid = fork();

	if (pid == 0) {
		clearenv();
		for (size_t i = 0; variables[i]; i++)
			putenv(strdup(variables[i]));
		execl("/bin/sleep", "/bin/sleep", "1000", NULL);
		_exit(1);
	}
	close(ends[1]);
	cr_assert_eq(read(ends[0], &byte, 1), 0); /* until its exec */
	close(ends[0]);
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* The pages in which our environment lies. */
static struct uffdio_range environment(void)
{
	char text[4096] = "", *at = text;
	unsigned long long start = 0, last = 0;
	FILE *f = fopen("/proc/self/stat", "re");

	cr_assert(f && fgets(text, sizeof(text), f));
	fclose(f);
	at = strrchr(text, ')');
	for (unsigned field = 2; at && field < 50; field++) /* of proc(5) */
		at = strchr(at + 1, ' ');
	cr_assert(at && sscanf(at, "%llu %llu", &start, &last) == 2 && start < last);
	start &= ~(PAGE - 1ull);
	last = (last + PAGE - 1) & ~(PAGE - 1ull);
	return (struct uffdio_range){ .start = start, .len = last - start };
}

/* Blocks readers of our environment. The test itself must not need it any more. */
static void close_environment(int say)
{
	volatile char deep[16 * PAGE]; /* so that our own stack frame is in other pages */
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .range = environment(),
					 .mode = UFFDIO_REGISTER_MODE_MISSING };
	const int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	deep[0] = 0;
	(void)deep[0];
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range) ||
	    madvise((void *)(uintptr_t)range.range.start, range.range.len, MADV_DONTNEED) ||
	    write(say, "x", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

static pid_t start_tar_pit(void)
{
	int ends[2];
	char byte;

	cr_assert_eq(pipe(ends), 0);
	const pid_t pid = fork();

	if (pid == 0)
		close_environment(ends[1]);
	close(ends[1]);
	cr_assert_eq(read(ends[0], &byte, 1), 1);
	close(ends[0]);
	return pid;
}

Test(startreader, only_what_is_wanted_is_read)
{
	const pid_t pid =
		start((const char *const[]){ "SECRET=1", "WANTED=a value", "WANTED2=2", NULL });
	struct answer a;

	ask(pid, 1, &a);
	wait_for_answer(pool, &a.calls);
	cr_expect(a.status == 0 && a.exe_same);
	cr_expect_str_eq(a.variable, "a value");
	cr_expect_str_eq(a.line, "/bin/sleep|1000");
	end(pid);
}

Test(startreader, a_process_without_an_environment_has_its_command_line)
{
	const pid_t pid = start((const char *const[]){ NULL });
	struct answer a;

	ask(pid, 1, &a);
	wait_for_answer(pool, &a.calls);
	cr_expect_eq(a.status, 0);
	cr_expect_str_empty(a.variable);
	cr_expect_str_eq(a.line, "/bin/sleep|1000");
	end(pid);
}

Test(startreader, a_process_that_is_gone_is_an_error)
{
	const pid_t pid = start((const char *const[]){ NULL });
	struct answer a;

	end(pid);
	ask(pid, 1, &a);
	wait_for_answer(pool, &a.calls);
	cr_expect_eq(a.status, -ENOENT);
}

/* The kernel reads an environment only if it does not have to wait. */
Test(startreader, an_environment_that_is_not_in_memory_is_not_read)
{
	const pid_t slow = start_tar_pit(),
		    quick = start((const char *const[]){ "WANTED=quick", NULL });
	struct answer none, other;

	ask(slow, 1, &none);
	ask(quick, 2, &other);
	wait_for_answer(pool, &other.calls);
	cr_expect_str_eq(other.variable, "quick");
	wait_for_answer(pool, &none.calls);
	cr_expect_str_empty(none.variable);
	end(slow);
	end(quick);
}

/* Process `pid` in a /proc of our own, with this text as its environment; NULL: the text is never
 * written. */
static void fake(const char *proc, int pid, const char *text)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%d", proc, pid);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%d/exe", proc, pid);
	cr_assert_eq(symlink("/bin/sleep", path), 0);
	snprintf(path, sizeof(path), "%s/%d/environ", proc, pid);
	if (!text) {
		cr_assert_eq(mkfifo(path, 0644), 0);
		return;
	}
	FILE *f = fopen(path, "we");

	cr_assert(f && fwrite(text, strlen(text) + 1, 1, f) == 1);
	fclose(f);
	snprintf(path, sizeof(path), "%s/%d/cmdline", proc, pid);
	f = fopen(path, "we");
	cr_assert(f && fputs("sleep", f) >= 0);
	fclose(f);
}

/* A process can keep the lock of its mappings, which the kernel takes to read its environment. */
Test(startreader, a_process_that_blocks_its_reader_delays_no_other)
{
	char proc[] = "/tmp/startreader.XXXXXX", command[64];
	struct answer waits, other, again;

	cr_assert(mkdtemp(proc));
	fake(proc, 7, NULL);
	fake(proc, 8, "WANTED=quick");
	clean_up();
	cr_assert_eq(workerpool_start(proc, &pool), 0);
	cr_assert_eq(owners_new(&owners), 0);
	workerpool_charge(pool, owners);
	const uint64_t began_ns = clock_mono_ns();

	ask(7, 1, &waits);
	ask(8, 2, &other);
	wait_for_answer(pool, &other.calls);
	cr_expect_eq(waits.calls, 0, "it is still being read");
	cr_expect_eq(other.status, 0);
	cr_expect_str_eq(other.variable, "quick");
	cr_expect_str_eq(other.line, "sleep");
	wait_for_answer(pool, &waits.calls);
	cr_expect_eq(waits.status, -ETIMEDOUT);
	cr_expect_geq(clock_mono_ns() - began_ns, STARTREADER_DEADLINE_NS);
	ask(7, 1, &again);
	wait_for_answer(pool, &again.calls);
	cr_expect_eq(again.status, -EBUSY, "it is not read again for a while");
	snprintf(command, sizeof(command), "rm -r %s", proc);
	cr_expect_eq(system(command), 0);
}
