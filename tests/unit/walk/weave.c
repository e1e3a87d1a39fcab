/* SPDX-License-Identifier: Apache-2.0 */
/* The places of interpreted frames among native ones: weave.c. */
#include <criterion/criterion.h>
#include <string.h>
#include "common/walk/weave.h"

#define SLOT 7
#define LOOP(offset) ((0x1000 + (offset)) | (uint64_t)SLOT << SAMPLE_FRAME_SLOT_SHIFT)
#define SECOND_SLOT 9
#define SECOND_LOOP(offset) ((0x3000 + (offset)) | (uint64_t)SECOND_SLOT << SAMPLE_FRAME_SLOT_SHIFT)
#define OTHER(offset) ((uint64_t)(offset) | 3ull << SAMPLE_FRAME_SLOT_SHIFT)

static struct {
	struct sample sample;
	uint64_t words[64];
} s;
static struct runtime_config config, other;
static struct weave_frame got[WEAVE_MAX];
static bool cut;

static const struct runtime_config *runtime(void *ctx, uint16_t slot)
{
	return slot == SLOT ? &config : slot == SECOND_SLOT ? &other : NULL;
}

static void begin(enum runtime_by_loop by_loop)
{
	memset(&s, 0, sizeof(s));
	config = (struct runtime_config){ .runtime = RUNTIME_PYTHON,
					  .by_loop = by_loop,
					  .ranges = 2,
					  .loop = { { 0x1000, 0x2000 }, { 0x5000, 0x5100 } } };
	other = (struct runtime_config){ .runtime = RUNTIME_PYTHON,
					 .by_loop = by_loop,
					 .ranges = 1,
					 .loop = { { 0x3000, 0x4000 } } };
}

static void item_of(uint64_t slot, uint64_t kind, uint64_t address)
{
	uint64_t *to = s.words + s.sample.kernel_frames + 2u * s.sample.items++;

	cr_assert_eq(s.sample.user_frames, 0, "items come first");
	to[0] = kind << RUNTIME_ITEM_SHIFT | slot << RUNTIME_ITEM_SLOT_SHIFT | address;
	to[1] = address * 10;
}

static void item(uint64_t kind, uint64_t address)
{
	item_of(SLOT, kind, address);
}

static void native(uint64_t word)
{
	s.words[sample_head(&s.sample) + s.sample.user_frames++] = word;
}

/* One letter for each frame: n native, l native in a loop; digits are interpreted frames, by
 * address. */
static const char *woven(void)
{
	static char text[WEAVE_MAX + 1];
	uint32_t n = weave(&s.sample, &(struct weave_config){ .runtime = runtime }, got, &cut);

	for (uint32_t i = 0; i < n; i++)
		text[i] = got[i].interpreted ? (char)('0' + got[i].address)
			  : got[i].loop	     ? 'l'
					     : 'n';
	text[n] = '\0';
	return text;
}

Test(weave, code_that_the_loop_called_by_a_stub_is_part_of_it)
{
	for (unsigned rules = 0; rules < 3; rules++) {
		begin(RUNTIME_BY_ADDRESS);
		config.takes = rules ? RUNTIME_RULES_GENERATED : 0;
		config.rule = rules == 1 ? TABLES_RULE_STUB : 0;
		item(RUNTIME_FRAME, 1);
		item(RUNTIME_ENTRY, 0x7000);
		native(OTHER(0x10));
		native(0x7f0000);
		native(LOOP(0x20) | SAMPLE_FRAME_ENTRY);
		native(0x7f1000);
		native(OTHER(0x30));
		cr_expect_str_eq(woven(), rules == 1 ? "nlll1n" : "nnll1n");
	}
}

Test(weave, a_chain_stands_behind_the_frame_that_runs_it)
{
	begin(RUNTIME_BY_ADDRESS);
	item(RUNTIME_FRAME, 1);
	item(RUNTIME_FRAME, 2);
	item(RUNTIME_ENTRY, 0x7000);
	item(RUNTIME_FRAME, 3);
	item(RUNTIME_ENTRY, 0x8000);
	native(OTHER(0x10));
	native(LOOP(0x10) | SAMPLE_FRAME_ENTRY);
	native(OTHER(0x20));
	native(LOOP(0x20) | SAMPLE_FRAME_ENTRY);
	native(OTHER(0x30));
	cr_assert_str_eq(woven(), "nl12nl3n");
	cr_assert(!cut);
	cr_assert_eq(got[2].mark, 10);
	cr_assert_eq(got[2].slot, SLOT);
	cr_assert_eq(got[1].word, LOOP(0x10), "the mark is ours, not an output's");
}

Test(weave, generated_code_that_calls_the_loop_is_a_part_of_it)
{
	begin(RUNTIME_BY_ADDRESS);
	item(RUNTIME_FRAME, 1);
	item(RUNTIME_ENTRY, 0x7000);
	item(RUNTIME_FRAME, 2);
	item(RUNTIME_ENTRY, 0x8000);
	native(LOOP(0x10) | SAMPLE_FRAME_ENTRY);
	native(0x7f0000001000);
	native(OTHER(0x20));
	native(0x7f0000002000);
	native(LOOP(0x20) | SAMPLE_FRAME_ENTRY);
	native(0x7f0000003000);
	cr_assert_str_eq(woven(), "ll1nnll2");
	cr_assert_eq(got[1].word, 0x7f0000001000);
}

Test(weave, an_entry_that_has_no_frame_goes_with_the_next_one)
{
	begin(RUNTIME_BY_ADDRESS);
	item(RUNTIME_FRAME, 1);
	item(RUNTIME_ENTRY, 0);
	item(RUNTIME_FRAME, 2);
	item(RUNTIME_ENTRY, 0x8000);
	native(LOOP(0x10) | SAMPLE_FRAME_ENTRY);
	native(OTHER(0x30));
	cr_assert_str_eq(woven(), "l12n");
}

Test(weave, frames_not_reached_natively_stand_at_the_end)
{
	begin(RUNTIME_BY_ADDRESS);
	item(RUNTIME_FRAME, 1);
	item(RUNTIME_ENTRY, 0x7000);
	item(RUNTIME_FRAME, 2);
	item(RUNTIME_ENTRY, 0x8000);
	native(LOOP(0x10) | SAMPLE_FRAME_ENTRY);
	native(OTHER(0x30));
	cr_assert_str_eq(woven(), "l1n2");
}

Test(weave, a_frame_of_the_loop_runs_one_where_entries_have_no_address)
{
	begin(RUNTIME_FRAME_BY_LOOP);
	item(RUNTIME_FRAME, 1);
	item(RUNTIME_FRAME, 2);
	native(OTHER(0x10));
	native(LOOP(0x10));
	native(OTHER(0x20));
	native(0x5080 | (uint64_t)SLOT << SAMPLE_FRAME_SLOT_SHIFT);
	native(OTHER(0x30));
	cr_assert_str_eq(woven(), "nl1nl2n");
}

Test(weave, a_range_that_is_only_taken_over_is_no_part_of_the_loop)
{
	begin(RUNTIME_BY_ADDRESS);
	config.shown = 1;
	native(LOOP(0x10));
	native(0x5080 | (uint64_t)SLOT << SAMPLE_FRAME_SLOT_SHIFT);
	cr_assert_str_eq(woven(), "ln");
}

Test(weave, a_leaf_that_has_not_linked_its_frame_yet_gets_none)
{
	begin(RUNTIME_FRAME_BY_LOOP);
	item(RUNTIME_FRAME, 1);
	native(LOOP(4) | SAMPLE_FRAME_EXACT);
	native(OTHER(0x20));
	native(LOOP(0x20));
	cr_assert_str_eq(woven(), "lnl1");
}

Test(weave, a_return_address_just_behind_the_loop_is_in_it)
{
	begin(RUNTIME_FRAME_BY_LOOP);
	item(RUNTIME_FRAME, 1);
	native(OTHER(0x20));
	native(0x2000 | (uint64_t)SLOT << SAMPLE_FRAME_SLOT_SHIFT);
	cr_assert_str_eq(woven(), "nl1");
}

Test(weave, chains_of_two_runtimes_stand_each_behind_its_own_frame)
{
	begin(RUNTIME_BY_ADDRESS);
	item(RUNTIME_FRAME, 1);
	item(RUNTIME_ENTRY, 0x7000);
	item(RUNTIME_FRAME, 2);
	item(RUNTIME_ENTRY, 0x9000);
	item_of(SECOND_SLOT, RUNTIME_FRAME, 3);
	item_of(SECOND_SLOT, RUNTIME_FRAME, 4);
	item_of(SECOND_SLOT, RUNTIME_ENTRY, 0x8000);
	native(LOOP(0x10) | SAMPLE_FRAME_ENTRY);
	native(OTHER(0x10));
	native(SECOND_LOOP(0x10) | SAMPLE_FRAME_ENTRY);
	native(OTHER(0x20));
	native(LOOP(0x20) | SAMPLE_FRAME_ENTRY);
	native(OTHER(0x30));
	cr_assert_str_eq(woven(), "l1nl34nl2n");
	cr_assert_eq(got[1].slot, SLOT);
	cr_assert_eq(got[4].slot, SECOND_SLOT);
}

Test(weave, frames_of_two_loops_run_each_its_own_runtimes)
{
	begin(RUNTIME_FRAME_BY_LOOP);
	item(RUNTIME_FRAME, 1);
	item(RUNTIME_FRAME, 2);
	item_of(SECOND_SLOT, RUNTIME_FRAME, 3);
	native(SECOND_LOOP(0x8) | SAMPLE_FRAME_EXACT);
	native(SECOND_LOOP(0x10));
	native(LOOP(0x10));
	native(OTHER(0x20));
	native(LOOP(0x20));
	cr_assert_str_eq(woven(), "ll3l1nl2");
}

Test(weave, kernel_frames_are_passed_over)
{
	begin(RUNTIME_BY_ADDRESS);
	s.sample.kernel_frames = 3;
	item(RUNTIME_FRAME, 1);
	item(RUNTIME_ENTRY, 0x7000);
	native(LOOP(4) | SAMPLE_FRAME_ENTRY);
	cr_assert_str_eq(woven(), "l1");
}

Test(weave, a_stopped_walk_is_reported)
{
	begin(RUNTIME_BY_ADDRESS);
	item(RUNTIME_FRAME, 1);
	item(RUNTIME_STOPPED, 0);
	native(OTHER(0x10));
	cr_assert_str_eq(woven(), "n1");
	cr_assert(cut);
}

Test(weave, without_items_all_stays_as_it_is)
{
	begin(RUNTIME_FRAME_BY_LOOP);
	native(LOOP(4) | SAMPLE_FRAME_EXACT);
	native(OTHER(0x20));
	cr_assert_str_eq(woven(), "ln");
}

Test(weave, a_frame_of_the_loop_runs_a_chain_where_entries_have_no_address)
{
	begin(RUNTIME_CHAIN_BY_LOOP);
	item(RUNTIME_FRAME, 1);
	item(RUNTIME_FRAME, 2);
	item(RUNTIME_ENTRY, 0);
	item(RUNTIME_FRAME, 3);
	item(RUNTIME_ENTRY, 0);
	item(RUNTIME_FRAME, 4);
	native(OTHER(0x10));
	native(LOOP(0x10));
	native(OTHER(0x20));
	native(LOOP(0x20));
	native(OTHER(0x30));
	native(LOOP(0x30));
	native(OTHER(0x40));
	cr_assert_str_eq(woven(), "nl12nl3nl4n");
}

Test(weave, a_leaf_that_has_not_begun_its_chain_gets_none)
{
	begin(RUNTIME_CHAIN_BY_LOOP);
	item(RUNTIME_FRAME, 1);
	item(RUNTIME_FRAME, 2);
	item(RUNTIME_ENTRY, 0);
	native(LOOP(4) | SAMPLE_FRAME_EXACT);
	native(OTHER(0x20));
	native(LOOP(0x20));
	cr_assert_str_eq(woven(), "lnl12");
}

/* A frame that a runtime took, with n items. */
static void taken(unsigned n, uint64_t pc)
{
	native(pc | (SAMPLE_FRAME_TAKEN + n) << SAMPLE_FRAME_SLOT_SHIFT);
}

static void taken_item(uint64_t kind, uint64_t address)
{
	native(kind << RUNTIME_ITEM_SHIFT | (uint64_t)SLOT << RUNTIME_ITEM_SLOT_SHIFT | address);
	native(address * 10);
}

Test(weave, frames_inside_a_taken_frame_replace_it)
{
	begin(RUNTIME_BY_ADDRESS);
	native(OTHER(0x10));
	taken(2, 0x7f0000001000);
	taken_item(RUNTIME_FRAME, 1);
	taken_item(RUNTIME_FRAME, 2);
	taken(0, 0x7f0000002000);
	taken(1, 0x7f0000003000);
	taken_item(RUNTIME_FRAME, 3);
	native(OTHER(0x20));
	cr_assert_str_eq(woven(), "n12n3n");
	cr_assert_eq(got[1].mark, 10);
	cr_assert_eq(got[1].slot, SLOT);
	cr_assert_eq(got[3].word, 0x7f0000002000, "outputs show it as generated code");
	cr_assert_eq(got[4].at, 7);
	cr_assert_eq(got[5].at, 10);
}

Test(weave, a_chain_may_begin_in_a_frame_that_was_taken)
{
	begin(RUNTIME_BY_ADDRESS);
	item(RUNTIME_FRAME, 1);
	item(RUNTIME_ENTRY, 0x7000);
	taken(1, 0x7f0000001000 | SAMPLE_FRAME_ENTRY);
	taken_item(RUNTIME_FRAME, 2);
	native(OTHER(0x20));
	cr_assert_str_eq(woven(), "21n");
}

Test(weave, a_frame_that_was_taken_and_cut_is_not_read_beyond)
{
	begin(RUNTIME_BY_ADDRESS);
	taken(7, 0x7f0000001000);
	taken_item(RUNTIME_FRAME, 1);
	native(0);
	cr_assert_str_eq(woven(), "1");
}
