/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/host/processes/cgroups.h"

#include <criterion/criterion.h>

Test(cgroups, a_cgroup_recreated_at_a_path_is_another_one)
{
	struct cgroups cgroups = { 0 };
	struct host_cgroup *a = cgroups_get(&cgroups, STR_LIT("/a"), 7),
			   *same = cgroups_get(&cgroups, STR_LIT("/a"), 7),
			   *old = cgroups_get(&cgroups, STR_LIT("/a"), 0),
			   *b = cgroups_get(&cgroups, STR_LIT("/a"), 8);

	cr_assert(a && a == same && old && b);
	cr_expect(a->kernel_id == 7 && old != a && old->kernel_id == 0);
	cr_expect(b != a && b->id != a->id && b->kernel_id == 8);
	cgroups_put(&cgroups, a);
	cgroups_put(&cgroups, same);
	cgroups_put(&cgroups, old);
	cgroups_put(&cgroups, b);
	cgroups_put(&cgroups, NULL);
	cr_expect_null(cgroups.by_key, "nothing is kept");
}
