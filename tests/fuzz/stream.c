/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a stream, behind the size of the pieces they come in. However they are cut, the same
 * messages come out. The schema hash of a hello would never be guessed, so a schema field of 1 is
 * taken for ours. */
#include <stdlib.h>
#include "common/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct outcome {
	uint64_t messages, missing, hash;
	int verdict;
	bool ended;
};

static void check(int holds)
{
	if (!holds)
		abort();
}

static struct outcome run(struct span bytes, size_t piece)
{
	struct stream_in in;
	struct outcome o = { .verdict = STREAM_AGAIN };
	struct buf again = BUF_INIT(0);

	stream_in_init(&in);
	while (bytes.len && o.verdict == STREAM_AGAIN) {
		struct span part;
		struct msg m;

		check(span_take(&bytes, bytes.len < piece ? bytes.len : piece, &part));
		check(stream_feed(&in, part) == 0);
		while ((o.verdict = stream_next(&in, &m)) == 0) {
			check(in.hello_seen && m.id != MSG_BATCH_HEAD);
			o.messages++;
			buf_reset(&again);
			check(msg_encode(&again, &m) == 0);
			for (size_t i = 0; i < again.len; i++)
				o.hash = o.hash * 31 + again.data[i];
		}
	}
	check(o.verdict >= STREAM_AGAIN && o.verdict <= STREAM_SCHEMA);
	o.missing = stream_missing(&in);
	o.ended = in.ended;
	check(stream_missing(&in) == 0);
	stream_in_done(&in);
	buf_done(&again);
	return o;
}

/* The bytes with our schema's hash for the first fields that say 1 right after a hello's head. */
static struct buf with_schema(struct span bytes)
{
	const uint64_t hash = msg_schema_hash();
	struct buf b = BUF_INIT(0);
	size_t i = 0;

	for (; i + 4 <= bytes.len && i < 64; i++) {
		const uint8_t *p = bytes.data + i;

		check(buf_append(&b, p, 1) == 0);
		if (i < 2 || bytes.data[i - 2] != 0x92 || bytes.data[i - 1] != 1 ||
		    (p[0] & 0xf0) != 0x90 || p[1] != 1)
			continue;
		uint8_t wire[9] = { 0xcf };

		for (int k = 0; k < 8; k++)
			wire[1 + k] = (uint8_t)(hash >> (56 - 8 * k));
		check(buf_append(&b, wire, sizeof(wire)) == 0);
		i += 2;
		break;
	}
	check(buf_append(&b, bytes.data + i, bytes.len - i) == 0);
	return b;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	struct buf b = with_schema((struct span){ .data = data + 1, .len = size - 1 });
	const struct outcome whole = run(buf_span(&b), 1 << 20),
			     parts = run(buf_span(&b), 1 + data[0]);

	check(whole.messages == parts.messages && whole.hash == parts.hash &&
	      whole.missing == parts.missing);
	check(whole.verdict == parts.verdict && whole.ended == parts.ended);
	buf_done(&b);
	return 0;
}
