/* SPDX-License-Identifier: Apache-2.0 */
#include "common/names/jit/codecache.h"

#include <criterion/criterion.h>

static struct codecache cache;
static struct names names;
static const struct codecache_key key = { .process = 7, .address = 0x1000, .generation = 1 };
static const struct codefile_answer found = { .found = true, .since_ns = 100, .until_ns = 200 };
static const struct codefile_answer nothing = { .until_ns = UINT64_MAX };

static void done(void)
{
	codecache_done(&cache);
}

TestSuite(codecache, .fini = done);

static void put_named(const struct codecache_key *of, const char *name)
{
	const struct names_call c = { .name = str_from(name),
				      .system_name = STR_LIT("Lmain;"),
				      .source = STR_LIT("main.js"),
				      .line = 12 };

	codecache_put(&cache, of, &found, &c);
}

Test(codecache, an_answer_holds_for_its_time)
{
	cr_expect_null(codecache_find(&cache, &key, 150));
	put_named(&key, "main");
	cr_expect_null(codecache_find(&cache, &key, 99));
	cr_expect_null(codecache_find(&cache, &key, 200));
	const struct codecache_answer *k = codecache_find(&cache, &key, 199);

	cr_assert(k);
	cr_assert(codecache_tell(k, &names));
	cr_expect_eq(names.count, 1);
	cr_expect(str_eq(names.calls[0].name, STR_LIT("main")));
	cr_expect(str_eq(names.calls[0].system_name, STR_LIT("Lmain;")));
	cr_expect(str_eq(names.calls[0].source, STR_LIT("main.js")));
	cr_expect_eq(names.calls[0].line, 12);
}

Test(codecache, an_answer_is_that_of_one_address_and_generation)
{
	struct codecache_key other = key;

	put_named(&key, "main");
	other.generation = 2;
	cr_expect_null(codecache_find(&cache, &other, 150));
	other = key;
	other.address++;
	cr_expect_null(codecache_find(&cache, &other, 150));
	other = key;
	other.process++;
	cr_expect_null(codecache_find(&cache, &other, 150));
}

Test(codecache, an_address_without_a_name_is_known_too)
{
	codecache_put(&cache, &key, &nothing, NULL);
	const struct codecache_answer *k = codecache_find(&cache, &key, 150);

	cr_assert(k);
	cr_expect(!codecache_tell(k, &names));
}

Test(codecache, later_answers_take_the_places_of_earlier_ones)
{
	struct codecache_key of = key;
	unsigned kept = 0;

	for (unsigned i = 0; i < 4 * CODECACHE_ANSWERS; i++, of.address += 16)
		put_named(&of, "main");
	for (unsigned i = 0; i < 4 * CODECACHE_ANSWERS; i++)
		kept += codecache_find(&cache,
				       &(struct codecache_key){ .process = key.process,
								.address = key.address + 16 * i,
								.generation = 1 },
				       150) != NULL;
	cr_expect_leq(kept, CODECACHE_ANSWERS);
	cr_expect_gt(kept, CODECACHE_ANSWERS / 4);
}
