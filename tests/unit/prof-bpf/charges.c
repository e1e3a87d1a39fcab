/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-bpf/stream/charges.h"

#include <criterion/criterion.h>
#include "tools/prof-bpf/owners/owners.h"
#include "tools/prof-bpf/stream/outbox.h"

static struct owners *owners;
static struct outbox box = { .max = 1000 };
static struct charges c;

static void set_up(void)
{
	cr_assert_eq(owners_new(&owners), 0);
	c.owners = owners;
}

static void clean_up(void)
{
	charges_done(&c);
	owners_free(owners);
}

TestSuite(charges, .init = set_up, .fini = clean_up);

static struct owner *user(uint32_t uid)
{
	return owners_get(owners, (struct owner_key){ .uid = uid });
}

/* Bytes of an owner's that wait in the outbox. */
static void add(struct owner *w, size_t n)
{
	const uint64_t at = charges_at(&c, 0);

	charges_add(&c, w, at, charges_at(&c, n));
	charges_flushed(&c, n);
	box.bytes += n;
}

static void send(size_t n)
{
	box.bytes -= n;
	charges_sent(&c, &box);
}

Test(charges, an_owner_that_fills_the_outbox_costs_others_nothing)
{
	struct owner *large = user(1), *small = user(2);

	add(large, 480);
	cr_assert(charges_may(&c, &box, large));
	add(large, 40);
	cr_assert(!charges_may(&c, &box, large));
	for (unsigned i = 0; i < 24; i++) {
		cr_assert(charges_may(&c, &box, small), "%u", i);
		add(small, 10);
	}
	/* Its share is a half of the half. */
	add(small, 10);
	cr_assert(!charges_may(&c, &box, small));
}

Test(charges, sent_bytes_are_given_back)
{
	struct owner *large = user(1), *small = user(2);

	add(large, 600);
	add(small, 100);
	cr_assert_eq(large->held[OWNER_OUTBOX], 600);
	send(600);
	cr_assert_eq(large->held[OWNER_OUTBOX], 0);
	cr_assert_eq(small->held[OWNER_OUTBOX], 100);
	cr_assert(charges_may(&c, &box, large));
}

Test(charges, the_last_eighth_is_left_to_definitions)
{
	struct owner *large = user(1), *small = user(2);

	add(large, 880);
	cr_assert(!charges_may(&c, &box, small));
	cr_assert(!charges_may(&c, &box, NULL));
}

Test(charges, many_samples_of_an_owner_are_few_charges)
{
	struct owner *one = user(1), *two = user(2);

	for (unsigned i = 0; i < 1000; i++)
		add(i % 2 ? one : two, 10);
	cr_assert_eq(c.count, 2);
	cr_assert_eq(one->held[OWNER_OUTBOX], 5000);
	box.bytes = 0;
	charges_sent(&c, &box);
	cr_assert_eq(c.count, 0);
}
