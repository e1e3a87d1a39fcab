/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/bytes/hash.h"

#include <criterion/criterion.h>
#include <string.h>

static uint64_t of(const char *text)
{
	return hash_bytes(HASH_START, text, strlen(text));
}

/* Source: the test vectors of the Internet draft "The FNV Non-Cryptographic Hash Algorithm". */
Test(hash, the_vectors_of_fnv_1a_are_met)
{
	cr_assert_eq(of(""), 0xcbf29ce484222325u);
	cr_assert_eq(of("a"), 0xaf63dc4c8601ec8cu);
	cr_assert_eq(of("foobar"), 0x85944171f73967e8u);
}

Test(hash, a_hash_is_continued)
{
	cr_assert_eq(hash_bytes(of("foo"), "bar", 3), of("foobar"));
	cr_assert_eq(hash_bytes(of("foo"), NULL, 0), of("foo"));
	cr_assert_neq(hash_bytes(of("foo"), "", 1), of("foo"));
}
