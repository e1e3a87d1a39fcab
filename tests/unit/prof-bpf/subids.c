/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/owners/subids.h"

#include <criterion/criterion.h>
#include "tools/prof-bpf/owners/owners.h"

static struct subids ids;

Test(subids, ids_of_a_block_stand_for_its_first)
{
	cr_assert_eq(subids_add(&ids, "alice:100000:65536\nbob:165536:65536\n"), 0);
	cr_expect_eq(subids_owner(&ids, 99999), 99999);
	cr_expect_eq(subids_owner(&ids, 100000), 100000);
	cr_expect_eq(subids_owner(&ids, 165535), 100000);
	cr_expect_eq(subids_owner(&ids, 165536), 165536);
	cr_expect_eq(subids_owner(&ids, 231071), 165536);
	cr_expect_eq(subids_owner(&ids, 231072), 231072);
	cr_expect_eq(subids_owner(&ids, 0), 0);
	cr_expect_eq(subids_owner(&ids, UINT32_MAX), UINT32_MAX);
	subids_done(&ids);
	cr_expect_eq(subids_owner(&ids, 100001), 100001);
}

Test(subids, all_blocks_of_a_user_are_one)
{
	cr_assert_eq(subids_add(&ids, "alice:500000:10\nbob:300000:10\nalice:200000:10\n"
				      "1000:400000:1"),
		     0);
	cr_expect_eq(subids_owner(&ids, 500009), 200000);
	cr_expect_eq(subids_owner(&ids, 200001), 200000);
	cr_expect_eq(subids_owner(&ids, 300001), 300000);
	cr_expect_eq(subids_owner(&ids, 400000), 400000);
	subids_done(&ids);
}

Test(subids, lines_without_a_block_are_skipped)
{
	cr_assert_eq(subids_add(&ids, "# a remark\n\nalice:1:\nalice:x:1\nalice:5000000000:1\n"
				      "alice:7:0\nalice:4294967295:9\nalice:7:5 \nbob:9:1"),
		     0);
	cr_expect_eq(ids.len, 1);
	cr_expect_eq(subids_owner(&ids, 9), 9);
	subids_done(&ids);
}

Test(subids, reading_replaces_what_was_there)
{
	cr_assert_eq(subids_add(&ids, "nobody:4294967000:9"), 0);
	cr_expect_eq(subids_owner(&ids, 4294967003), 4294967000);
	cr_assert_eq(subids_read(&ids), 0);
	cr_expect_eq(subids_owner(&ids, 4294967003), 4294967003);
	subids_done(&ids);
}

Test(subids, an_owner_has_all_ids_of_its_block)
{
	struct owners *o;

	cr_assert_eq(subids_add(&ids, "alice:100000:65536"), 0);
	cr_assert_eq(owners_new(&o), 0);
	owners_fold(o, &ids);
	struct owner *one = owners_get(o, (struct owner_key){ .uid = 100007 }),
		     *other = owners_get(o, (struct owner_key){ .uid = 123456 }),
		     *inside = owners_get(o, (struct owner_key){ .uid = 100007, .container = 5 });

	cr_expect_eq(one, other);
	cr_expect_eq(one->key.uid, 100000);
	cr_expect_neq(one, inside);
	cr_expect_eq(owners_find(o, (struct owner_key){ .uid = 165535 }), one);
	owner_put(o, one);
	owner_put(o, other);
	owner_put(o, inside);
	owners_free(o);
	subids_done(&ids);
}
