/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/system/cpulist.h"

#include <criterion/criterion.h>
#include <string.h>

static void expect(const char *text, const char *printed)
{
	struct cpulist l = { 0 };
	char got[256];

	cr_assert(cpulist_add(&l, text), "%s", text);
	cr_assert(cpulist_print(&l, got, sizeof(got)));
	cr_assert_str_eq(got, printed);
}

Test(cpulist, a_list_is_printed_in_order_and_with_ranges)
{
	expect("0", "0");
	expect("0-3,5", "0-3,5");
	expect("5,0-3", "0-3,5");
	expect("1,2,3", "1-3");
	expect("0-1,1-2\n", "0-2");
	expect("63-65,8191", "63-65,8191");
}

Test(cpulist, malformed_list_is_refused)
{
	static const char *const bad[] = { "",	   ",",	   "0,",    ",0",	 "-1",	 "1-",
					   "3-1",  " 1",   "1 ",    "0x1",	 "1--2", "1-2-3",
					   "8192", "0\n1", "1,\n2", "4294967296" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct cpulist l = { 0 };

		cr_assert_not(cpulist_add(&l, bad[i]), "%s", bad[i]);
	}
}

Test(cpulist, sets_are_compared)
{
	struct cpulist a = { 0 }, b = { 0 }, none = { 0 };

	cr_assert(cpulist_add(&a, "1,3") && cpulist_add(&b, "0-2"));
	cr_assert(cpulist_empty(&none) && !cpulist_empty(&a));
	cr_assert(cpulist_meets(&a, &b) && !cpulist_meets(&a, &none));
	cr_assert_eq(cpulist_beyond(&a, &b), 3);
	cr_assert_eq(cpulist_beyond(&none, &b), -1);
	cr_assert(cpulist_has(&a, 3) && !cpulist_has(&a, 2) && !cpulist_has(&a, CPULIST_MOST));
}

Test(cpulist, a_text_that_does_not_fit_is_cut)
{
	struct cpulist l = { 0 };
	char small[4];

	cr_assert(cpulist_add(&l, "10,20"));
	cr_assert_not(cpulist_print(&l, small, sizeof(small)));
	cr_assert_str_eq(small, "10");
}
