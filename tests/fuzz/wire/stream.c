/* SPDX-License-Identifier: Apache-2.0 */
/* Input: a stream, after a byte for the size of the pieces. The resulting messages do not depend on
 * the pieces. */
#include "common/wire/stream.h"
#include "tests/fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	uint64_t messages, missing, skipped, hash;
	int verdict;
	bool ended;
};

static struct outcome run(struct span bytes, size_t piece)
{
	struct stream_in in;
	struct outcome o = { .verdict = STREAM_AGAIN };
	struct buf again = BUF_INIT(0);

	stream_in_init(&in);
	while (bytes.len && o.verdict == STREAM_AGAIN) {
		struct span part;
		struct msg m;

		must(span_take(&bytes, bytes.len < piece ? bytes.len : piece, &part));
		must(stream_feed(&in, part) == 0);
		while ((o.verdict = stream_next(&in, &m)) == 0) {
			must(in.hello_seen && m.id != MSG_BATCH_HEAD);
			o.messages++;
			buf_reset(&again);
			must(msg_encode(&again, &m) == 0);
			for (size_t i = 0; i < again.len; i++)
				o.hash = o.hash * 31 + again.data[i];
		}
	}
	must(o.verdict >= STREAM_AGAIN && o.verdict <= STREAM_SCHEMA);
	o.missing = stream_missing(&in);
	o.ended = in.ended;
	o.skipped = in.skipped.messages + in.skipped.fields;
	must(stream_missing(&in) == 0);
	stream_in_done(&in);
	buf_done(&again);
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	const struct span bytes = { .data = data + 1, .len = size - 1 };
	const struct outcome whole = run(bytes, 1 << 20), parts = run(bytes, 1 + data[0]);

	must(whole.messages == parts.messages && whole.hash == parts.hash &&
	     whole.missing == parts.missing);
	must(whole.verdict == parts.verdict && whole.ended == parts.ended);
	must(whole.skipped == parts.skipped);
	return 0;
}
