/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a stream, behind one that says how large the ceiling is, through the model and two
 * writers. No sample is unaccounted for. A schema field of 1 in the hello is taken for ours, which
 * would never be guessed.
 */
#include <fcntl.h>
#include <stdlib.h>
#include "tools/prof-export/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int holds)
{
	if (!holds)
		abort();
}

static struct buf with_schema(struct span bytes)
{
	const uint64_t hash = msg_schema_hash();
	struct buf b = BUF_INIT(0);

	for (size_t i = 0; i < bytes.len; i++) {
		const uint8_t *p = bytes.data + i;

		/* [1, [1, …]] */
		if (i >= 2 && i < 64 && bytes.len - i >= 4 && p[-2] == 0x92 && p[-1] == 1 &&
		    (p[0] & 0xf0) == 0x90 && p[1] == 1) {
			uint8_t wire[10] = { p[0], 0xcf };

			for (int k = 0; k < 8; k++)
				wire[2 + k] = (uint8_t)(hash >> (56 - 8 * k));
			check(buf_append(&b, wire, sizeof(wire)) == 0);
			check(buf_append(&b, p + 2, bytes.len - i - 2) == 0);
			return b;
		}
		check(buf_append(&b, p, 1) == 0);
	}
	return b;
}

/* The samples taken, or UINT64_MAX where something did not fit. */
static uint64_t run(struct span bytes, enum session_format format, bool threads, size_t memory_max,
		    int fd)
{
	static struct session s;
	const struct session_options o = {
		.format = format, .threads = threads, .lines = threads, .memory_max = memory_max
	};
	const struct model_bucket *buckets;
	uint64_t samples = 0;
	bool full = false;

	check(session_init(&s, &o, fd) == 0);
	const int r = session_feed(&s, bytes);

	check(r >= 0 && r <= STREAM_SCHEMA);
	check(model_memory(s.model).used <= memory_max);
	if (s.begun) {
		const size_t n = model_buckets(s.model, &buckets);

		for (size_t i = 0; i < n; i++)
			samples += buckets[i].samples;
		check(n == 0 || samples == model_totals(s.model)->samples);
		samples = model_totals(s.model)->samples;
		full = model_totals(s.model)->lost[LOST_LIMIT];
		check(session_finish(&s) == 0);
		struct status st = { 0 };

		model_status(s.model, &st, true);
		check(st.samples == samples && st.user_stacks <= samples && st.complete <= samples);
	}
	session_done(&s);
	return full ? UINT64_MAX : samples;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;

	if (!size)
		return 0;
	if (fd < 0)
		fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	struct buf b = with_schema((struct span){ .data = data + 1, .len = size - 1 });
	const size_t memory_max = 4096 + (size_t)data[0] * 4096;
	/* Folded, and one of the others. */
	const enum session_format formats[2] = { 0, 1 + size % (SESSION_FORMATS - 1) };
	uint64_t samples[2];

	for (size_t i = 0; i < 2; i++)
		samples[i] = run(buf_span(&b), formats[i], data[0] & 1, memory_max, fd);
	/* With room enough all outputs count alike. */
	check(samples[1] == samples[0] || samples[1] == UINT64_MAX || samples[0] == UINT64_MAX);
	buf_done(&b);
	return 0;
}
