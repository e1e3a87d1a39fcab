/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/prof-export/model/figures/witness_check.h"

#include <criterion/criterion.h>

static const uint64_t none[STATUS_REASONS];

static struct witness_word word(uint64_t samples)
{
	struct witness_word w = { .magic = WITNESS_MAGIC, .began_ns = 5, .final = 1 };

	w.taken = samples;
	for (uint64_t i = 0; i < samples; i++)
		witness_count(&w.sent, &w.key, &(struct witness_sample){ .time_ns = 10 + i });
	return w;
}

static void sample(struct witness_check *c, uint64_t number)
{
	witness_check_sample(c, &(struct witness_sample){ .time_ns = 10 + number });
}

Test(witness_check, a_sample_before_the_first_word_disagrees)
{
	struct witness_check c = { 0 };
	const struct witness_word w = word(2);

	sample(&c, 7);
	cr_assert(witness_check_word(&c, &w));
	sample(&c, 0);
	sample(&c, 1);
	witness_check_judge(&c, none);
	cr_assert(c.judged);
	cr_assert_eq(c.verdict.more, 1);
	cr_assert_eq(c.verdict.fewer, 0);
}

Test(witness_check, they_may_be_prof_bpfs_if_it_says_so)
{
	struct witness_check c = { 0 };
	struct witness_word w = word(3);

	w.unheard = 1;
	sample(&c, 0);
	cr_assert(witness_check_word(&c, &w));
	sample(&c, 1);
	sample(&c, 2);
	witness_check_judge(&c, none);
	cr_assert_not(c.judged);
}

Test(witness_check, without_them_both_agree)
{
	struct witness_check c = { 0 };
	const struct witness_word w = word(2);

	cr_assert(witness_check_word(&c, &w));
	sample(&c, 0);
	sample(&c, 1);
	witness_check_judge(&c, none);
	cr_assert(c.judged);
	cr_assert_eq(c.verdict.more + c.verdict.fewer + c.verdict.losses, 0);
}
