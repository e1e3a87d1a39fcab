/* SPDX-License-Identifier: Apache-2.0 */
#include "common/status/witness.h"

#include <criterion/criterion.h>
#include "common/wire/msg.h"

static const struct witness_key key = { { 0x1234567890abcdef, 0xfedcba0987654321 } };

static void count(struct witness_counts *c, uint64_t pid, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		witness_count(c, &key,
			      &(struct witness_sample){
				      .pid = pid, .tid = pid, .cpu = 1, .time_ns = i, .value = 7 });
}

static struct witness_word word_of(uint64_t pid, uint64_t n)
{
	struct witness_word w = { .magic = WITNESS_MAGIC, .final = 1, .taken = n };

	count(&w.sent, pid, n);
	return w;
}

Test(witness, the_same_samples_agree)
{
	const struct witness_word w = word_of(1, 100);
	const uint64_t lost[STATUS_REASONS] = { 0 };
	struct witness_counts came = { 0 };

	count(&came, 1, 100);
	const struct witness_verdict v = witness_compare(&w, &came, lost, 0, false);

	cr_assert(v.more == 0 && v.fewer == 0 && v.losses == 0);
}

Test(witness, samples_of_another_process_disagree)
{
	const struct witness_word w = word_of(1, 100);
	const uint64_t lost[STATUS_REASONS] = { 0 };
	struct witness_counts came = { 0 };

	count(&came, 2, 100);
	const struct witness_verdict v = witness_compare(&w, &came, lost, 0, false);

	cr_assert(v.more > 20 && v.fewer == v.more);
}

Test(witness, samples_counted_twice_disagree)
{
	const struct witness_word w = word_of(1, 100);
	const uint64_t lost[STATUS_REASONS] = { 0 };
	struct witness_counts came = { 0 };

	count(&came, 1, 100);
	count(&came, 1, 1);
	cr_assert_eq(witness_compare(&w, &came, lost, 0, false).more, 1);
}

Test(witness, samples_without_a_thread_disagree)
{
	const struct witness_word w = word_of(1, 100);
	const uint64_t lost[STATUS_REASONS] = { 0 };
	struct witness_counts came = { 0 };

	count(&came, 1, 100);
	came.samples += 7;
	cr_assert_eq(witness_compare(&w, &came, lost, 0, false).more, 7);
}

Test(witness, a_later_loss_explains_what_is_missing)
{
	const struct witness_word w = word_of(1, 100);
	uint64_t lost[STATUS_REASONS] = { [LOST_LIMIT] = 10 };
	struct witness_counts came = { 0 };

	count(&came, 1, 90);
	cr_assert_eq(witness_compare(&w, &came, lost, 0, false).fewer, 0);
	/* Not if these arrived before the loss. */
	cr_assert_eq(witness_compare(&w, &came, lost, 10, false).fewer, 10);
	/* Nor does a restart, if none happened. */
	lost[LOST_LIMIT] = 0;
	lost[LOST_RESTART] = 10;
	cr_assert_eq(witness_compare(&w, &came, lost, 0, false).fewer, 10);
	cr_assert_eq(witness_compare(&w, &came, lost, 0, true).fewer, 0);
}

Test(witness, a_swallowed_loss_disagrees)
{
	struct witness_word w = word_of(1, 10);
	uint64_t lost[STATUS_REASONS] = { 0 };
	struct witness_counts came = { 0 };

	count(&came, 1, 10);
	w.lost[LOST_RING_FULL] = 5;
	w.lost[LOST_LIMIT] = 2;
	cr_assert_eq(witness_compare(&w, &came, lost, 0, false).losses, 7);
	lost[LOST_RING_FULL] = 5;
	lost[LOST_LIMIT] = 3;
	cr_assert_eq(witness_compare(&w, &came, lost, 0, false).losses, 0);
}

Test(witness, an_invented_loss_of_prof_bpf_disagrees)
{
	const struct witness_word w = word_of(1, 10);
	const uint64_t lost[STATUS_REASONS] = { [LOST_QUEUE_FULL] = 4 };
	struct witness_counts came = { 0 };

	count(&came, 1, 10);
	cr_assert_eq(witness_compare(&w, &came, lost, 0, true).losses, 4);
}

/* What is in a sample besides its process, thread, cpu, time and value. */
Test(witness, other_numbers_of_a_sample_are_compared)
{
	const struct witness_sample changes[] = {
		{ .source = 1 }, { .count = 1000000 }, { .labels = 1 }, { .link = 1 }
	};
	const uint64_t lost[STATUS_REASONS] = { 0 };
	const struct witness_word w = word_of(1, 100);

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		struct witness_counts came = { 0 };

		for (uint64_t n = 0; n < 100; n++) {
			struct witness_sample s = changes[i];

			s.pid = s.tid = s.cpu = 1;
			s.time_ns = n;
			s.value = 7;
			witness_count(&came, &key, &s);
		}
		cr_expect_gt(witness_compare(&w, &came, lost, 0, false).more, 20, "%zu", i);
	}
}
