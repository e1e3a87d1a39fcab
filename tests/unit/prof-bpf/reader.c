/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/system/clock.h"
#include "tests/unit/workers_fixture.h"
#include "tools/prof-bpf/open/readers/reader.h"
#include "tools/prof-bpf/owners/owners.h"

#define PAGE 4096u

struct answer {
	unsigned calls;
	int status;
	uint64_t lengths[READER_PIECES];
	uint8_t bytes[4 * PAGE];
	size_t len;
};

static void take(void *ctx, struct reader_result *r)
{
	struct answer *a = ctx;

	a->calls++;
	a->status = r->status;
	for (uint32_t i = 0; i < r->pieces; i++)
		a->lengths[i] = r->lengths[i];
	a->len = r->bytes.len;
	cr_assert_leq(a->len, sizeof(a->bytes));
	if (a->len)
		memcpy(a->bytes, r->bytes.data, a->len);
}

static unsigned hanging(struct workerpool *r)
{
	struct workerpool_figures f;

	workerpool_run(r, clock_mono_ns());
	workerpool_figures(r, &f);
	return f.hanging;
}

static struct owners *owners;

static void start(struct workerpool **ret)
{
	cr_assert_eq(workerpool_start("/proc", ret), 0);
	cr_assert_eq(owners_new(&owners), 0);
	workerpool_charge(*ret, owners);
}

static void finish(struct workerpool *r)
{
	workerpool_free(r);
	owners_free(owners);
}

static int ask(struct workerpool *r, uint32_t pid, uint32_t uid, uint64_t address, struct answer *a)
{
	const uint64_t length = 16;
	struct owner *payer = owners_get(owners, (struct owner_key){ .uid = uid });
	const struct reader_request q = { .fd = -1,
					  .pid = pid,
					  .payer = payer,
					  .pieces = 1,
					  .addresses = &address,
					  .lengths = &length };

	*a = (struct answer){ 0 };
	return reader_submit(r, &q, take, a);
}

/* A process that shares our memory contents and does nothing. */
static pid_t sleeper(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		for (;;)
			pause();
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Memory that blocks its readers until *ret_fd is closed. */
static uint8_t *tar_pit(int *ret_fd)
{
	struct uffdio_api api = { .api = UFFD_API };
	uint8_t *at = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_register range = { .range = { (uintptr_t)at, PAGE },
					 .mode = UFFDIO_REGISTER_MODE_MISSING };

	*ret_fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	cr_assert_geq(*ret_fd, 0);
	cr_assert_neq(at, MAP_FAILED);
	cr_assert_eq(ioctl(*ret_fd, UFFDIO_API, &api), 0);
	cr_assert_eq(ioctl(*ret_fd, UFFDIO_REGISTER, &range), 0);
	return at;
}

Test(reader, the_readable_part_of_each_piece_is_read)
{
	uint8_t *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	struct answer a = { 0 };
	struct workerpool *r;

	memset(at, 'a', PAGE);
	munmap(at + PAGE, PAGE);
	const uint64_t addresses[] = { (uintptr_t)at,	     (uintptr_t)at + PAGE - 8,
				       (uintptr_t)at + PAGE, 0xffffffff81000000,
				       UINT64_MAX,	     (uintptr_t)at + 3 },
		       lengths[] = { 8, 16, 8, 64, 64, 5 };
	const struct reader_request q = { .fd = -1,
					  .pid = (uint32_t)getpid(),
					  .pieces = 6,
					  .addresses = addresses,
					  .lengths = lengths };
	start(&r);
	cr_assert_eq(reader_submit(r, &q, take, &a), 0);
	wait_for_answer(r, &a.calls);
	cr_expect_eq(a.status, 0);
	cr_expect(a.lengths[0] == 8 && a.lengths[1] == 8 && a.lengths[5] == 5);
	cr_expect(a.lengths[2] == 0 && a.lengths[3] == 0 && a.lengths[4] == 0);
	cr_expect_eq(a.len, 21);
	finish(r);
}

Test(reader, pieces_of_a_file_are_read_and_its_descriptor_is_closed)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	const uint64_t addresses[] = { 2, 100, UINT64_MAX }, lengths[] = { 4, 4, 4 };
	const struct reader_request q = {
		.fd = fd, .pieces = 3, .addresses = addresses, .lengths = lengths
	};
	struct answer a = { 0 };
	struct workerpool *r;

	cr_assert_eq(write(fd, "0123456789", 10), 10);
	start(&r);
	cr_assert_eq(reader_submit(r, &q, take, &a), 0);
	wait_for_answer(r, &a.calls);
	cr_expect_eq(a.status, 0);
	cr_expect(a.lengths[0] == 4 && a.lengths[1] == 0 && a.lengths[2] == 0);
	cr_expect_eq(memcmp(a.bytes, "2345", 4), 0);
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
	finish(r);
}

Test(reader, a_process_that_is_gone_is_an_error)
{
	pid_t pid = sleeper();
	struct answer a;
	struct workerpool *r;

	end(pid);
	start(&r);
	cr_assert_eq(ask(r, (uint32_t)pid, 1, 0x10000, &a), 0);
	wait_for_answer(r, &a.calls);
	cr_expect_eq(a.status, -ESRCH);
	finish(r);
}

/* A process with memory that blocks its readers. */
static pid_t tar_pit_process(uint64_t *ret_at)
{
	int to[2];

	cr_assert_eq(pipe(to), 0);
	const pid_t pid = fork();

	if (pid == 0) {
		int uffd;
		const uint64_t at = (uintptr_t)tar_pit(&uffd);

		(void)!write(to[1], &at, sizeof(at));
		for (;;)
			pause();
	}
	cr_assert_eq(read(to[0], ret_at, sizeof(*ret_at)), sizeof(*ret_at));
	close(to[0]);
	close(to[1]);
	return pid;
}

static void expect_word(struct workerpool *r, pid_t pid, uint32_t uid)
{
	static const uint64_t word = 7;
	struct answer a;

	cr_assert_eq(ask(r, (uint32_t)pid, uid, (uintptr_t)&word, &a), 0);
	wait_for_answer(r, &a.calls);
	cr_expect_eq(a.status, 0);
	cr_expect_eq(a.bytes[0], 7);
}

/* Its worker can be killed, so nothing hangs once the request is given up. */
Test(reader, memory_that_hangs_its_reader_costs_only_its_request)
{
	const uint32_t uid = 1000, other_uid = 1001;
	struct answer hung;
	struct workerpool *r;
	uint64_t at;
	pid_t other = sleeper(), pit = tar_pit_process(&at);

	start(&r);
	const uint64_t begun_ns = clock_mono_ns();

	cr_assert_eq(ask(r, (uint32_t)pit, uid, at, &hung), 0);
	/* Other requests continue meanwhile, also those of the same owner. On a busy machine that
	 * may take longer. */
	expect_word(r, other, other_uid);
	expect_word(r, other, uid);
	cr_expect(!hung.calls || clock_mono_ns() - begun_ns > READER_DEADLINE_NS);
	wait_for_answer(r, &hung.calls);
	cr_expect_eq(hung.status, -ETIMEDOUT);
	for (uint64_t until = clock_mono_ns() + PATIENCE_NS; hanging(r) && clock_mono_ns() < until;)
		usleep(1000);
	cr_expect_eq(hanging(r), 0);
	/* It is left alone for a while. */
	cr_assert_eq(ask(r, (uint32_t)pit, uid, at, &hung), 0);
	wait_for_answer(r, &hung.calls);
	cr_expect_eq(hung.status, -EBUSY);
	end(other);
	end(pit);
	finish(r);
}

/* Twenty users who block as many readers as they can. */
Test(reader, many_hanging_reads_do_not_delay_others)
{
	enum { USERS = 20, EACH = 3 };
	static struct answer hung[USERS * EACH];
	static uint64_t at[USERS * EACH];
	pid_t pits[USERS * EACH], other = sleeper();
	struct workerpool *r;

	for (unsigned i = 0; i < USERS * EACH; i++)
		pits[i] = tar_pit_process(&at[i]);
	start(&r);
	for (unsigned i = 0; i < USERS * EACH; i++)
		cr_assert_eq(ask(r, (uint32_t)pits[i], 2000 + i / EACH, at[i], &hung[i]), 0);
	const uint64_t began_ns = clock_mono_ns();

	expect_word(r, other, 1001);
	/* It may have to wait for each of them once, four at a time. */
	cr_expect_lt(clock_mono_ns() - began_ns, (USERS / 4 + 3) * READER_DEADLINE_NS);
	for (unsigned i = 0; i < USERS * EACH; i++)
		end(pits[i]);
	end(other);
	finish(r);
}
