/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tools/prof-export/session/journal.h"

static void no_beat(void *ctx)
{
	++*(unsigned *)ctx;
}

static int collect(void *ctx, struct span batch)
{
	return buf_append(ctx, batch.data, batch.len);
}

/* A stream of one sender, without an end. */
static struct buf stream(uint64_t epoch, unsigned samples, bool lost_its_own)
{
	struct buf b = BUF_INIT(0);
	struct stream_out o;

	stream_out_init(&o, 4096, collect, &b);
	stream_out_epoch(&o, epoch);
	cr_assert_eq(stream_put(&o, &(struct msg){ .id = MSG_HELLO,
						   .hello = { .schema = MSG_SCHEMA,
							      .kind = STREAM_NAMED } }),
		     0);
	cr_assert_eq(stream_put(&o, &(struct msg){ .id = MSG_STACK, .stack = { .id = 1 } }), 0);
	for (unsigned i = 0; i < samples; i++)
		cr_assert_eq(stream_put(&o, &(struct msg){ .id = MSG_SAMPLE,
							   .sample = { .stack = 1, .value = 1 } }),
			     0);
	if (lost_its_own)
		cr_assert_eq(stream_put(
				     &o,
				     &(struct msg) {
					     .id = MSG_END
					     , .end = {.reason = END_PEER_LOST }
				     }),
			     0);
	cr_assert_eq(stream_flush(&o), 0);
	stream_out_done(&o);
	return b;
}

static struct session session;

static void begin(void)
{
	const struct session_options o = { .format = FORMAT_FOLDED,
					   .memory_max = 4u << 20,
					   .many = true };

	cr_assert_eq(session_init(&session, &o, -1), 0);
}

static uint64_t samples(void)
{
	return model_totals(session.model)->samples;
}

static void feed(struct journal *j, const struct buf *b)
{
	cr_assert_leq(journal_feed(j, &session, buf_span(b)), STREAM_AGAIN);
	if (session.lost)
		journal_reopen(j, &session);
}

/* A successor's session, and the samples in it. */
static uint64_t again(struct journal *j)
{
	unsigned beats = 0;

	session_done(&session);
	begin();
	j->bytes = 0;
	cr_assert_eq(journal_replay(j, &session, no_beat, &beats), STREAM_AGAIN);
	cr_assert_gt(beats, 0);
	return samples();
}

static void end(struct journal *j, struct buf *a, struct buf *b, struct buf *c)
{
	session_done(&session);
	buf_done(a);
	buf_done(b);
	buf_done(c);
	close(j->fd);
}

Test(journal, successor_has_all_and_goes_on_behind_a_message_that_was_cut)
{
	struct journal j = { .fd = memfd_create("journal", 0), .max = 1u << 20 };
	struct buf a = stream(1, 100, true), b = stream(2, 50, false), c = stream(3, 7, false);

	begin();
	feed(&j, &a);
	feed(&j, &b);
	cr_assert_eq(lseek(j.fd, 0, SEEK_END), (off_t)(a.len + b.len));
	/* Killed in the middle of the last message. */
	cr_assert_eq(ftruncate(j.fd, (off_t)(a.len + b.len - 1)), 0);
	cr_assert_eq(again(&j), 149);
	cr_assert_lt(j.bytes, a.len + b.len - 1);
	cr_assert_eq(lseek(j.fd, 0, SEEK_END), (off_t)j.bytes);
	feed(&j, &c);
	cr_assert_eq(samples(), 156);
	/* And the next one after that. */
	cr_assert_eq(again(&j), 156);
	cr_assert_eq(model_totals(session.model)->lost[LOST_MALFORMED], 0);
	end(&j, &a, &b, &c);
}

Test(journal, what_a_sender_left_half_said_or_said_wrong_is_not_in_the_way_of_the_next)
{
	struct journal j = { .fd = memfd_create("journal", 0), .max = 1u << 20 };
	struct buf a = stream(1, 10, false), b = stream(2, 20, false), c = stream(3, 30, false);
	const uint8_t wrong = 0xc1;

	begin();
	/* Half a message, and the sender goes. */
	a.len--;
	feed(&j, &a);
	journal_reopen(&j, &session);
	cr_assert_lt(j.bytes, a.len);
	/* No message, and it is shut out. */
	cr_assert_eq(buf_append(&b, &wrong, 1), 0);
	cr_assert_eq(journal_feed(&j, &session, buf_span(&b)), STREAM_MALFORMED);
	/* Killed before it was. */
	cr_assert_eq(again(&j), 29);
	cr_assert_eq(model_totals(session.model)->lost[LOST_MALFORMED], 1);
	feed(&j, &c);
	cr_assert_eq(again(&j), 59);
	cr_assert_eq(model_totals(session.model)->lost[LOST_MALFORMED], 0);
	end(&j, &a, &b, &c);
}

Test(journal, beyond_its_ceiling_nothing_is_kept)
{
	struct buf a = stream(1, 100, false), b = stream(2, 100, false), c = stream(3, 1, false);
	struct journal j = { .fd = memfd_create("journal", 0), .max = a.len + b.len - 1 };

	begin();
	feed(&j, &a);
	feed(&j, &b);
	/* Nor what would fit: what is between would be missing. */
	feed(&j, &c);
	journal_reopen(&j, &session);
	cr_assert_eq(samples(), 201);
	cr_assert_eq(j.bytes, a.len);
	cr_assert_eq(lseek(j.fd, 0, SEEK_END), (off_t)a.len);
	end(&j, &a, &b, &c);
}

Test(journal, without_a_file_there_is_nothing)
{
	struct buf a = stream(1, 100, false);
	struct journal j = JOURNAL_NONE;
	unsigned beats = 0;

	begin();
	cr_assert_eq(journal_replay(&j, &session, no_beat, &beats), STREAM_AGAIN);
	feed(&j, &a);
	journal_reopen(&j, &session);
	cr_assert_eq(samples(), 100);
	session_done(&session);
	buf_done(&a);
}
