/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/tables/idmap.h"

#include <criterion/criterion.h>
#include <errno.h>

Test(idmap, an_entry_is_found_until_removed)
{
	struct idmap m;
	uint64_t x = 1;

	cr_assert_eq(idmap_init(&m, 5000), 0);
	for (uint32_t i = 0; i < 5000; i++)
		cr_assert_eq(idmap_put(&m, (uint64_t)i * i + 1, i), 0);
	cr_expect_eq(idmap_put(&m, UINT64_MAX, 1), -ENOBUFS);
	cr_expect_eq(idmap_put(&m, 0, 1), -EINVAL);
	for (uint32_t i = 0; i < 5000; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		if (x >> 63)
			idmap_remove(&m, (uint64_t)i * i + 1);
		else
			cr_assert_eq(idmap_get(&m, (uint64_t)i * i + 1), i);
	}
	x = 1;
	for (uint32_t i = 0; i < 5000; i++) {
		x = x * 6364136223846793005ull + 1442695040888963407ull;
		cr_assert_eq(idmap_get(&m, (uint64_t)i * i + 1), x >> 63 ? IDMAP_NONE : i);
	}
	idmap_done(&m);
}
