/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/stream.h"

#include <criterion/criterion.h>
#include <errno.h>

/* A pipe that keeps what was flushed, and can refuse. */
struct sink {
	struct buf bytes;
	unsigned batches;
	size_t largest;
	int refuse;   /* an errno to give, or 0 */
	bool swallow; /* drop what comes */
};

static int sink_flush(void *ctx, struct span batch)
{
	struct sink *k = ctx;

	if (k->refuse)
		return k->refuse;
	k->batches++;
	if (batch.len > k->largest)
		k->largest = batch.len;
	return k->swallow ? 0 : buf_append(&k->bytes, batch.data, batch.len);
}

static struct msg hello(void)
{
	return (struct msg){ .id = MSG_HELLO,
			     .hello = { .schema = MSG_SCHEMA, .producer = STR_LIT("test") } };
}

static struct msg sample(uint64_t n)
{
	return (struct msg){ .id = MSG_SAMPLE,
			     .sample = { .stack = n, .thread = 1, .time_ns = n << 30 } };
}

static void put(struct stream_out *out, struct msg m)
{
	cr_assert_eq(stream_put(out, &m), 0);
}

static void feed(struct stream_in *in, const struct buf *b)
{
	cr_assert_eq(stream_feed(in, buf_span(b)), 0);
}

Test(stream, messages_arrive_in_order_whatever_the_pieces)
{
	struct sink k = { 0 };
	struct stream_out out;

	stream_out_init(&out, 200, sink_flush, &k);
	put(&out, hello());
	for (uint64_t i = 1; i <= 500; i++)
		put(&out, sample(i));
	put(
		&out, (struct msg) { .id = MSG_END });
	cr_assert_eq(stream_flush(&out), 0);
	cr_assert_gt(k.batches, 20);
	cr_assert_leq(k.largest, 200);
	for (size_t piece = 1; piece <= 4096; piece *= 4) {
		struct stream_in in;
		uint64_t next = 0;

		stream_in_init(&in);
		for (size_t at = 0; at < k.bytes.len; at += piece) {
			const size_t n = k.bytes.len - at < piece ? k.bytes.len - at : piece;
			struct msg m;
			int r;

			cr_assert_eq(stream_feed(&in, (struct span){ .data = k.bytes.data + at,
								     .len = n }),
				     0);
			while ((r = stream_next(&in, &m)) == 0) {
				if (m.id == MSG_SAMPLE)
					cr_assert_eq(m.sample.stack, next);
				next++;
			}
			cr_assert_eq(r, STREAM_AGAIN);
		}
		cr_assert_eq(next, 502);
		cr_assert(in.ended);
		cr_assert_eq(stream_missing(&in), 0);
		cr_assert_not(in.new_epoch);
		stream_in_done(&in);
	}
	buf_done(&k.bytes);
	stream_out_done(&out);
}

Test(stream, refused_batch_is_kept_and_the_message_is_not_packed)
{
	struct sink k = { 0 };
	struct stream_out out;
	struct msg m = sample(1);

	stream_out_init(&out, 100, sink_flush, &k);
	put(&out, hello());
	k.refuse = -EAGAIN;
	int r;

	while ((r = stream_put(&out, &m)) == 0)
		m.sample.stack++;
	cr_assert_eq(r, -EAGAIN);
	cr_assert_eq(stream_put(&out, &m), -EAGAIN);
	cr_assert_eq(stream_flush(&out), -EAGAIN);
	k.refuse = 0;
	const uint64_t last = m.sample.stack;

	put(&out, m);
	cr_assert_eq(stream_flush(&out), 0);
	struct stream_in in;

	stream_in_init(&in);
	feed(&in, &k.bytes);
	cr_assert_eq(stream_next(&in, &m), 0);
	cr_assert_eq(m.id, MSG_HELLO);
	for (uint64_t i = 1; i <= last; i++) {
		cr_assert_eq(stream_next(&in, &m), 0);
		cr_assert_eq(m.sample.stack, i);
	}
	cr_assert_eq(stream_next(&in, &m), STREAM_AGAIN);
	cr_assert_eq(stream_missing(&in), 0);
	stream_in_done(&in);
	stream_out_done(&out);
	buf_done(&k.bytes);
}

Test(stream, dropped_batches_are_counted_once)
{
	struct sink k = { 0 };
	struct stream_out out;
	struct stream_in in;
	struct msg m;

	stream_out_init(&out, 1000, sink_flush, &k);
	stream_in_init(&in);
	put(&out, hello());
	cr_assert_eq(stream_flush(&out), 0);
	k.swallow = true;
	for (int i = 0; i < 7; i++)
		put(&out, sample(1));
	cr_assert_eq(stream_flush(&out), 0);
	k.swallow = false;
	put(&out, sample(2));
	cr_assert_eq(stream_flush(&out), 0);
	feed(&in, &k.bytes);
	cr_assert_eq(stream_next(&in, &m), 0);
	cr_assert_eq(stream_next(&in, &m), 0);
	cr_assert_eq(m.sample.stack, 2);
	cr_assert_eq(stream_missing(&in), 7);
	cr_assert_eq(stream_missing(&in), 0);
	stream_in_done(&in);
	stream_out_done(&out);
	buf_done(&k.bytes);
}

Test(stream, a_new_epoch_restarts_the_count_and_is_reported)
{
	struct sink k = { 0 };
	struct stream_out out;
	struct stream_in in;
	struct msg m;

	stream_out_init(&out, 1000, sink_flush, &k);
	stream_in_init(&in);
	put(&out, hello());
	put(&out, sample(1));
	cr_assert_eq(stream_flush(&out), 0);
	put(&out, sample(2));
	stream_out_epoch(&out, 2);
	put(&out, hello());
	put(&out, sample(3));
	cr_assert_eq(stream_flush(&out), 0);
	feed(&in, &k.bytes);
	cr_assert_eq(stream_next(&in, &m), 0);
	cr_assert_eq(stream_next(&in, &m), 0);
	cr_assert_not(in.new_epoch);
	cr_assert_eq(stream_next(&in, &m), 0);
	cr_assert(in.new_epoch);
	cr_assert_eq(m.id, MSG_HELLO);
	cr_assert_eq(stream_next(&in, &m), 0);
	cr_assert_eq(m.sample.stack, 3);
	cr_assert_eq(in.epoch, 2);
	cr_assert_eq(stream_missing(&in), 0);
	stream_in_done(&in);
	stream_out_done(&out);
	buf_done(&k.bytes);
}

/* The receiver's verdict on these messages, each in a batch of the given seq. */
static int verdict(const struct msg *all, size_t n)
{
	struct buf b = BUF_INIT(0);
	struct stream_in in;
	struct msg m;
	int r = 0;

	for (size_t i = 0; i < n; i++)
		cr_assert_eq(msg_encode(&b, &all[i]), 0);
	stream_in_init(&in);
	feed(&in, &b);
	while (!r)
		r = stream_next(&in, &m);
	cr_assert_eq(stream_next(&in, &m), r, "a verdict does not change");
	stream_in_done(&in);
	buf_done(&b);
	return r;
}

#define VERDICT(...) \
	verdict((struct msg[]){ __VA_ARGS__ }, \
		sizeof((struct msg[]){ __VA_ARGS__ }) / sizeof(struct msg))
#define HEAD(e, s) \
	{ \
		.id = MSG_BATCH_HEAD, .batch = {.epoch = (e), .seq = (s) } \
	}

Test(stream, the_beginning_of_an_epoch_is_known_before_it_is_fed)
{
	struct sink k = { 0 };
	struct stream_out out;
	struct stream_in in;
	struct msg m;

	stream_out_init(&out, 4096, sink_flush, &k);
	stream_in_init(&in);
	stream_out_epoch(&out, 7);
	put(&out, hello());
	put(&out, sample(1));
	cr_assert_eq(stream_flush(&out), 0);
	cr_assert_gt(out.bytes, 0);
	/* The first one follows nothing. */
	cr_assert_not(stream_begins_epoch(&in, buf_span(&k.bytes)));
	feed(&in, &k.bytes);
	buf_reset(&k.bytes);
	/* Messages that still wait belong to the former epoch. */
	stream_out_epoch(&out, 8);
	cr_assert_eq(out.bytes, 0);
	put(&out, sample(2));
	cr_assert_eq(stream_flush(&out), 0);
	cr_assert_not(stream_begins_epoch(&in, buf_span(&k.bytes)));
	cr_assert_eq(stream_next(&in, &m), 0);
	cr_assert_eq(stream_next(&in, &m), 0);
	cr_assert(stream_begins_epoch(&in, buf_span(&k.bytes)));
	cr_assert_not(stream_begins_epoch(&in, (struct span){ .data = k.bytes.data, .len = 1 }));
	cr_assert_not(stream_begins_epoch(&in, (struct span){ 0 }));
	feed(&in, &k.bytes);
	cr_assert_eq(stream_next(&in, &m), 0);
	cr_assert_not(stream_begins_epoch(&in, buf_span(&k.bytes)));
	stream_in_done(&in);
	stream_out_done(&out);
	buf_done(&k.bytes);
}

Test(stream, order_of_a_stream_is_kept_to)
{
	struct msg other = hello();

	other.hello.schema = MSG_SCHEMA + 1;
	cr_assert_eq(VERDICT(HEAD(1, 0), hello(), sample(1)), STREAM_AGAIN);
	cr_assert_eq(VERDICT(hello()), STREAM_MALFORMED);
	cr_assert_eq(VERDICT(HEAD(1, 0), sample(1)), STREAM_MALFORMED);
	cr_assert_eq(VERDICT(HEAD(1, 0), other), STREAM_SCHEMA);
	cr_assert_eq(VERDICT(HEAD(1, 0), hello(), sample(1), HEAD(1, 1)), STREAM_MALFORMED);
	cr_assert_eq(VERDICT(
			     HEAD(1, 0), hello(), { .id = MSG_END }, sample(1)),
		     STREAM_MALFORMED);
	cr_assert_eq(VERDICT(
			     HEAD(1, 0), hello(), { .id = MSG_END }, HEAD(1, 2)),
		     STREAM_MALFORMED);
}

Test(stream, other_bytes_are_malformed)
{
	struct stream_in in;
	struct msg m;

	stream_in_init(&in);
	cr_assert_eq(
		stream_feed(&in, (struct span){ .data = (const uint8_t *)"PERFILE2", .len = 8 }),
		0);
	cr_assert_eq(stream_next(&in, &m), STREAM_MALFORMED);
	stream_in_done(&in);
}

Test(stream, unknown_messages_are_skipped_and_not_counted_as_missing)
{
	struct buf b = BUF_INIT(0);
	struct stream_in in;
	struct msg m = HEAD(1, 0);

	cr_assert_eq(msg_encode(&b, &m), 0);
	m = hello();
	cr_assert_eq(msg_encode(&b, &m), 0);
	cr_assert_eq(buf_append(&b, "\x92\x3f\x91\x05", 4), 0);
	m = (struct msg)HEAD(1, 2);
	cr_assert_eq(msg_encode(&b, &m), 0);
	m = sample(9);
	cr_assert_eq(msg_encode(&b, &m), 0);
	stream_in_init(&in);
	feed(&in, &b);
	cr_assert_eq(stream_next(&in, &m), 0);
	cr_assert_eq(stream_next(&in, &m), 0);
	cr_assert_eq(m.sample.stack, 9);
	cr_assert_eq(stream_missing(&in), 0);
	stream_in_done(&in);
	buf_done(&b);
}

/* Appends a message of a later version, with two more fields. Its last one is not empty. */
static void put_later(struct buf *b, struct msg m)
{
	const size_t at = b->len + 2;

	cr_assert_eq(msg_encode(b, &m), 0);
	if (b->data[at] == 0xdc)
		b->data[at + 2] += 2;
	else
		b->data[at] += 2;
	cr_assert_eq(buf_append(b, "\x08\xa1x", 3), 0);
}

Test(stream, unknown_messages_and_fields_are_counted)
{
	struct buf b = BUF_INIT(0);
	struct stream_in in;
	struct msg m = hello();

	m.hello.no_memory = 1; /* the last field */
	/* A head whose first field is 1, with both its fields and two more. */
	cr_assert_eq(buf_append(&b, "\x92\x02\x94\x01\x00\x08\xa0", 7), 0);
	put_later(&b, m);
	cr_assert_eq(buf_append(&b, "\x92\x3f\x91\x05", 4), 0);
	put_later(
		&b, (struct msg) {
			.id = MSG_END
			, .end = {.time_ns = 9 }
		});
	stream_in_init(&in);
	feed(&in, &b);
	cr_assert_eq(stream_next(&in, &m), 0);
	cr_assert_eq(m.id, MSG_HELLO);
	cr_assert_eq(m.hello.no_memory, 1);
	cr_assert_eq(in.skipped.fields, 4);
	cr_assert_eq(stream_next(&in, &m), 0);
	cr_assert_eq(m.id, MSG_END);
	cr_assert_eq(m.end.time_ns, 9);
	cr_assert_eq(in.skipped.messages, 1);
	cr_assert_eq(in.skipped.fields, 6);
	stream_in_done(&in);
	buf_done(&b);
}

/* Tools of one run also exchange raw structs. */
Test(stream, a_tool_of_this_run_is_of_our_build)
{
	for (uint64_t build = msg_build() - 1; build != msg_build() + 2; build++) {
		struct sink k = { 0 };
		struct stream_out out;
		struct stream_in in;
		struct msg m = hello();

		m.hello.build = build;
		stream_out_init(&out, 1000, sink_flush, &k);
		put(&out, m);
		cr_assert_eq(stream_flush(&out), 0);
		for (int of_run = 0; of_run < 2; of_run++) {
			stream_in_init(&in);
			in.of_run = of_run;
			feed(&in, &k.bytes);
			cr_assert_eq(stream_next(&in, &m),
				     of_run && build != msg_build() ? STREAM_SCHEMA : 0);
			stream_in_done(&in);
		}
		stream_out_done(&out);
		buf_done(&k.bytes);
	}
}

Test(stream, untaken_bytes_have_a_ceiling)
{
	struct stream_in in;
	static uint8_t bytes[1 << 20];
	int r = 0, fed = 0;

	stream_in_init(&in);
	for (; !r && fed < 100; fed++)
		r = stream_feed(&in, (struct span){ .data = bytes, .len = sizeof(bytes) });
	cr_assert_eq(r, -ENOBUFS);
	cr_assert_lt(fed, 10);
	stream_in_done(&in);
}

Test(stream, message_larger_than_a_batch_goes_alone)
{
	static const uint64_t frames[4096];
	struct sink k = { 0 };
	struct stream_out out;
	struct stream_in in;
	struct msg m;

	stream_out_init(&out, 64, sink_flush, &k);
	put(&out, hello());
	put(&out,
	    (struct msg){ .id = MSG_STACK, .stack = { .id = 1, .frames = { frames, 4096 } } });
	put(&out, sample(1));
	cr_assert_eq(stream_flush(&out), 0);
	stream_in_init(&in);
	feed(&in, &k.bytes);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(stream_next(&in, &m), 0);
	cr_assert_eq(m.id, MSG_SAMPLE);
	cr_assert_eq(stream_missing(&in), 0);
	stream_in_done(&in);
	stream_out_done(&out);
	buf_done(&k.bytes);
}

/* Each message in a stream that carries only the other direction. */
Test(stream, a_message_that_does_not_travel_this_way_is_malformed)
{
	static const struct {
		enum msg_id id;
		enum msg_way way;
	} all[] = {
#define MSG_BEGIN(NAME, name, id, way) { MSG_##NAME, MSG_##way },
#define U64(field)
#define STR(field, max)
#define BIN(field, max)
#define LIST(field, max)
#define MSG_END(name)
#include "common/wire/messages.def"
	};
	const struct msg first = hello();
	unsigned passed = 0, refused = 0;

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (all[i].id == MSG_HELLO || all[i].id == MSG_BATCH_HEAD)
			continue;
		for (unsigned way = 1; way < MSG_EVERY_WAY; way *= 2) {
			struct sink k = { 0 };
			struct stream_out out;
			struct stream_in in;
			struct msg m = { .id = all[i].id };

			stream_out_init(&out, 4096, sink_flush, &k);
			cr_assert_eq(stream_put(&out, &first), 0);
			cr_assert_eq(stream_put(&out, &m), 0);
			cr_assert_eq(stream_flush(&out), 0);
			stream_in_init(&in);
			in.way = (enum msg_way)way;
			cr_assert_eq(stream_feed(&in, buf_span(&k.bytes)), 0);
			cr_assert_eq(stream_next(&in, &m), 0, "the hello travels every way");
			if (all[i].way & way) {
				cr_assert_eq(stream_next(&in, &m), 0);
				cr_assert_eq(m.id, all[i].id);
				passed++;
			} else {
				cr_assert_eq(stream_next(&in, &m), STREAM_MALFORMED);
				cr_assert_eq(stream_next(&in, &m), STREAM_MALFORMED);
				refused++;
			}
			stream_in_done(&in);
			stream_out_done(&out);
			buf_done(&k.bytes);
		}
	}
	cr_assert_gt(passed, 20);
	cr_assert_gt(refused, 100);
}
