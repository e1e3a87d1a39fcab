/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tools/prof-export/journal.h"

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
						   .hello = { .schema = msg_schema_hash(),
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
	const struct session_options o = { .format = SESSION_FOLDED,
					   .memory_max = 4u << 20,
					   .many = true };

	cr_assert_eq(session_init(&session, &o, -1), 0);
}

static uint64_t samples(void)
{
	return model_totals(session.model)->samples;
}

Test(journal, successor_has_all_and_goes_on_behind_a_message_that_was_cut)
{
	struct journal j = { .fd = memfd_create("journal", 0), .max = 1u << 20 };
	struct buf a = stream(1, 100, true), b = stream(2, 50, false), c = stream(3, 7, false);
	unsigned beats = 0;

	journal_put(&j, buf_span(&a));
	journal_put(&j, buf_span(&b));
	cr_assert_eq(lseek(j.fd, 0, SEEK_END), (off_t)(a.len + b.len));
	/* Killed in the middle of the last message. */
	cr_assert_eq(ftruncate(j.fd, (off_t)(a.len + b.len - 1)), 0);
	begin();
	j.bytes = 0;
	cr_assert_eq(journal_replay(&j, &session, no_beat, &beats), STREAM_AGAIN);
	cr_assert_gt(beats, 0);
	cr_assert_eq(samples(), 149);
	cr_assert_lt(j.bytes, a.len + b.len - 1);
	cr_assert_eq(session_feed(&session, buf_span(&c)), STREAM_AGAIN);
	journal_put(&j, buf_span(&c));
	cr_assert_eq(samples(), 156);
	session_done(&session);
	/* And the next one after that. */
	begin();
	j.bytes = 0;
	cr_assert_eq(journal_replay(&j, &session, no_beat, &beats), STREAM_AGAIN);
	cr_assert_eq(samples(), 156);
	cr_assert_eq(model_totals(session.model)->lost[LOST_MALFORMED], 0);
	session_done(&session);
	buf_done(&a);
	buf_done(&b);
	buf_done(&c);
	close(j.fd);
}

Test(journal, beyond_its_ceiling_nothing_is_kept)
{
	struct buf a = stream(1, 100, false);
	struct journal j = { .fd = memfd_create("journal", 0), .max = a.len + 1 };

	journal_put(&j, buf_span(&a));
	journal_put(&j, buf_span(&a));
	cr_assert_eq(j.bytes, a.len);
	cr_assert_eq(lseek(j.fd, 0, SEEK_END), (off_t)a.len);
	buf_done(&a);
	close(j.fd);
}

Test(journal, without_a_file_there_is_nothing)
{
	struct journal j = JOURNAL_NONE;
	unsigned beats = 0;

	begin();
	cr_assert_eq(journal_replay(&j, &session, no_beat, &beats), STREAM_AGAIN);
	journal_put(&j, (struct span){ .data = (const uint8_t *)"x", .len = 1 });
	session_done(&session);
}
