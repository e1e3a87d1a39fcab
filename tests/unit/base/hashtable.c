/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/tables/hashtable.h"

#include <criterion/criterion.h>
#include <string.h>

/* CPython's hash() of these bytes with PYTHONHASHSEED=0, which is SipHash-1-3 by a key of zeros. */
Test(hashtable, hashes_are_those_of_another_siphash)
{
	static const struct {
		const char *text;
		uint64_t hash;
	} known[] = {
		{ "a", 0x407448d2b89b1813 },
		{ "abc", 0xc03bc3a0042630f2 },
		{ "1234567", 0xa33d651594fdae81 },
		{ "12345678", 0x3489982430560a87 },
		{ "123456789", 0x0fbc0f0007965fcf },
		{ "profpipe, profpipe, profpipe", 0x02a089f96397644b },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		cr_expect_eq(hashtable_siphash((const uint64_t[2]){ 0 }, known[i].text,
					       strlen(known[i].text)),
			     known[i].hash, "%s", known[i].text);
}

Test(hashtable, the_key_is_this_processs_own)
{
	cr_expect_eq(hashtable_hash("abc", 3), hashtable_hash("abc", 3));
	cr_expect_neq(hashtable_hash("abc", 3),
		      hashtable_siphash((const uint64_t[2]){ 0 }, "abc", 3));
}

struct entry {
	uint64_t inode;
	UT_hash_handle hh;
};

Test(hashtable, the_table_uses_it)
{
	struct entry e = { .inode = 7 }, *all = NULL, *found;

	HASH_ADD(hh, all, inode, sizeof(e.inode), &e);
	cr_expect_eq(e.hh.hashv, (unsigned)hashtable_hash(&e.inode, sizeof(e.inode)));
	HASH_FIND(hh, all, &e.inode, sizeof(e.inode), found);
	cr_expect_eq(found, &e);
	HASH_CLEAR(hh, all);
}
