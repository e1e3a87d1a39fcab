/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-symd/stream/functions.h"

#include <criterion/criterion.h>
#include <errno.h>

Test(functions, differ_by_every_field)
{
	struct functions t;
	struct function f = { .name = STR_LIT("ab"), .system_name = STR_LIT("c") };
	struct function g = { .name = STR_LIT("a"), .system_name = STR_LIT("bc") };
	struct function h = { .name = STR_LIT("ab"), .system_name = STR_LIT("c"), .start_line = 1 };
	uint64_t id;
	bool fresh;

	cr_assert_eq(functions_init(&t, 3, 1000), 0);
	cr_expect(functions_intern(&t, &f, 1, &id, &fresh) == 0 && id == 1 && fresh);
	cr_expect(functions_intern(&t, &g, 1, &id, &fresh) == 0 && id == 2 && fresh);
	cr_expect(functions_intern(&t, &h, 1, &id, &fresh) == 0 && id == 3 && fresh);
	cr_expect(functions_intern(&t, &g, 1, &id, &fresh) == 0 && id == 2 && !fresh);
	h.start_line = 2;
	cr_expect_eq(functions_intern(&t, &h, 1, &id, &fresh), -ENOBUFS);
	functions_done(&t);
}
