/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns fuzz input into a stream of our schema, whose hash no fuzzer would guess. It inserts the
 * hash in place of the first field with value 1 right after the head of a hello: [1, [1, …]]. For a
 * target that is linked with SCHEMA_ONCE_WRAP.
 */
#ifndef TESTS_FUZZ_WITH_SCHEMA_H
#define TESTS_FUZZ_WITH_SCHEMA_H

#include <stdlib.h>
#include "common/base/buf.h"
#include "tests/fuzz/schema_once.h"

static inline struct buf with_schema(struct span bytes)
{
	const uint64_t hash = msg_schema_hash();
	struct buf b = BUF_INIT(0);
	const uint8_t *p = bytes.data;
	uint8_t wire[9] = { 0xcf };
	size_t at = 2;

	for (int k = 0; k < 8; k++)
		wire[1 + k] = (uint8_t)(hash >> (56 - 8 * k));
	while (at + 4 <= bytes.len && at < 64 &&
	       (p[at - 2] != 0x92 || p[at - 1] != 1 || (p[at] & 0xf0) != 0x90 || p[at + 1] != 1))
		at++;
	const bool found = at + 4 <= bytes.len && at < 64;
	const size_t before = found ? at + 1 : bytes.len, skip = found ? 1 : 0;

	if (buf_append(&b, p, before) || (found && buf_append(&b, wire, sizeof(wire))) ||
	    buf_append(&b, p + before + skip, bytes.len - before - skip))
		abort();
	return b;
}

#endif
