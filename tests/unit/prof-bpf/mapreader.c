/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "common/base/system/procfs.h"
#include "tests/unit/workers_fixture.h"
#include "tools/prof-bpf/open/readers/mapreader.h"
#include "tools/prof-bpf/owners/owners.h"

#define PAGE 4096u
#define MOST 4096

struct mapping {
	uint64_t start, end, offset, inode;
	enum procfs_name kind;
	char name[256];
};

struct list {
	struct mapping at[MOST];
	size_t count;
	unsigned ends, drops;
	int status;
};

static void on_mapping(void *ctx, const struct procfs_mapping *m)
{
	struct list *l = ctx;
	struct mapping *to = &l->at[l->count++];

	cr_assert_leq(l->count, MOST);
	*to = (struct mapping){ m->start, m->end, m->offset, m->inode, m->kind, { 0 } };
	snprintf(to->name, sizeof(to->name), "%.*s", (int)m->name.len, m->name.data);
}

static void on_done(void *ctx, int status, uint64_t cpu_ns)
{
	struct list *l = ctx;

	(void)cpu_ns;
	l->ends++;
	l->status = status;
}

static void on_drop(void *ctx)
{
	((struct list *)ctx)->drops++;
}

static struct workerpool *pool;
static struct owners *owners;
static char fake[32];

static void start(const char *proc)
{
	cr_assert_eq(workerpool_start(proc, &pool), 0);
	cr_assert_eq(owners_new(&owners), 0);
	workerpool_charge(pool, owners);
}

static void start_fake(void)
{
	snprintf(fake, sizeof(fake), "/tmp/mapreader-XXXXXX");
	cr_assert_not_null(mkdtemp(fake));
	start(fake);
}

static void finish(void)
{
	char command[64];

	workerpool_free(pool);
	owners_free(owners);
	if (fake[0]) {
		snprintf(command, sizeof(command), "rm -rf %s", fake);
		(void)!system(command);
	}
}

static FILE *fake_maps(uint32_t pid, bool hangs)
{
	char path[64];

	snprintf(path, sizeof(path), "%s/%u", fake, pid);
	mkdir(path, 0755);
	snprintf(path, sizeof(path), "%s/%u/maps", fake, pid);
	if (!hangs)
		return fopen(path, "we");
	cr_assert_eq(mkfifo(path, 0644), 0);
	return NULL;
}

static int ask(uint32_t pid, uint32_t uid, uint32_t most, struct list *l)
{
	const struct mapreader_request q = {
		.pid = pid,
		.payer = owners_get(owners, (struct owner_key){ .uid = uid }),
		.most = most,
		.mapping = on_mapping,
		.done = on_done,
		.drop = on_drop,
		.ctx = l,
	};

	*l = (struct list){ .count = 0 };
	return mapreader_submit(pool, &q);
}

static struct list got, other;

Test(mapreader, mappings_are_those_of_the_kernel, .fini = finish)
{
	uint8_t *code = mmap(NULL, 3 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			     0);
	static struct list direct;
	const int proc = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);

	start("/proc");
	cr_assert_eq(ask((uint32_t)getpid(), 0, MOST, &got), 0);
	wait_for_answer(pool, &got.ends);
	cr_assert_eq(got.status, 0);
	cr_assert_gt(procfs_read_maps(proc, (uint32_t)getpid(), MOST, on_mapping, &direct), 3);
	cr_assert_eq(got.count, direct.count);
	cr_assert_arr_eq(got.at, direct.at, got.count * sizeof(got.at[0]));
	bool found = false;
	for (size_t i = 0; i < got.count; i++)
		found |= got.at[i].start == (uintptr_t)code &&
			 got.at[i].end == (uintptr_t)code + (uint64_t)3 * PAGE;
	cr_assert(found);
	close(proc);
}

Test(mapreader, many_mappings_come_in_order_up_to_the_most, .fini = finish)
{
	start_fake();
	FILE *f = fake_maps(7, false);

	for (unsigned i = 0; i < 3000; i++)
		fprintf(f, "%x000-%x000 r-xp 00000000 08:01 %u /a/rather/long/name/of/file%u\n",
			2 * i + 16, 2 * i + 17, i + 1, i);
	fclose(f);
	cr_assert_eq(ask(7, 0, MOST, &got), 0);
	wait_for_answer(pool, &got.ends);
	cr_assert_eq(got.status, 0);
	cr_assert_eq(got.count, 3000);
	for (unsigned i = 0; i < 3000; i++)
		cr_assert_eq(got.at[i].inode, i + 1);
	cr_assert_str_eq(got.at[2999].name, "/a/rather/long/name/of/file2999");
	cr_assert_eq(ask(7, 0, 1000, &got), 0);
	wait_for_answer(pool, &got.ends);
	cr_assert_eq(got.status, 0);
	cr_assert_eq(got.count, 1000);
}

Test(mapreader, a_nonexistent_process_is_reported_as_gone, .fini = finish)
{
	start_fake();
	cr_assert_eq(ask(7, 0, MOST, &got), 0);
	wait_for_answer(pool, &got.ends);
	cr_assert_eq(got.status, -ENOENT);
	cr_assert_eq(got.count, 0);
}

/* A process that keeps the lock of its mappings delays only itself. */
Test(mapreader, process_that_does_not_let_its_mappings_be_read_is_given_up, .fini = finish)
{
	start_fake();
	fake_maps(7, true);
	FILE *f = fake_maps(8, false);
	fputs("1000-2000 r-xp 00000000 08:01 1 /bin/x\n", f);
	fclose(f);
	const uint64_t began = clock_mono_ns();

	cr_assert_eq(ask(7, 1000, MOST, &got), 0);
	cr_assert_eq(ask(8, 1001, MOST, &other), 0);
	wait_for_answer(pool, &other.ends);
	cr_assert_eq(other.status, 0);
	cr_assert_eq(other.count, 1);
	cr_assert_eq(got.ends, 0);
	wait_for_answer(pool, &got.ends);
	cr_assert_eq(got.status, -ETIMEDOUT);
	cr_assert_geq(clock_mono_ns() - began, MAPREADER_DEADLINE_NS);
	cr_assert_eq(ask(7, 1000, MOST, &got), 0);
	wait_for_answer(pool, &got.ends);
	cr_assert_eq(got.status, -EBUSY);
}

Test(mapreader, slow_mappings_of_many_users_delay_another_user_by_a_second, .fini = finish)
{
	static struct list slow[20];
	const uint32_t users = sizeof(slow) / sizeof(slow[0]);

	start_fake();
	FILE *f = fake_maps(7, false);
	fputs("1000-2000 r-xp 00000000 08:01 1 /bin/x\n", f);
	fclose(f);
	for (uint32_t i = 0; i < users; i++) {
		fake_maps(100 + i, true);
		cr_assert_eq(ask(100 + i, 1000 + i, MOST, &slow[i]), 0);
	}
	const uint64_t began = clock_mono_ns();

	cr_assert_eq(ask(7, 999, MOST, &got), 0);
	wait_for_answer(pool, &got.ends);
	cr_assert_eq(got.status, 0);
	cr_expect_lt(clock_mono_ns() - began, 2 * WORKERPOOL_SLOW_NS * users / WORKERPOOL_OF_LANE);
}

/* Writes mappings into the FIFO of fake process 7, 250 at a time. */
static pid_t trickle(unsigned times, unsigned each_ms)
{
	const pid_t pid = fork();

	if (pid)
		return pid;
	char path[64];

	snprintf(path, sizeof(path), "%s/7/maps", fake);
	FILE *f = fopen(path, "we");

	for (unsigned i = 0; f && i < 250 * times; i++) {
		fprintf(f, "%x000-%x000 r-xp 00000000 08:01 %u /a/rather/long/name/of/file%080u\n",
			2 * i + 16, 2 * i + 17, i + 1, i);
		if (i % 250 == 249) {
			fflush(f);
			usleep(each_ms * 1000);
		}
	}
	_exit(0);
}

/* On a busy machine, prof-bpf takes the parts of a long answer so late that their sender waits. */
Test(mapreader, slow_mappings_are_waited_for_up_to_a_limit, .fini = finish)
{
	start_fake();
	fake_maps(7, true);
	pid_t writer = trickle(10, 100);
	uint64_t began = clock_mono_ns();

	cr_assert_eq(ask(7, 1000, MOST, &got), 0);
	wait_for_answer(pool, &got.ends);
	cr_assert_gt(clock_mono_ns() - began, MAPREADER_DEADLINE_NS);
	cr_assert_eq(got.status, 0);
	cr_assert_eq(got.count, 2500);
	waitpid(writer, NULL, 0);
	writer = trickle(16, 300);
	began = clock_mono_ns();
	cr_assert_eq(ask(7, 1000, MOST, &got), 0);
	wait_for_answer(pool, &got.ends);
	cr_assert_eq(got.status, -ETIMEDOUT);
	cr_assert_geq(clock_mono_ns() - began, WORKERPOOL_PATIENCE * MAPREADER_DEADLINE_NS);
	kill(writer, SIGKILL);
	waitpid(writer, NULL, 0);
}

Test(mapreader, requests_unanswered_at_the_end_are_dropped, .fini = finish)
{
	start_fake();
	fake_maps(7, true);
	cr_assert_eq(ask(7, 1000, MOST, &got), 0);
	workerpool_run(pool, clock_mono_ns());
	workerpool_free(pool);
	pool = NULL;
	cr_assert_eq(got.ends, 0);
	cr_assert_eq(got.drops, 1);
}
