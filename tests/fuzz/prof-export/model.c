/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a stream, after a byte that selects the ceiling and one or two writers. It goes through
 * the model and the writers. Every sample is accounted for.
 */
#include <fcntl.h>
#include <stdlib.h>
#include "tests/fuzz/must.h"
#include "tools/prof-export/session/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* By default zlib clears a quarter of a MiB, even for an empty output. */
int __real_deflateInit2_(z_stream *z, int level, int method, int bits, int memory, int strategy,
			 const char *version, int size);
int __wrap_deflateInit2_(z_stream *z, int level, int method, int bits, int memory, int strategy,
			 const char *version, int size);
int __wrap_deflateInit2_(z_stream *z, int level, int method, int bits, int memory, int strategy,
			 const char *version, int size)
{
	(void)bits;
	(void)memory;
	return __real_deflateInit2_(z, level, method, 16 + 9, 1, strategy, version, size);
}

/* The number of samples accepted, or UINT64_MAX if something did not fit. */
static uint64_t run(struct span bytes, enum format format, bool threads, size_t memory_max, int fd)
{
	static struct session s;
	const struct session_options o = {
		.format = format, .threads = threads, .lines = threads, .memory_max = memory_max
	};
	const struct model_bucket *buckets;
	uint64_t samples = 0;
	bool full = false;

	must(session_init(&s, &o, fd) == 0);
	const int r = session_feed(&s, bytes);

	must(r >= 0 && r <= STREAM_SCHEMA);
	must(model_definitions(s.model)->pool.used <= memory_max);
	if (s.begun) {
		const size_t n = model_buckets(s.model, &buckets);

		for (size_t i = 0; i < n; i++)
			samples += buckets[i].samples;
		must(n == 0 || samples == model_totals(s.model)->samples);
		samples = model_totals(s.model)->samples;
		full = model_totals(s.model)->lost[LOST_LIMIT];
		must(session_finish(&s) == 0);
		struct status st = { 0 };

		model_status(s.model, &st, true);
		must(st.samples == samples && st.user_stacks <= samples && st.complete <= samples);
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
	const struct span b = { .data = data + 1, .len = size - 1 };
	const size_t memory_max = 4096 + (size_t)data[0] * 4096;
	const bool lines = data[0] & 1;

	if (data[0] % 8 != 7) {
		run(b, size % FORMATS, lines, memory_max, fd);
	} else {
		const enum format other = 1 + size % (FORMATS - 1);
		const uint64_t first = run(b, 0, lines, memory_max, fd),
			       second = run(b, other, lines, memory_max, fd);

		/* With enough room, all outputs count the same. */
		must(first == second || first == UINT64_MAX || second == UINT64_MAX);
	}
	return 0;
}
