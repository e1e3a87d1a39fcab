/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/msg.h"
#include "common/wire/reason.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include "common/base/system/clock.h"
#include "tests/msg_print.h"

static struct span span_of(const struct buf *b)
{
	return buf_span(b);
}

static struct msg_scratch decode_scratch;

static int decode_bytes(const void *bytes, size_t len, struct msg *ret)
{
	/* In memory of its exact size, so that a sanitizer sees a read beyond it. */
	uint8_t *exact = malloc(len ? len : 1);

	memcpy(exact, bytes, len);
	struct span in = { .data = exact, .len = len };
	const int r = msg_decode(&in, &decode_scratch, ret);

	if (r && r != MSG_UNKNOWN)
		cr_assert_eq(in.len, len, "nothing is taken of what is refused");
	free(exact);
	return r;
}

#define DECODE(bytes, ret) decode_bytes(bytes, sizeof(bytes) - 1, ret)

/* One message of every kind, filled from a counter. */
static uint64_t numbers[4096];
static char letters[1 << 20];
static uint64_t counter;

static uint64_t next_number(void)
{
	/* All widths that msgpack has. */
	static const uint64_t edges[] = { 0,	 1,	127,	    128,	255,	   256,
					  65535, 65536, UINT32_MAX, 1ull << 32, UINT64_MAX };

	return edges[counter++ % (sizeof(edges) / sizeof(edges[0]))];
}

static size_t next_len(size_t max, size_t i)
{
	const size_t lens[] = { 0, 1, 31, 32, 255, 256, max };
	const size_t n = lens[(counter++ + i) % (sizeof(lens) / sizeof(lens[0]))];

	return n < max ? n : max;
}

static size_t make_all(struct msg *all, size_t variant)
{
	size_t n = 0;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		numbers[i] = next_number();
	memset(letters, 'x', sizeof(letters));
#define MSG_BEGIN(NAME, name, msg_id, way) \
	{ \
		struct msg_##name *m = &all[n].name; \
		all[n++].id = msg_id;
#define U64(field) m->field = next_number();
#define STR(field, max) \
	m->field = (struct str){ .data = letters, .len = (uint32_t)next_len(max, variant) };
#define BIN(field, max) \
	m->field = (struct span){ .data = (uint8_t *)letters, .len = next_len(max, variant) };
#define LIST(field, max) \
	m->field = (struct msg_list){ .data = numbers, .len = (uint32_t)next_len(max, variant) };
#define MSG_END(name) }
#include "common/wire/messages.def"
	return n;
}

static void assert_equal(const struct msg *a, const struct msg *b)
{
	cr_assert_eq(a->id, b->id);
	switch (a->id) {
#define MSG_BEGIN(NAME, name, id, way) \
	case MSG_##NAME: { \
		const struct msg_##name *x = &a->name, *y = &b->name;
#define U64(field) cr_assert_eq(x->field, y->field);
#define STR(field, max) cr_assert(str_eq(x->field, y->field));
#define BIN(field, max) \
	cr_assert_eq(x->field.len, y->field.len); \
	cr_assert(!x->field.len || memcmp(x->field.data, y->field.data, x->field.len) == 0);
#define LIST(field, max) \
	cr_assert_eq(x->field.len, y->field.len); \
	cr_assert(!x->field.len || memcmp(x->field.data, y->field.data, 8 * x->field.len) == 0);
#define MSG_END(name) \
	break; \
	}
#include "common/wire/messages.def"
	default:
		cr_assert_fail("id %d", a->id);
	}
}

Test(msg, every_message_comes_back_as_it_was)
{
	static struct msg all[64];
	struct msg_scratch scratch = { 0 };

	for (size_t variant = 0; variant < 7; variant++) {
		const size_t n = make_all(all, variant);

		cr_assert_gt(n, 20);
		for (size_t i = 0; i < n; i++) {
			struct buf b = BUF_INIT(0);
			struct msg back;

			cr_assert_eq(msg_encode(&b, &all[i]), 0);
			cr_assert_leq(b.len, MSG_MAX_SIZE);
			struct span in = span_of(&b);

			cr_assert_eq(msg_decode(&in, &scratch, &back), 0);
			cr_assert_eq(in.len, 0);
			assert_equal(&all[i], &back);
			buf_done(&b);
		}
	}
	msg_scratch_done(&scratch);
}

Test(msg, every_prefix_is_short)
{
	static struct msg all[64];
	const size_t n = make_all(all, 3);

	for (size_t i = 0; i < n; i++) {
		struct buf b = BUF_INIT(0);
		struct msg back;

		cr_assert_eq(msg_encode(&b, &all[i]), 0);
		for (size_t len = 0; len < b.len; len += len < 600 ? 1 : 997)
			cr_assert_eq(decode_bytes(b.data, len, &back), MSG_SHORT,
				     "%zu of %zu of message %d", len, b.len, all[i].id);
		buf_done(&b);
	}
}

Test(msg, bytes_on_the_wire_are_as_msgpack_says)
{
	const struct msg m = { .id = MSG_SAMPLE,
			       .sample = { .stack = 1,
					   .thread = 200,
					   .cpu = 65535,
					   .time_ns = 1ull << 40,
					   .value = 0 } };
	/* Without the empty fields at the end. */
	static const uint8_t wire[] = { 0x92, 11, 0x94, 1, 0xcc, 200, 0xcd, 0xff, 0xff,
					0xcf, 0,  0,	1, 0,	 0,   0,    0,	  0 };
	struct buf b = BUF_INIT(0);

	cr_assert_eq(msg_encode(&b, &m), 0);
	cr_assert_eq(b.len, sizeof(wire));
	cr_assert_eq(memcmp(b.data, wire, sizeof(wire)), 0);
	buf_done(&b);
}

/* The last field that is not empty keeps all fields before it. */
Test(msg, empty_fields_at_the_end_cost_nothing)
{
	static const uint64_t one[] = { 1 };
	const struct {
		struct msg m;
		size_t fields, bytes;
	} some[] = {
		{ { .id = MSG_SAMPLE }, 0, 3 },
		{ { .id = MSG_SAMPLE, .sample = { .thread = 1 } }, 2, 5 },
		{ { .id = MSG_SAMPLE, .sample = { .link = 1 } }, 9, 12 },
		{ { .id = MSG_FILE }, 0, 3 },
		{ { .id = MSG_FILE, .file = { .path = STR_LIT("/a") } }, 6, 11 },
		{ { .id = MSG_FILE, .file = { .segments = { one, 1 } } }, 13, 19 },
		{ { .id = MSG_LABELS, .labels = { .list = { one, 1 } } }, 2, 6 },
		{ { .id = MSG_FILE_END, .file_end = { .id = 9 } }, 1, 4 },
	};

	for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++) {
		struct buf b = BUF_INIT(0);

		cr_assert_eq(msg_encode(&b, &some[i].m), 0);
		cr_expect_eq(b.data[2] & 0x0f, some[i].fields, "%zu", i);
		cr_expect_eq(b.len, some[i].bytes, "%zu: %zu", i, b.len);
		buf_done(&b);
	}
}

Test(msg, string_over_its_limit_is_cut_between_characters)
{
	struct msg m = { .id = MSG_THREAD,
			 .thread = { .id = 1, .comm = STR_LIT("fifteen bytes..ä") } };
	struct buf b = BUF_INIT(0);
	struct msg back;

	cr_assert_eq(m.thread.comm.len, 17);
	cr_assert_eq(msg_encode(&b, &m), 0);
	struct msg_scratch scratch = { 0 };
	struct span in = span_of(&b);

	cr_assert_eq(msg_decode(&in, &scratch, &back), 0);
	cr_assert(str_eq(back.thread.comm, STR_LIT("fifteen bytes..")));
	msg_scratch_done(&scratch);
	buf_done(&b);
}

Test(msg, list_or_binary_over_its_limit_is_refused_and_leaves_no_trace)
{
	static const uint64_t many[4097];
	static const uint8_t bytes[65];
	struct buf b = BUF_INIT(0);

	cr_assert_eq(buf_append(&b, "before", 6), 0);
	cr_assert_eq(
		msg_encode(&b, &(struct msg){ .id = MSG_STACK,
					      .stack = { .id = 1, .frames = { many, 4097 } } }),
		-E2BIG);
	cr_assert_eq(
		msg_encode(&b, &(struct msg){ .id = MSG_FILE,
					      .file = { .id = 1, .build_id = { bytes, 65 } } }),
		-E2BIG);
	cr_assert_eq(b.len, 6);
	cr_assert_eq(
		msg_encode(&b, &(struct msg){ .id = MSG_STACK,
					      .stack = { .id = 1, .frames = { many, 4096 } } }),
		0);
	buf_done(&b);
}

Test(msg, full_buffer_is_left_as_it_was)
{
	struct buf b = BUF_INIT(10);
	const struct msg m = { .id = MSG_SAMPLE,
			       .sample = { .stack = UINT64_MAX, .thread = UINT64_MAX } };

	cr_assert_eq(msg_encode(&b, &m), -ENOBUFS);
	cr_assert_eq(b.len, 0);
	buf_done(&b);
}

Test(msg, fields_that_are_missing_are_zero)
{
	struct msg m;

	memset(&m, 0xff, sizeof(m));
	cr_assert_eq(DECODE("\x92\x0b\x92\x05\x06", &m), 0);
	cr_assert_eq(m.id, MSG_SAMPLE);
	cr_assert_eq(m.sample.stack, 5);
	cr_assert_eq(m.sample.thread, 6);
	cr_assert_eq(m.sample.cpu, 0);
	cr_assert_eq(m.sample.value, 0);
	cr_assert_eq(DECODE("\x92\x07\x90", &m), 0);
	cr_assert_eq(m.file.path.len, 0);
	cr_assert_eq(m.file.build_id.len, 0);
}

Test(msg, fields_that_are_unknown_are_skipped)
{
	struct msg m;

	/* An end message with an additional number, string, binary and list. */
	cr_assert_eq(
		DECODE("\x92\x0e\x96\x01\x02\xce\x01\x02\x03\x04\xa2hi\xc4\x01z\x92\x01\x02", &m),
		0);
	cr_assert_eq(m.id, MSG_END);
	cr_assert_eq(m.end.reason, 1);
	cr_assert_eq(m.end.time_ns, 2);
	cr_assert_eq(decode_scratch.skipped, 4);
	cr_assert_eq(DECODE("\x92\x0e\x92\x01\x02", &m), 0);
	cr_assert_eq(decode_scratch.skipped, 0);
	cr_assert_eq(DECODE("\x92\x0e\x91\x01", &m), 0);
	cr_assert_eq(decode_scratch.skipped, 0);
	cr_assert_eq(DECODE("\x92\x0e\x93\x01\x02\xa5hi", &m), MSG_SHORT);
}

/* An end message with this additional field and one more. */
static int decode_field(const void *field, size_t len, struct msg *ret)
{
	uint8_t bytes[256] = "\x92\x0e\x94\x01\x02";

	memcpy(bytes + 5, field, len);
	bytes[5 + len] = 7;
	for (size_t n = 5; n < 6 + len; n++)
		cr_assert_eq(decode_bytes(bytes, n, ret), MSG_SHORT);
	return decode_bytes(bytes, 6 + len, ret);
}

Test(msg, fields_that_are_unknown_may_be_any_value)
{
#define VALUE(bytes) \
	{ \
		bytes, sizeof(bytes) - 1 \
	}
	static const struct {
		const char *bytes;
		size_t len;
	} values[] = {
		VALUE("\xc0"),
		VALUE("\xc2"),
		VALUE("\xc3"),
		VALUE("\xff"),
		VALUE("\xe0"),
		VALUE("\xca\x01\x02\x03\x04"),
		VALUE("\xcb\x01\x02\x03\x04\x05\x06\x07\x08"),
		VALUE("\xd0\x05"),
		VALUE("\xd1\xff\x05"),
		VALUE("\xd2\x01\x02\x03\x04"),
		VALUE("\xd3\x01\x02\x03\x04\x05\x06\x07\x08"),
		VALUE("\xc7\x02\x01xy"),
		VALUE("\xc8\x00\x02\x01xy"),
		VALUE("\xc9\x00\x00\x00\x02\x01xy"),
		VALUE("\xd4\x01x"),
		VALUE("\xd5\x01xy"),
		VALUE("\xd6\x01wxyz"),
		VALUE("\xd7\x01stuvwxyz"),
		VALUE("\xd8\x01stuvwxyzstuvwxyz"),
		VALUE("\x80"),
		VALUE("\x82\x01\xc0\xa1x\x90"),
		VALUE("\xde\x00\x01\x01\x02"),
		VALUE("\xdf\x00\x00\x00\x01\x01\x02"),
		VALUE("\x91\x91\x01"),
		VALUE("\x91\xa1x"),
		VALUE("\x93\x01\xc4\x01x\x92\x81\x90\x02\xcc\xff"),
		VALUE("\xdc\x00\x02\x01\x02"),
		VALUE("\xdd\x00\x00\x00\x01\xc0"),
		VALUE("\xd9\x02xy"),
		VALUE("\xda\x00\x02xy"),
		VALUE("\xdb\x00\x00\x00\x02xy"),
		VALUE("\xc5\x00\x02xy"),
		VALUE("\xc6\x00\x00\x00\x02xy"),
		/* Sixteen lists, each in another one. */
		VALUE("\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x01"),
	};
	struct msg m;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		cr_assert_eq(decode_field(values[i].bytes, values[i].len, &m), 0, "%zu", i);
		cr_assert_eq(m.end.time_ns, 2);
		cr_assert_eq(decode_scratch.skipped, 2);
	}
	cr_assert_eq(DECODE("\x92\x0e\x93\x01\x02\xc1", &m), MSG_MALFORMED);
	cr_assert_eq(DECODE("\x92\x0e\x93\x01\x02\x92\x01\xc1", &m), MSG_MALFORMED);
	cr_assert_eq(DECODE("\x92\x0e\x93\x01\x02\xdf\xff\xff\xff\xff", &m), MSG_MALFORMED);
	cr_assert_eq(DECODE("\x92\x0e\x93\x01\x02\xc9\xff\xff\xff\xff", &m), MSG_MALFORMED);
	cr_assert_eq(DECODE("\x92\x0e\x93\x01\x02\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91\x91"
			    "\x91\x91\x91\x91\x91\x91\x01",
			    &m),
		     MSG_MALFORMED); /* one more */
	/* Fields that are known keep their type. */
	cr_assert_eq(DECODE("\x92\x0e\x92\x01\xc0", &m), MSG_MALFORMED);
	cr_assert_eq(DECODE("\x92\x0e\x92\x01\xd0\x05", &m), MSG_MALFORMED);
}

Test(msg, unknown_message_is_passed_over)
{
	static struct msg_scratch scratch;
	struct msg m;
	const char *bytes = "\x92\x3f\x92\x01\xa1x\x92\x0e\x92\x03\x04";
	struct span in = { .data = (const uint8_t *)bytes, .len = strlen(bytes) };

	cr_assert_eq(msg_decode(&in, &scratch, &m), MSG_UNKNOWN);
	cr_assert_eq(msg_decode(&in, &scratch, &m), 0);
	cr_assert_eq(m.id, MSG_END);
	cr_assert_eq(m.end.time_ns, 4);
	cr_assert_eq(in.len, 0);
}

Test(msg, malformed_messages_are_refused)
{
	struct msg m;

	cr_assert_eq(DECODE("\x93\x0b\x95", &m), MSG_MALFORMED);	 /* three members */
	cr_assert_eq(DECODE("\x0b", &m), MSG_MALFORMED);		 /* a number */
	cr_assert_eq(DECODE("\xc1", &m), MSG_MALFORMED);		 /* never used */
	cr_assert_eq(DECODE("\x92\xff\x90", &m), MSG_MALFORMED);	 /* negative id */
	cr_assert_eq(DECODE("\x92\x00\x90", &m), MSG_MALFORMED);	 /* id 0 */
	cr_assert_eq(DECODE("\x92\x0b\x81\x01\x01", &m), MSG_MALFORMED); /* a map */
	cr_assert_eq(DECODE("\x92\x0b\x95\xa1x", &m), MSG_MALFORMED);	 /* a string for a number */
	cr_assert_eq(DECODE("\x92\x0a\x92\x01\x02", &m), MSG_MALFORMED); /* a number for a list */
	cr_assert_eq(DECODE("\x92\x0a\x92\x01\x91\xa1x", &m),
		     MSG_MALFORMED); /* a list of strings */
	cr_assert_eq(DECODE("\x92\x06\x94\x01\x01\x01\xc4\x01x", &m),
		     MSG_MALFORMED); /* a binary for a string */
	cr_assert_eq(DECODE("\x92\x0b\xdd\xff\xff\xff\xff", &m), MSG_MALFORMED); /* 2^32 fields */
}

Test(msg, length_over_the_table_is_malformed_before_its_bytes_come)
{
	struct msg m;

	cr_assert_eq(DECODE("\x92\x06\x94\x01\x01\x01\xb1", &m), MSG_MALFORMED); /* comm of 17 */
	cr_assert_eq(DECODE("\x92\x06\x94\x01\x01\x01\xb0", &m), MSG_SHORT);
	cr_assert_eq(DECODE("\x92\x0a\x92\x01\xdd\xff\xff\xff\xff", &m),
		     MSG_MALFORMED); /* a stack of 2^32 frames */
	cr_assert_eq(DECODE("\x92\x0a\x92\x01\xdc\x10\x01", &m), MSG_MALFORMED); /* of 4,097 */
	cr_assert_eq(DECODE("\x92\x0a\x92\x01\xdc\x10\x00", &m), MSG_SHORT);
	cr_assert_eq(DECODE("\x92\x3f\x91\xc6\xff\xff\xff\xff", &m),
		     MSG_MALFORMED); /* 4 GiB of an unknown message */
}

Test(msg, endless_message_is_malformed_in_the_end)
{
	struct msg m;
	uint8_t *bytes = calloc(1, MSG_MAX_SIZE);

	/* An unknown message whose fields are each as long as may be. */
	memcpy(bytes, "\x92\x3f\x92\xc6\x00\x10\x00\x00", 8);
	bytes[8 + (1 << 20)] = 0xc6;
	bytes[8 + (1 << 20) + 2] = 0x10;
	cr_assert_eq(decode_bytes(bytes, MSG_MAX_SIZE - 1, &m), MSG_SHORT);
	cr_assert_eq(decode_bytes(bytes, MSG_MAX_SIZE, &m), MSG_MALFORMED);
	free(bytes);
}

Test(msg, scratch_is_bounded_by_the_table)
{
	struct msg_scratch scratch = { 0 };
	struct msg m;
	struct span in = {
		.data = (const uint8_t *)"\x92\x09\x99\x01\x02\x03\x04\x05\x06\x07\xdc\x01\x00",
		.len = 13
	};

	cr_assert_eq(msg_decode(&in, &scratch, &m), MSG_SHORT);
	cr_assert_eq(scratch.cap, 512);
	msg_scratch_done(&scratch);
}

Test(msg, both_lists_of_a_frame_hold_at_once)
{
	static const uint64_t functions[] = { 1, 2, 3 }, lines[] = { 10, 20, 30 };
	const struct msg m = {
		.id = MSG_FRAME,
		.frame = { .id = 1, .functions = { functions, 3 }, .lines = { lines, 3 } }
	};
	struct msg_scratch scratch = { 0 };
	struct buf b = BUF_INIT(0);
	struct msg back;

	cr_assert_eq(msg_encode(&b, &m), 0);
	struct span in = span_of(&b);

	cr_assert_eq(msg_decode(&in, &scratch, &back), 0);
	cr_assert_eq(back.frame.functions.data[2], 3);
	cr_assert_eq(back.frame.lines.data[0], 10);
	msg_scratch_done(&scratch);
	buf_done(&b);
}

Test(msg, printed_line_escapes_what_strangers_chose)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);
	static const uint64_t frames[] = { 7, 8 };

	msg_print(out, &(struct msg){ .id = MSG_THREAD,
				      .thread = { .id = 1,
						  .process = 2,
						  .tid = 3,
						  .comm = STR_LIT("a\"\033\n;\\") } });
	msg_print(out,
		  &(struct msg){ .id = MSG_STACK, .stack = { .id = 9, .frames = { frames, 2 } } });
	msg_print(out, &(struct msg){
			       .id = MSG_DEBUG_REQUEST,
			       .debug_request = {
				       .id = 4, .build_id = { (const uint8_t *)"\xab\x01", 2 } } });
	fclose(out);
	cr_assert_str_eq(text,
			 "thread id=1 process=2 tid=3 comm=\"a\\x22\\x1b\\x0a;\\\\\" title=\"\"\n"
			 "stack id=9 frames=[7,8] reason=0 at_file=0 payer=0\n"
			 "debug_request id=4 file=0 build_id=ab01 name=\"\" place=0\n");
	free(text);
}

Test(msg, build_is_the_same_each_time_and_not_trivial)
{
	cr_assert_eq(msg_build(), msg_build());
	cr_assert_neq(msg_build() >> 32, 0);
}

/* Before the schema had a number, the hello contained a hash of the table. */
Test(msg, schemas_of_older_recordings_are_read_and_others_are_not)
{
	cr_assert(msg_reads(MSG_SCHEMA));
	cr_assert(msg_reads(0x12631516b92365e8));
	cr_assert(msg_reads(0x52a2f6537b87f9e9));
	cr_assert(!msg_reads(0));
	cr_assert(!msg_reads(MSG_SCHEMA + 1));
	cr_assert(!msg_reads(0x12631516b92365e9));
	cr_assert(!msg_reads(msg_build()));
}

Test(msg, reasons_have_words_and_strangers_numbers_are_unknown)
{
	cr_assert_str_eq(reason_walk_word(WALK_COMPLETE), "complete");
	cr_assert_str_eq(reason_walk_word(WALK_DEPTH), "depth");
	cr_assert_str_eq(reason_walk_word(WALK_REASONS), "unknown");
	cr_assert_str_eq(reason_walk_word(UINT64_MAX), "unknown");
	cr_assert_str_eq(reason_lost_word(LOST_SIDEBAND), "sideband");
	cr_assert_str_eq(reason_lost_word(LOST_REASONS), "unknown");
	for (uint64_t i = 0; i < WALK_REASONS; i++)
		cr_assert_neq(reason_walk_text(i)[0], 0);
	for (uint64_t i = 0; i < LOST_REASONS; i++)
		cr_assert_neq(reason_lost_text(i)[0], 0);
}

/* A sample passes through three tools. Each is far faster than this limit, so that a slow or
 * sanitized machine passes. */
Test(msg, sample_costs_well_under_a_microsecond)
{
	enum { ROUNDS = 200000 };
	const struct msg m = { .id = MSG_SAMPLE,
			       .sample = { .stack = 12345,
					   .thread = 678,
					   .cpu = 3,
					   .time_ns = 987654321012,
					   .value = 10101010 } };
	struct msg_scratch scratch = { 0 };
	struct buf b = BUF_INIT(0);
	uint64_t sum = 0;
	const uint64_t start = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	for (int i = 0; i < ROUNDS; i++)
		cr_assert(!msg_encode(&b, &m));
	const uint64_t encoded = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct span in = span_of(&b);
	struct msg back;

	for (; in.len; sum += back.sample.stack)
		cr_assert(!msg_decode(&in, &scratch, &back));
	const uint64_t decoded = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

	cr_assert_eq(sum, 12345ull * ROUNDS);
	fprintf(stderr, "sample: encode %.1f ns, decode %.1f ns, %.1f bytes\n",
		(double)(encoded - start) / ROUNDS, (double)(decoded - encoded) / ROUNDS,
		(double)b.len / ROUNDS);
#ifdef __SANITIZE_ADDRESS__
	const uint64_t most_ns = 20000;
#else
	const uint64_t most_ns = 1000;
#endif
	cr_assert_lt((encoded - start) / ROUNDS, most_ns);
	cr_assert_lt((decoded - encoded) / ROUNDS, most_ns);
	buf_done(&b);
	msg_scratch_done(&scratch);
}
