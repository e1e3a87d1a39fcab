/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include "common/base/clock.h"
#include "tools/prof-bpf/open/reader.h"

#define PAGE 4096u
#define PATIENCE_NS 10000000000ull

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

static void wait_for(struct reader *r, const struct answer *a)
{
	uint64_t end = clock_mono_ns() + PATIENCE_NS;

	while (!a->calls && clock_mono_ns() < end) {
		struct pollfd p = { .fd = reader_fd(r), .events = POLLIN };

		poll(&p, 1, 20);
		reader_run(r, clock_mono_ns());
	}
	cr_assert_eq(a->calls, 1);
}

static int ask(struct reader *r, uint32_t pid, uint32_t uid, uint64_t address, struct answer *a)
{
	const uint64_t length = 16;
	const struct reader_request q = { .fd = -1,
					  .pid = pid,
					  .uid = uid,
					  .pieces = 1,
					  .addresses = &address,
					  .lengths = &length };

	*a = (struct answer){ 0 };
	return reader_submit(r, &q, take, a);
}

/* A process that has what we have, and does nothing. */
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

/* Memory that whoever reads it waits for, until *ret_fd is closed. */
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

Test(reader, what_is_there_of_each_piece_is_read)
{
	uint8_t *at = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			   0);
	struct answer a = { 0 };
	struct reader *r;

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
	cr_assert_eq(reader_new(&r), 0);
	cr_assert_eq(reader_submit(r, &q, take, &a), 0);
	wait_for(r, &a);
	cr_expect_eq(a.status, 0);
	cr_expect(a.lengths[0] == 8 && a.lengths[1] == 8 && a.lengths[5] == 5);
	cr_expect(a.lengths[2] == 0 && a.lengths[3] == 0 && a.lengths[4] == 0);
	cr_expect_eq(a.len, 21);
	reader_free(r);
}

Test(reader, pieces_of_a_file_are_read_and_its_descriptor_is_closed)
{
	int fd = memfd_create("file", MFD_CLOEXEC);
	const uint64_t addresses[] = { 2, 100, UINT64_MAX }, lengths[] = { 4, 4, 4 };
	const struct reader_request q = {
		.fd = fd, .pieces = 3, .addresses = addresses, .lengths = lengths
	};
	struct answer a = { 0 };
	struct reader *r;

	cr_assert_eq(write(fd, "0123456789", 10), 10);
	cr_assert_eq(reader_new(&r), 0);
	cr_assert_eq(reader_submit(r, &q, take, &a), 0);
	wait_for(r, &a);
	cr_expect_eq(a.status, 0);
	cr_expect(a.lengths[0] == 4 && a.lengths[1] == 0 && a.lengths[2] == 0);
	cr_expect_eq(memcmp(a.bytes, "2345", 4), 0);
	cr_expect_eq(fcntl(fd, F_GETFD), -1);
	reader_free(r);
}

Test(reader, a_process_that_is_gone_is_an_error)
{
	pid_t pid = sleeper();
	struct answer a;
	struct reader *r;

	end(pid);
	cr_assert_eq(reader_new(&r), 0);
	cr_assert_eq(ask(r, (uint32_t)pid, 1, 0x10000, &a), 0);
	wait_for(r, &a);
	cr_expect_eq(a.status, -ESRCH);
	reader_free(r);
}

Test(reader, memory_that_hangs_its_reader_costs_its_owner_alone)
{
	const uint32_t me = (uint32_t)getpid(), uid = 1000, other_uid = 1001;
	struct answer hung, a;
	struct reader *r;
	int uffd;
	pid_t other = sleeper();
	uint8_t *at = tar_pit(&uffd);
	static const uint64_t word = 7;

	cr_assert_eq(reader_new(&r), 0);
	cr_assert_eq(ask(r, me, uid, (uintptr_t)at, &hung), 0);
	/* What waits behind it is read when it is given up. */
	cr_assert_eq(ask(r, (uint32_t)other, uid, (uintptr_t)&word, &a), 0);
	wait_for(r, &hung);
	cr_expect_eq(hung.status, -ETIMEDOUT);
	wait_for(r, &a);
	cr_expect_eq(a.status, 0);
	cr_expect_eq(a.bytes[0], 7);
	cr_expect_eq(reader_hanging(r), 1);
	/* Its process is not read again, another of the same user is, and of other users any. */
	cr_expect_eq(ask(r, me, uid, (uintptr_t)&word, &a), -EACCES);
	cr_assert_eq(ask(r, me + 1, uid, (uintptr_t)&word, &a), 0);
	wait_for(r, &a);
	/* A second one of that user (the same memory under another number would not be found). */
	cr_assert_eq(ask(r, (uint32_t)other, other_uid, (uintptr_t)&word, &a), 0);
	wait_for(r, &a);
	cr_expect_eq(a.status, 0);
	/* It lets go. */
	close(uffd);
	for (uint64_t until = clock_mono_ns() + PATIENCE_NS;
	     reader_hanging(r) && clock_mono_ns() < until;)
		usleep(1000);
	cr_expect_eq(reader_hanging(r), 0);
	cr_assert_eq(ask(r, me, uid, (uintptr_t)&word, &a), 0);
	wait_for(r, &a);
	cr_expect_eq(a.status, 0);
	end(other);
	reader_free(r);
}

Test(reader, who_hangs_it_twice_is_read_no_more_and_others_are)
{
	struct answer hung, a;
	struct reader *r;
	pid_t pits[READER_HANGING], other = sleeper();
	static const uint64_t word = 7;
	unsigned n = 0;

	cr_assert_eq(reader_new(&r), 0);
	/* Each hangs in a process of its own; two of a user, until all that there may be do. */
	for (; n < READER_HANGING; n++) {
		int to[2];
		uint64_t at;

		cr_assert_eq(pipe(to), 0);
		pits[n] = fork();
		if (pits[n] == 0) {
			int uffd;

			at = (uintptr_t)tar_pit(&uffd);
			(void)!write(to[1], &at, sizeof(at));
			for (;;)
				pause();
		}
		cr_assert_eq(read(to[0], &at, sizeof(at)), sizeof(at));
		close(to[0]);
		close(to[1]);
		uint32_t uid = 1000 + n / READER_HANGING_OF_USER;
		cr_assert_eq(ask(r, (uint32_t)pits[n], uid, at, &hung), 0);
		wait_for(r, &hung);
		cr_assert_eq(hung.status, -ETIMEDOUT);
		if (n % READER_HANGING_OF_USER == READER_HANGING_OF_USER - 1)
			cr_expect_eq(ask(r, (uint32_t)other, uid, (uintptr_t)&word, &a), -EACCES);
		if (n + 1 == READER_HANGING)
			break;
		cr_assert_eq(ask(r, (uint32_t)other, 0, (uintptr_t)&word, &a), 0);
		wait_for(r, &a);
		cr_expect_eq(a.bytes[0], 7);
	}
	cr_expect_eq(ask(r, (uint32_t)other, 0, (uintptr_t)&word, &a), -EAGAIN);
	/* Their end is that of the waiting, too. */
	for (unsigned i = 0; i <= n; i++)
		end(pits[i]);
	for (uint64_t until = clock_mono_ns() + PATIENCE_NS;
	     reader_hanging(r) && clock_mono_ns() < until;)
		usleep(1000);
	cr_expect_eq(reader_hanging(r), 0);
	cr_assert_eq(ask(r, (uint32_t)other, 0, (uintptr_t)&word, &a), 0);
	wait_for(r, &a);
	cr_expect_eq(a.bytes[0], 7);
	end(other);
	reader_free(r);
}
