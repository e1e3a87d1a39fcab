/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/peers/offers.h"

#include <criterion/criterion.h>
#include "common/wire/msg.h"
#include "tools/prof-bpf/files/files.h"
#include "tools/prof-bpf/owners/owners.h"

#define SECOND 1000000000ull

/* A user maps 100 files with an interpreter's name, which have no samples, and so no slot. Returns
 * how many are offered. */
static unsigned offered(struct offers *o, struct owner *finder, uint64_t now_ns)
{
	static char path[] = "/tmp/python3";
	unsigned n = 0;

	for (uint32_t i = 0; i < 100; i++) {
		struct file f = { .pub = { .id = i + 1, .path = path, .path_len = 12 },
				  .finder = finder };

		offers_add(o, &f.pub, false, now_ns);
		n += f.pub.offered;
	}
	return n;
}

Test(offers, programs_of_the_host_come_first)
{
	static char path[] = "/usr/bin/python3";
	struct offers o = { .wanted = true };
	struct owners *owners;
	struct file hosts[2] = { 0 };

	cr_assert_eq(owners_new(&owners), 0);
	struct owner *user = owners_get(owners, (struct owner_key){ .uid = 1000 });
	const unsigned others = offered(&o, user, 100 * SECOND);

	o.paid_ns = 200 * SECOND; /* by more users */
	for (uint32_t i = 0; i < 2; i++) {
		hosts[i].pub = (struct host_file){
			.id = 1001 + i, .path = path, .path_len = 16, .flags = MSG_FILE_ROOT_ONLY
		};
		offers_add(&o, &hosts[i].pub, false, 100 * SECOND);
	}
	cr_expect_eq(offers_take(&o), 1001);
	cr_expect_eq(offers_take(&o), 1002);
	cr_expect_eq(offers_take(&o), 1);
	cr_expect_eq(o.count, others - 1);
	cr_expect_eq(o.hosts, 0);
	owner_put(owners, user);
	owners_free(owners);
}

Test(offers, a_user_takes_a_quarter_and_root_the_rest)
{
	struct offers o = { .wanted = true };
	struct owners *owners;

	cr_assert_eq(owners_new(&owners), 0);
	struct owner *root = owners_get(owners, (struct owner_key){ .uid = 0 }),
		     *user = owners_get(owners, (struct owner_key){ .uid = 1000 });

	/* A quarter, and the one that this moment allows. */
	const unsigned first = offered(&o, user, 100 * SECOND);

	cr_expect_eq(first, OFFERS_MAX / 4 + 1, "%u", first);
	cr_expect_eq(offered(&o, user, 101 * SECOND), 0);
	cr_expect_eq(offered(&o, root, 101 * SECOND), OFFERS_MAX - first);
	owner_put(owners, user);
	owner_put(owners, root);
	owners_free(owners);
}
