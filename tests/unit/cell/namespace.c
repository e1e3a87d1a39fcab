/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include <unistd.h>
#include "common/cell/confine/namespace.h"

Test(namespace, an_id_is_within_a_line_of_the_map)
{
	const char *map = "         0     100000      65536\n     70000          5          1\n";

	cr_expect(namespace_maps(map, 0));
	cr_expect(namespace_maps(map, 65534));
	cr_expect(namespace_maps(map, 65535));
	cr_expect_not(namespace_maps(map, 65536));
	cr_expect_not(namespace_maps(map, 100000), "that is outside");
	cr_expect(namespace_maps(map, 70000));
	cr_expect_not(namespace_maps(map, 70001));
}

Test(namespace, the_first_one_has_all_ids_but_the_last)
{
	const char *map = "         0          0 4294967295\n";

	cr_expect(namespace_maps(map, 2000001024));
	cr_expect(namespace_maps(map, 4294967294));
	cr_expect_not(namespace_maps(map, 4294967295));
}

Test(namespace, a_malformed_map_has_no_id)
{
	cr_expect_not(namespace_maps("", 0));
	cr_expect_not(namespace_maps("0 0", 0));
	cr_expect_not(namespace_maps("0 0 x", 0));
	cr_expect_not(namespace_maps("uid_map", 0));
}

Test(namespace, this_process_has_its_own_id)
{
	cr_expect(namespace_has_id(geteuid()));
}
