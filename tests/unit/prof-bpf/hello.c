/* SPDX-License-Identifier: Apache-2.0 */
/* Ids of hosts. tests/e2e/test_attributes.py compares this host's with systemd's. */
#include "tools/prof-bpf/hello.h"

#include <criterion/criterion.h>

#define MACHINE "0123456789abcdef0123456789abcdef"
#define DERIVED "19c1cfd873a24cdd92277291702f0f43" /* computed with Python's hmac */

static bool derives(const char *text)
{
	char id[HELLO_DERIVED];

	return hello_derive(str_from(text), id) && memcmp(id, DERIVED, sizeof(id)) == 0;
}

Test(hello, an_id_is_derived_as_systemd_does)
{
	cr_expect(derives(MACHINE "\n"));
	cr_expect(derives(MACHINE));
}

Test(hello, a_machine_without_an_id_has_none_derived)
{
	char id[HELLO_DERIVED];
	static const char *const none[] = { "",
					    "\n",
					    "uninitialized\n",
					    MACHINE "0\n",
					    "0123456789ABCDEF0123456789ABCDEF\n",
					    "00000000000000000000000000000000\n",
					    "01234567-89ab-cdef-0123-456789abcdef\n" };

	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		cr_expect(!hello_derive(str_from(none[i]), id), "%s", none[i]);
}

Test(hello, a_configured_host_id_is_used)
{
	struct hello h;

	hello_read(&h, "rack 4");
	cr_expect(str_eq(h.host_id, STR_LIT("rack 4")));
	hello_read(&h, "");
	cr_expect_eq(h.host_id.len, 0, "no id is wanted");
}
