/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-send/queue/queue.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/base/files/fd.h"

#define KEY 0x0123456789abcdefu
#define BYTES 1000

static char folder[] = "/tmp/queue.XXXXXX";
static struct spool none = { .folder = -1 };
static struct spool spool = { .folder = -1 };
static const struct spool_owners owners = { .user = 0 };

static void make_folder(void)
{
	cr_assert(mkdtemp(folder) != NULL);
	cr_assert_eq(spool_open(&spool, folder, &owners, true), 0);
}

static void remove_folder(void)
{
	char command[64];

	spool_close(&spool);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	cr_assert_eq(system(command), 0);
}

TestSuite(queue, .init = make_folder, .fini = remove_folder);

/* A request whose bytes begin with its number. */
static void put(struct queue *q, uint8_t number)
{
	uint8_t bytes[BYTES] = { number };
	struct request *r =
		request_new(&(struct request_facts){ .id = number, .samples = 10, .size = BYTES },
			    (struct span){ .data = bytes, .len = sizeof(bytes) });

	queue_put(q, r);
	request_drop(r);
}

/* Delivers the next request and returns its number; -1: there is none. */
static int next(struct queue *q)
{
	struct request *r = queue_begin(q);

	if (!r)
		return -1;
	const int number = request_bytes(r).data[0];

	cr_assert_eq(request_bytes(r).len, BYTES);
	cr_assert_eq(r->facts.id, (uint64_t)number);
	request_drop(r);
	queue_deliver(q, false, 0);
	return number;
}

static const struct queue_limits wide = { .memory_max = 1 << 20,
					  .count_max = 100,
					  .spool_max = 1 << 20 };

Test(queue, the_oldest_is_first_and_stays_until_it_is_delivered)
{
	struct queue q;

	queue_init(&q, &wide, &none, KEY);
	cr_assert_null(queue_begin(&q));
	put(&q, 1);
	put(&q, 2);
	struct request *r = queue_begin(&q);

	cr_assert_eq(request_bytes(r).data[0], 1);
	request_drop(r);
	queue_again(&q);
	cr_assert_eq(next(&q), 1);
	cr_assert_eq(next(&q), 2);
	cr_assert(queue_is_empty(&q));
	cr_assert_eq(q.counts.delivered, 2);
	cr_assert_eq(q.counts.samples, 20);
	cr_assert_eq(q.memory, 0);
	queue_done(&q);
}

Test(queue, a_full_one_drops_the_oldest_but_not_the_one_that_is_sent)
{
	const struct queue_limits narrow = { .memory_max = 3 * (BYTES + 100),
					     .count_max = 100,
					     .spool_max = 1 };
	struct queue q;

	queue_init(&q, &narrow, &none, KEY);
	for (uint8_t i = 1; i <= 3; i++)
		put(&q, i);
	struct request *r = queue_begin(&q);

	put(&q, 4);
	put(&q, 5);
	cr_assert_eq(q.counts.lost[QUEUE_FULL], 2);
	cr_assert_eq(q.counts.lost_samples, 20);
	cr_assert_eq(request_bytes(r).data[0], 1);
	request_drop(r);
	queue_deliver(&q, true, 4);
	cr_assert_eq(q.counts.partial, 1);
	cr_assert_eq(q.counts.rejected, 4);
	cr_assert_eq(next(&q), 4);
	cr_assert_eq(next(&q), 5);
	queue_done(&q);
}

Test(queue, the_number_of_requests_is_bounded_as_well)
{
	const struct queue_limits few = { .memory_max = 1 << 20,
					  .count_max = 2,
					  .spool_max = 1 << 20 };
	struct queue q;

	queue_init(&q, &few, &none, KEY);
	for (uint8_t i = 1; i <= 5; i++)
		put(&q, i);
	cr_assert_eq(q.counts.lost[QUEUE_FULL], 3);
	cr_assert_eq(next(&q), 4);
	queue_done(&q);
}

Test(queue, requests_left_at_the_end_are_lost_or_kept)
{
	struct queue q;

	queue_init(&q, &wide, &none, KEY);
	put(&q, 1);
	request_drop(queue_begin(&q));
	put(&q, 2);
	queue_end(&q);
	cr_assert_eq(q.counts.lost[QUEUE_UNDELIVERED], 2);
	cr_assert_eq(queue_lost(&q.counts), 2);

	queue_init(&q, &wide, &spool, KEY);
	put(&q, 1);
	put(&q, 2);
	cr_assert_eq(q.memory, 0);
	queue_end(&q);
	cr_assert_eq(q.counts.kept, 2);
	cr_assert_eq(queue_lost(&q.counts), 0);
}

Test(queue, the_spool_survives_and_is_continued_in_order)
{
	struct spool_found found;
	struct queue q;

	queue_init(&q, &wide, &spool, KEY);
	for (uint8_t i = 1; i <= 3; i++)
		put(&q, i);
	cr_assert_eq(next(&q), 1);
	queue_done(&q);

	queue_init(&q, &wide, &spool, KEY);
	cr_assert_eq(queue_resume(&q, &found), 0);
	cr_assert_eq(found.n, 2);
	put(&q, 4);
	cr_assert_eq(next(&q), 2);
	cr_assert_eq(next(&q), 3);
	cr_assert_eq(next(&q), 4);
	cr_assert_eq(q.counts.taken, 3);
	cr_assert_eq(q.spooled, 0);
	queue_done(&q);

	queue_init(&q, &wide, &spool, KEY);
	cr_assert_eq(queue_resume(&q, &found), 0);
	cr_assert_eq(found.n, 0);
	queue_done(&q);
}

Test(queue, a_file_that_is_torn_later_is_counted)
{
	struct queue q;
	char name[SPOOLFILE_NAME];

	queue_init(&q, &wide, &spool, KEY);
	put(&q, 1);
	put(&q, 2);
	spoolfile_name(KEY, 1, name);
	int fd = openat(spool.folder, name, O_WRONLY | O_CLOEXEC);

	cr_assert_eq(pwrite(fd, "x", 1, SPOOLFILE_HEAD + 5), 1);
	fd_close(&fd);
	cr_assert_eq(next(&q), 2);
	cr_assert_eq(q.counts.lost[QUEUE_DAMAGED], 1);
	cr_assert_eq(faccessat(spool.folder, name, F_OK, 0), -1);
	queue_done(&q);
}

Test(queue, endpoints_have_files_of_their_own)
{
	struct spool_found found;
	struct queue q;

	queue_init(&q, &wide, &spool, KEY);
	put(&q, 1);
	queue_done(&q);
	queue_init(&q, &wide, &spool, KEY + 1);
	cr_assert_eq(queue_resume(&q, &found), 0);
	cr_assert_eq(found.n, 0);
	queue_done(&q);
}

Test(queue, a_spool_that_takes_nothing_leaves_requests_in_memory)
{
	struct spool closed = { .folder = open("/proc/self", O_RDONLY | O_DIRECTORY) };
	struct queue q;

	queue_init(&q, &wide, &closed, KEY);
	put(&q, 1);
	cr_assert_lt(q.spool_failure, 0);
	cr_assert_eq(next(&q), 1);
	queue_done(&q);
	spool_close(&closed);
}

Test(queue, a_spool_of_others_is_refused)
{
	struct spool again = SPOOL_NONE;

	cr_assert_eq(spool_open(&again, folder, &owners, true), SPOOL_IN_USE);
	spool_close(&spool);
	cr_assert_eq(chmod(folder, 0770), 0);
	cr_assert_eq(spool_open(&again, folder, &owners, true), SPOOL_OPEN_TO_OTHERS);
	cr_assert_eq(chmod(folder, 0700), 0);
	if (geteuid() == 0) {
		cr_assert_eq(chown(folder, 4242, (gid_t)-1), 0);
		cr_assert_eq(spool_open(&again, folder, &owners, true), SPOOL_OPEN_TO_OTHERS);
		const struct spool_owners earlier = { .first = 4240, .last = 4250 };

		cr_assert_eq(spool_open(&again, folder, &earlier, true), 0);
		spool_close(&again);
	}
}

Test(queue, a_request_expands_to_what_it_was)
{
	const struct span plain = { .data = (const uint8_t *)"hello hello hello", .len = 17 };
	struct request *r = request_compress(&(struct request_facts){ .size = 17 }, plain);
	uint8_t *frame;

	cr_assert_eq(request_expand(r, &frame), 0);
	cr_assert_eq(memcmp(frame, "\0\0\0\0\x11hello hello hello", 22), 0);
	free(frame);
	r->facts.size = 16;
	cr_assert_eq(request_expand(r, &frame), -EBADMSG);
	r->facts.size = 18;
	cr_assert_eq(request_expand(r, &frame), -EBADMSG);
	r->facts.size = REQUEST_MAX + 1;
	cr_assert_eq(request_expand(r, &frame), -EBADMSG);
	request_drop(r);
}
