/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a byte that chooses, then an environment in pieces of that size (1 to 127), a command line
 * (above), or a worker's answer about both (0). The texts that are found lie within the bytes and
 * their limits, and do not depend on the pieces.
 */
#include "tools/prof-bpf/open/workers/environment.h"

#include <stdlib.h>
#include "tests/fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = { "OTEL_SERVICE_NAME", "A" };

struct found {
	size_t len;
	uint8_t bytes[ENVIRONMENT_BYTES];
};

static void take(void *ctx, unsigned which, struct str value)
{
	struct found *f = ctx;

	must(which < 2 && value.len && value.len <= ENVIRONMENT_VALUE_MAX &&
	     !memchr(value.data, '\0', value.len));
	f->len = environment_put(f->bytes, f->len, which, value);
}

static void feed(struct found *f, struct span in, size_t piece)
{
	static struct environment_parser e;

	e = (struct environment_parser){ .names = names, .count = 2, .take = take, .ctx = f };
	f->len = 0;
	while (in.len) {
		struct span part;

		must(span_take(&in, in.len < piece ? in.len : piece, &part));
		environment_feed(&e, part);
	}
}

static void values(struct span in)
{
	const uint8_t *end = in.data + in.len;
	unsigned which;
	struct str value;

	while (environment_next(&in, &which, &value))
		must(which < ENVIRONMENT_VALUES && value.len &&
		     value.len <= ENVIRONMENT_VALUE_MAX &&
		     (const uint8_t *)value.data + value.len <= end);
}

static void command_line(struct span in)
{
	const struct str line = environment_command_line((const char *)in.data, in.len);

	must(line.len <= ENVIRONMENT_VALUE_MAX && line.len <= in.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct found whole, pieces;
	const struct span in = { .data = data + 1, .len = size ? size - 1 : 0 };

	if (!size)
		return 0;
	if (!data[0]) {
		values(in);
	} else if (data[0] > 127) {
		command_line(in);
	} else {
		feed(&pieces, in, data[0]);
		feed(&whole, in, in.len ? in.len : 1);
		must(whole.len == pieces.len && memcmp(whole.bytes, pieces.bytes, whole.len) == 0);
	}
	return 0;
}
