/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <string.h>
#include "tools/prof-bpf/kernel/record.h"

static void fill(struct sample_object *o)
{
	*o = (struct sample_object){
		.sample = { .flags = SAMPLE_OBJECT,
			    .user_frames = (sizeof(*o) - sizeof(o->sample)) / 8 },
		.address = 0x1000,
		.check = 7,
		.pieces = 4,
		.at = { 0x1000, 0x2000, 0x3000, 0x4000 },
		.len = { 200, 60, 70, SAMPLE_PIECE_BYTES },
		.offset = { 0, 200, 264, 336 },
	};
	memset(o->bytes, 'o', 200);
	memset(o->bytes + 200, 'n', 64);
	memset(o->bytes + 264, 's', 72);
	memset(o->bytes + 336, 'l', SAMPLE_PIECE_BYTES);
}

/* Truncates the pieces to `bytes` in all. */
static void cut_bytes(struct sample_object *o, uint32_t bytes)
{
	o->sample.user_frames =
		(uint16_t)((offsetof(struct sample_object, bytes) - sizeof(o->sample) + bytes) / 8);
}

Test(record, a_record_shorter_than_its_length_is_refused)
{
	struct {
		struct sample sample;
		uint64_t words[8];
	} r = { .sample = { .kernel_frames = 2, .items = 2, .user_frames = 2 } };

	cr_expect_eq(record_sample(&r, sizeof(r)), &r.sample);
	cr_expect_null(record_sample(&r, sizeof(r) - 1));
	cr_expect_null(record_sample(&r, sizeof(r.sample)));
	cr_expect_null(record_sample(&r, sizeof(r.sample) - 1));
	cr_expect_null(record_sample(&r, 0));
	r.sample.items = UINT16_MAX;
	cr_expect_null(record_sample(&r, sizeof(r)));
}

Test(record, a_deferred_one_is_of_one_of_two_sizes)
{
	static struct deferred_sample d;

	d.deferred.chunks = DEFERRED_CHUNKS;
	cr_expect_eq(record_deferred(&d, sizeof(d)), &d);
	cr_expect_null(record_deferred(&d, DEFERRED_SMALL_BYTES));
	d.deferred.chunks = DEFERRED_SMALL_CHUNKS;
	cr_expect_eq(record_deferred(&d, DEFERRED_SMALL_BYTES), &d);
	cr_expect_null(record_deferred(&d, DEFERRED_SMALL_BYTES - 1));
	d.sample.kernel_frames = SAMPLE_MAX_KERNEL + 1;
	cr_expect_null(record_deferred(&d, sizeof(d)));
}

Test(record, pieces_of_an_object_follow_one_another)
{
	struct record_object keep;
	struct sample_object o;
	struct msg_object m;

	fill(&o);
	cr_assert(record_object(&o.sample, &keep, &m));
	cr_expect(m.address == 0x1000 && m.check == 7);
	cr_expect(m.addresses.len == 4 && m.lengths.len == 4);
	cr_expect_eq(m.addresses.data[3], 0x4000);
	cr_assert_eq(m.bytes.len, 200 + 60 + 70 + SAMPLE_PIECE_BYTES);
	cr_expect(m.bytes.data[199] == 'o' && m.bytes.data[200] == 'n' &&
		  m.bytes.data[260] == 's' && m.bytes.data[330] == 'l');
}

Test(record, pieces_that_lead_out_of_an_object_are_cut)
{
	struct record_object keep;
	struct sample_object o;
	struct msg_object m;

	fill(&o);
	for (int i = 0; i < SAMPLE_PIECES; i++)
		o.len[i] = UINT32_MAX;
	cut_bytes(&o, 344);
	cr_assert(record_object(&o.sample, &keep, &m));
	cr_expect(m.lengths.data[0] == 344 && m.lengths.data[1] == 144 && m.lengths.data[2] == 80 &&
		  m.lengths.data[3] == 8);
	cr_expect_eq(m.bytes.len, 344 + 144 + 80 + 8);
	o.offset[1] = UINT32_MAX;
	o.pieces = UINT32_MAX;
	cr_assert(record_object(&o.sample, &keep, &m));
	cr_expect(m.lengths.len == SAMPLE_PIECES && m.lengths.data[1] == 0);
	cut_bytes(&o, 0);
	cr_assert(record_object(&o.sample, &keep, &m));
	cr_expect(m.lengths.data[0] == 0 && m.lengths.data[3] == 0 && m.bytes.len == 0);
	o.sample.user_frames--;
	cr_expect_not(record_object(&o.sample, &keep, &m));
	o.sample.user_frames = 0;
	cr_expect_not(record_object(&o.sample, &keep, &m));
}

Test(record, pieces_of_an_object_never_exceed_what_a_message_holds)
{
	struct record_object keep;
	struct sample_object o;
	struct msg_object m;

	fill(&o);
	o.pieces = SAMPLE_PIECES;
	for (int i = 0; i < SAMPLE_PIECES; i++) {
		o.len[i] = SAMPLE_OBJECT_BYTES;
		o.offset[i] = 0;
	}
	cr_assert(record_object(&o.sample, &keep, &m));
	cr_expect_eq(m.bytes.len, SAMPLE_OBJECT_BYTES);
	cr_expect(m.lengths.data[0] == SAMPLE_OBJECT_BYTES && m.lengths.data[1] == 0);
}

static void check_title(uint32_t flags, const void *text, uint32_t bytes, const char *expected)
{
	struct sample_thread t = {
		.sample = { .flags = SAMPLE_THREAD,
			    .user_frames = (sizeof(t) - sizeof(t.sample)) / 8 },
		.bytes = bytes,
		.flags = flags,
	};
	struct record_title got;

	memcpy(t.text, text, bytes < sizeof(t.text) ? bytes : sizeof(t.text));
	cr_assert(record_title(&t.sample, &got));
	cr_expect_eq(got.is_virtual, !!(flags & SAMPLE_THREAD_VIRTUAL));
	cr_expect_eq(got.len, strlen(expected), "%u", got.len);
	cr_expect_arr_eq(got.text, expected, got.len);
}

Test(record, titles_become_utf8)
{
	const uint16_t wide[] = { 0x3a9, 'x', 0xd83e, 0xdd80, 0xd83e, 'y', 0xdd80, 0xd83e };

	check_title(0, "main", 4, "main");
	check_title(SAMPLE_THREAD_VIRTUAL, "f\xe9", 2, "f\xc3\xa9");
	check_title(SAMPLE_THREAD_UTF16, wide, sizeof(wide),
		    "\xce\xa9x\xf0\x9f\xa6\x80\xef\xbf\xbdy\xef\xbf\xbd\xef\xbf\xbd");
	check_title(SAMPLE_THREAD_UTF16, wide, 3, "\xce\xa9");
	check_title(0, "", 0, "");
}

Test(record, a_long_title_is_cut_between_two_characters)
{
	char text[SAMPLE_THREAD_BYTES + 1], expected[RECORD_TITLE + 1] = { 0 };

	memset(text, 'a', sizeof(text));
	memset(expected, 'a', RECORD_TITLE);
	check_title(0, text, UINT32_MAX, expected);
	memset(text + 1, 0xe9, sizeof(text) - 1);
	for (unsigned i = 1; i < RECORD_TITLE - 1; i += 2)
		memcpy(expected + i, "\xc3\xa9", 2);
	expected[RECORD_TITLE - 1] = '\0';
	check_title(0, text, SAMPLE_THREAD_BYTES, expected);
}

Test(record, a_title_shorter_than_its_length_is_ignored)
{
	struct sample_thread t = { .sample = { .flags = SAMPLE_THREAD, .user_frames = 3 } };
	struct record_title got;

	cr_expect_not(record_title(&t.sample, &got));
}
