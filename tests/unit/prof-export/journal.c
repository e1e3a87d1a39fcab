/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
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
							      .kind = MSG_STREAM_NAMED } }),
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
					     , .end = {.reason = MSG_END_PEER_LOST }
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

Test(journal, a_successor_continues_behind_a_truncated_message)
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
	/* And the next message after that. */
	cr_assert_eq(again(&j), 156);
	cr_assert_eq(model_totals(session.model)->lost[LOST_MALFORMED], 0);
	end(&j, &a, &b, &c);
}

Test(journal, a_senders_partial_or_malformed_message_does_not_hinder_the_next)
{
	struct journal j = { .fd = memfd_create("journal", 0), .max = 1u << 20 };
	struct buf a = stream(1, 10, false), b = stream(2, 20, false), c = stream(3, 30, false);
	const uint8_t wrong = 0xc1;

	begin();
	/* Half a message, and then the sender goes. */
	a.len--;
	feed(&j, &a);
	journal_reopen(&j, &session);
	cr_assert_lt(j.bytes, a.len);
	/* A malformed message: its sender is disconnected. */
	cr_assert_eq(buf_append(&b, &wrong, 1), 0);
	cr_assert_eq(journal_feed(&j, &session, buf_span(&b)), STREAM_MALFORMED);
	/* Killed before it was disconnected. */
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
	/* Nor is a later one that would fit, since the messages in between would be missing. */
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

/* The second journal alone leads the successor to the second output. */
Test(journal, the_next_journal_begins_with_the_facts_a_successor_needs)
{
	struct journal j = { .fd = memfd_create("first", 0), .max = 1u << 20 };
	const int first = j.fd, second = memfd_create("second", 0),
		  output = memfd_create("output", 0);
	struct buf a = stream(1, 10, false), b = stream(2, 0, false), c = { 0 };
	struct stream_out o;
	struct status st;

	begin();
	session.output.fd = output;
	feed(&j, &a);
	cr_assert_not(stream_turns(&session.in, buf_span(&a)), "the same epoch");
	cr_assert(stream_turns(&session.in, buf_span(&b)));
	cr_assert_eq(session_turn(&session, -1, &st), 0);
	cr_assert_eq(st.samples, 10);
	cr_assert_eq(st.bytes, (uint64_t)lseek(output, 0, SEEK_END));
	journal_next(&j, second, session.model);
	/* prof-symd begins an epoch like this, without another hello. */
	c = BUF_INIT(0);
	stream_out_init(&o, 4096, collect, &c);
	stream_out_epoch(&o, 2);
	cr_assert_eq(stream_put(&o, &(struct msg){ .id = MSG_STACK, .stack = { .id = 1 } }), 0);
	for (int i = 0; i < 4; i++)
		cr_assert_eq(stream_put(&o, &(struct msg){ .id = MSG_SAMPLE,
							   .sample = { .stack = 1, .value = 1 } }),
			     0);
	cr_assert_eq(stream_flush(&o), 0);
	stream_out_done(&o);
	feed(&j, &c);
	cr_assert_eq(samples(), 4);
	cr_assert_eq(again(&j), 4);
	cr_assert_eq(model_totals(session.model)->lost[LOST_SEQUENCE], 0);
	close(first);
	close(output);
	end(&j, &a, &b, &c);
}

/* --- a format that grows --- */

#define MAX 16384u

struct run {
	struct journal journal;
	int output;
	uint64_t epoch, time_ns;
};

static void begin_run(struct run *r, enum format format, int output)
{
	const struct session_options o = { .format = format,
					   .reporting = REPORTING_DEFAULTS,
					   .memory_max = 4u << 20,
					   .many = true };

	if (r->output < 0)
		r->output = memfd_create("output", 0);
	if (r->journal.fd <= 0)
		r->journal.fd = memfd_create("journal", 0);
	r->journal = (struct journal){ .fd = r->journal.fd, .max = MAX };
	cr_assert_eq(session_init(&session, &o, output), 0);
}

/* An epoch with its definitions and this many samples, in several batches. A stream continues. */
static void feed_epoch(struct run *r, unsigned samples, bool hello)
{
	struct buf b = BUF_INIT(0);
	struct stream_out o;

	stream_out_init(&o, 1024, collect, &b);
	stream_out_epoch(&o, ++r->epoch);
	if (hello)
		cr_assert_eq(stream_put(&o, &(struct msg){ .id = MSG_HELLO,
							   .hello = { .schema = MSG_SCHEMA,
								      .kind = MSG_STREAM_NAMED,
								      .hostname = STR_LIT("h") } }),
			     0);
	cr_assert_eq(stream_put(&o, &(struct msg){ .id = MSG_PROCESS,
						   .process = { .id = 1, .pid = 1 } }),
		     0);
	cr_assert_eq(stream_put(&o, &(struct msg){ .id = MSG_THREAD,
						   .thread = { .id = 1, .process = 1, .tid = 1 } }),
		     0);
	cr_assert_eq(stream_put(&o, &(struct msg){ .id = MSG_STACK, .stack = { .id = 1 } }), 0);
	for (unsigned i = 0; i < samples; i++) {
		cr_assert_eq(stream_put(&o, &(struct msg){ .id = MSG_SAMPLE,
							   .sample = { .stack = 1,
								       .thread = 1,
								       .time_ns = ++r->time_ns,
								       .value = 1 } }),
			     0);
		if (i % 50 == 49)
			cr_assert_eq(stream_flush(&o), 0);
		if (b.len) {
			cr_assert_eq(journal_feed(&r->journal, &session, buf_span(&b)),
				     STREAM_AGAIN);
			buf_reset(&b);
		}
	}
	cr_assert_eq(stream_flush(&o), 0);
	cr_assert_eq(journal_feed(&r->journal, &session, buf_span(&b)), STREAM_AGAIN);
	stream_out_done(&o);
	buf_done(&b);
}

/* As after SIGKILL during a write to the output and one to the journal. */
static void kill_run(struct run *r, enum format format)
{
	unsigned beats = 0;

	cr_assert_eq(lseek(r->output, 0, SEEK_END) >= 0, 1);
	cr_assert_eq(write(r->output, "torn", 4), 4);
	cr_assert_eq(lseek(r->journal.fd, 0, SEEK_END) >= 0, 1);
	cr_assert_eq(write(r->journal.fd, "\x92", 1), 1);
	session_done(&session);
	cr_assert_eq(lseek(r->output, 0, SEEK_SET), 0);
	begin_run(r, format, r->output);
	cr_assert(journal_holds(&r->journal));
	cr_assert_eq(journal_replay(&r->journal, &session, no_beat, &beats), STREAM_AGAIN);
}

static uint64_t journal_space(const struct run *r)
{
	struct stat st;

	cr_assert_eq(fstat(r->journal.fd, &st), 0);
	return (uint64_t)st.st_blocks * 512;
}

/* The number of samples in the output, which is text or a recording. */
static uint64_t samples_of(int output, enum format format)
{
	static char text[4u << 20];
	const ssize_t n = pread(output, text, sizeof(text) - 1, 0);
	uint64_t count = 0;

	cr_assert(n >= 0 && n < (ssize_t)sizeof(text) - 1);
	text[n] = '\0';
	cr_assert_null(strstr(text, "torn"));
	if (format == FORMAT_TEXT) {
		/* The first line of a sample starts with its name. */
		for (const char *at = strstr(text, "pid-1"); at; at = strstr(at + 1, "pid-1"))
			count++;
		return count;
	}
	const struct session_options o = { .format = FORMAT_FOLDED, .memory_max = 4u << 20 };
	struct session reader;
	const int null = memfd_create("null", 0);

	cr_assert_eq(session_init(&reader, &o, null), 0);
	for (ssize_t at = 0; at < n; at += 65536)
		cr_assert_leq(
			session_feed(
				&reader,
				(struct span){ .data = (const uint8_t *)text + at,
					       .len = (size_t)(n - at < 65536 ? n - at : 65536) }),
			STREAM_AGAIN);
	count = model_totals(reader.model)->samples;
	cr_assert_eq(model_totals(reader.model)->lost[LOST_SEQUENCE], 0);
	session_done(&reader);
	close(null);
	return count;
}

/* 60 epochs that would fill the journal many times, with a kill now and then. */
static void run_for_long(enum format format)
{
	struct run r = { .output = -1 };
	uint64_t samples = 0, most = 0;

	begin_run(&r, format, memfd_create("output", 0));
	r.output = session.output.fd;
	for (unsigned i = 0; i < 60; i++) {
		feed_epoch(&r, 100 + i, i == 0 || i % 7 == 0);
		samples += 100 + i;
		most = journal_space(&r) > most ? journal_space(&r) : most;
		if (i % 7 == 6)
			kill_run(&r, format);
		cr_assert_eq(model_totals(session.model)->samples, samples, "%u", i);
	}
	cr_assert(r.journal.rolled);
	cr_assert_gt(r.journal.bytes, MAX);
	cr_assert_lt(most, MAX + 5 * 4096u);
	cr_assert_eq(model_totals(session.model)->lost[LOST_MALFORMED], 0);
	cr_assert_eq(session_finish(&session), 0);
	cr_assert_eq(samples_of(r.output, format), samples);
	session_done(&session);
	close(r.journal.fd);
	close(r.output);
}

Test(journal, an_endless_text_needs_bounded_space)
{
	run_for_long(FORMAT_TEXT);
}

Test(journal, an_endless_recording_needs_bounded_space)
{
	run_for_long(FORMAT_STREAM);
}

Test(journal, without_new_epochs_the_output_keeps_what_it_has)
{
	struct run r = { .output = -1 };

	begin_run(&r, FORMAT_TEXT, memfd_create("output", 0));
	r.output = session.output.fd;
	feed_epoch(&r, 3000, true);
	cr_assert(r.journal.full && r.journal.rolled);
	const uint64_t kept = session.output.bytes;

	cr_assert_gt(kept, 0);
	kill_run(&r, FORMAT_TEXT);
	/* Exactly the bytes behind the mark are lost. */
	cr_assert_eq(session.output.bytes, kept);
	const uint64_t samples = model_totals(session.model)->samples;

	cr_assert(samples > 500 && samples < 3000);
	cr_assert_eq(samples_of(r.output, FORMAT_TEXT), samples);
	feed_epoch(&r, 10, true);
	cr_assert_eq(session_finish(&session), 0);
	cr_assert_eq(samples_of(r.output, FORMAT_TEXT), samples + 10);
	session_done(&session);
	close(r.journal.fd);
	close(r.output);
}

Test(journal, a_mark_that_was_falsified_is_refused)
{
	struct run r = { .output = -1 };
	unsigned beats = 0;

	begin_run(&r, FORMAT_TEXT, memfd_create("output", 0));
	r.output = session.output.fd;
	for (unsigned i = 0; i < 20; i++)
		feed_epoch(&r, 100, i == 0);
	cr_assert(r.journal.rolled);
	const off_t size = lseek(r.output, 0, SEEK_END);

	session_done(&session);
	cr_assert_eq(pwrite(r.journal.fd, "\xff", 1, 8), 1);
	begin_run(&r, FORMAT_TEXT, r.output);
	cr_assert_eq(journal_replay(&r.journal, &session, no_beat, &beats), -EBADMSG);
	cr_assert_eq(lseek(r.output, 0, SEEK_END), size);
	session_done(&session);
	close(r.journal.fd);
	close(r.output);
}
