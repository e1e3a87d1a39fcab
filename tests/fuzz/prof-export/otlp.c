/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a stream, after a byte that selects the memory and one for options. Each request keeps to
 * the rules (tests/otlp), and every sample is in one of them or counted as lost.
 */
#include <fcntl.h>
#include "tests/fuzz/must.h"
#include "tests/otlp/rules.h"
#include "tools/prof-export/session/session.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* By default zlib clears a quarter of a MiB. */
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

static uint64_t reported;

static int check_request(void *ctx, const struct request *r)
{
	(void)ctx;
	must(r->plain.len <= REQUEST_PLAIN_MAX);
	must(otlp_rules_check(r->plain) == r->samples);
	reported += r->samples;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct session s;
	static int fd = -1;

	if (size < 2)
		return 0;
	if (fd < 0)
		fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	const struct session_options o = {
		.format = FORMAT_OTLP,
		.memory_max = 4096 + (size_t)data[0] * data[0] * 512,
		.reporting = { .window_s = (data[1] & 7) + 0.001,
			       .jitter_percent = data[1] & 8 ? 20 : 0,
			       .names = (data[1] >> 4) % 3,
			       .receiver = data[1] >> 6 & 1 },
	};

	must(session_init(&s, &o, fd) == 0);
	s.otlp.options.flush = check_request;
	s.otlp.options.gzip = data[1] & 128;
	reported = 0;
	const int r = session_feed(&s, (struct span){ .data = data + 2, .len = size - 2 });

	must(r >= 0 && r <= STREAM_SCHEMA);
	must(s.otlp.pool.used <= s.otlp.pool.max && s.otlp.spare.used == 0);
	if (s.begun) {
		const uint64_t samples = model_totals(s.model)->samples;

		must(session_finish(&s) == 0);
		must(reported <= samples &&
		     samples - reported <= model_totals(s.model)->lost[LOST_LIMIT]);
	}
	session_done(&s);
	must(s.otlp.pool.used == 0);
	return 0;
}
