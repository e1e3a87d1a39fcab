/* SPDX-License-Identifier: Apache-2.0 */
/* Input: messages. A message that the decoder accepts must be the same after encoding and decoding
 * again, and must be printable. The input is also a field that the decoder does not know, in a
 * message whose known fields must stay as they are. */
#include <stdlib.h>
#include "common/wire/msg.h"
#include "tests/fuzz/must.h"
#include "tests/msg_print.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void round_trip(const struct msg *m)
{
	struct msg_scratch scratch = { 0 };
	struct buf once = BUF_INIT(0), twice = BUF_INIT(0);
	struct msg back;

	must(msg_encode(&once, m) == 0);
	struct span in = buf_span(&once);

	must(msg_decode(&in, &scratch, &back) == 0 && in.len == 0);
	must(back.id == m->id);
	must(msg_encode(&twice, &back) == 0);
	must(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
	msg_scratch_done(&scratch);
	buf_done(&once);
	buf_done(&twice);
}

static void as_field(struct span field)
{
	struct msg_scratch scratch = { 0 };
	struct buf b = BUF_INIT(0);
	struct msg m;

	/* An end message with two additional fields, the second of which is a number. */
	must(buf_append(&b, "\x92\x0e\x94\x01\x02", 5) == 0);
	must(buf_append(&b, field.data, field.len) == 0 && buf_append(&b, "\x07", 1) == 0);
	struct span in = buf_span(&b);

	if (msg_decode(&in, &scratch, &m) == 0) {
		must(m.id == MSG_END && m.end.reason == 1 && m.end.time_ns == 2);
		must(scratch.skipped == 2);
		in = (struct span){ .data = b.data, .len = b.len - in.len - 1 };
		must(msg_decode(&in, &scratch, &m) == MSG_SHORT);
	}
	msg_scratch_done(&scratch);
	buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static FILE *null;
	struct msg_scratch scratch = { 0 };
	struct span in = { .data = data, .len = size };

	if (!null)
		null = fopen("/dev/null", "w");
	as_field(in);
	for (;;) {
		const struct span before = in;
		struct msg m;
		const int r = msg_decode(&in, &scratch, &m);

		must(r >= 0 && r <= MSG_UNKNOWN);
		must(scratch.cap <= 4096);
		if (r == MSG_SHORT || r == MSG_MALFORMED) {
			must(in.data == before.data && in.len == before.len);
			break;
		}
		must(in.len < before.len && in.data + in.len == data + size);
		if (r == MSG_UNKNOWN)
			continue;
		round_trip(&m);
		msg_print(null, &m);
	}
	msg_scratch_done(&scratch);
	return 0;
}
