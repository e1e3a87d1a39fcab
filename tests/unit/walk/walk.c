/* SPDX-License-Identifier: Apache-2.0 */
/* The walker over hand-made stacks: what each rule does, and how each walk ends. */
#include <criterion/criterion.h>
#include <string.h>
#include "bpf/walk.h"
#include "common/walk/tables.h"

const struct env *env_current;

#define STACK 0x7fff00000000ull
#define CODE 0x400000ull
#define MADE 0x7000000000ull

static uint64_t stack[4096];
static size_t stack_words = 4096;
static uint8_t image[0x1000]; /* from CODE on */
static uint8_t made[0x1000];  /* from MADE on, of no file */
static struct tables *t;
static struct env env;
static struct walk w;
static uint16_t slot;

static long read_stack(void *ctx, void *dst, uint32_t size, uint64_t addr)
{
	uint64_t d = addr - STACK;

	if (addr - CODE <= sizeof(image) - size) {
		memcpy(dst, image + (addr - CODE), size);
		return 0;
	}
	if (addr - MADE <= sizeof(made) - size) {
		memcpy(dst, made + (addr - MADE), size);
		return 0;
	}
	if (addr < STACK || d > stack_words * 8 - size)
		return -1;
	memcpy(dst, (char *)stack + d, size);
	return 0;
}

/* A program of one file's mapping and one of generated code. The file's rule n holds at [n * 0x100,
 * (n + 1) * 0x100). */
static void program(const struct unwind_rule *rules, uint32_t n)
{
	const struct tables_config c = { .slabs_fd = -1,
					 .files_fd = -1,
					 .rules_fd = -1,
					 .processes_fd = -1,
					 .max_bytes = SLAB_BYTES };
	struct process_entry p;

	cr_assert_eq(tables_new(&c, &t), 0);
	cr_assert_eq(tables_file_new(t, &slot), 0);
	if (n) {
		cr_assert_eq(tables_rows_begin(t, slot, 0, 0x10000, n, n), 0);
		cr_assert_eq(tables_rows_rules(t, slot, rules, n), 0);
		for (uint32_t i = 0; i < n; i++) {
			struct unwind_row_wire row = { .offset = i * 0x100, .rule = i };

			cr_assert_eq(tables_rows_chunk(t, slot, &row, 1), 0);
		}
		cr_assert_eq(tables_rows_end(t, slot), 0);
	} else {
		tables_file_none(t, slot);
	}
	const struct tables_mapping m[] = {
		{ .start = CODE, .end = CODE + 0x10000, .slot = slot },
		{ .start = MADE, .end = MADE + 0x1000 },
	};
	cr_assert_eq(tables_walk_maps(t, m, 2, &p), 0);
	tables_env(t, &env);
	env.read_user = read_stack;
	env_current = &env;
	walk_begin(&w, &p, true);
	walk_place(&w);
	w.sp = STACK + 1024;
	w.fp = 0;
}

static void run(void)
{
	while (!walk_step(&w))
		;
	tables_free(t);
}

static uint64_t *at(uint64_t address)
{
	return &stack[(address - STACK) / 8];
}

static const struct unwind_rule by_rsp16 = { .cfa = UNWIND_CFA_REG,
					     .cfa_reg = UNWIND_REG_RSP,
					     .cfa_off = 16 };
static const struct unwind_rule root = {
	.cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_REG_RSP, .cfa_off = 8, .ra = UNWIND_RA_UNDEFINED
};

Test(walk, the_return_address_below_the_cfa_leads_to_the_root)
{
	program((struct unwind_rule[]){ by_rsp16, root }, 2);
	w.pc = CODE + 0x10;
	*at(w.sp + 8) = CODE + 0x20;
	*at(w.sp + 24) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 3);
	cr_assert_eq(w.words[0], 0x10 | SAMPLE_FRAME_EXACT | 1ull << SAMPLE_FRAME_SLOT_SHIFT);
	cr_assert_eq(w.words[1] & SAMPLE_FRAME_OFFSET_MASK, 0x20);
	cr_assert_eq(w.words[2] & SAMPLE_FRAME_OFFSET_MASK, 0x110);
}

Test(walk, the_vsyscall_page_leads_to_its_caller)
{
	program((struct unwind_rule[]){ by_rsp16, root }, 2);
	w.pc = 0xffffffffff600400;
	*at(w.sp) = CODE + 0x20;
	*at(w.sp + 16) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 3);
	cr_assert_eq(w.words[0], 0xffffff600400 | SAMPLE_FRAME_EXACT);
	cr_assert_eq(w.words[1] & SAMPLE_FRAME_OFFSET_MASK, 0x20);
}

Test(walk, a_call_through_a_null_pointer_leads_to_its_caller)
{
	program((struct unwind_rule[]){ by_rsp16, root }, 2);
	w.pc = 0;
	*at(w.sp) = CODE + 0x20;
	*at(w.sp + 16) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 3);
	cr_assert_eq(w.words[1] & SAMPLE_FRAME_OFFSET_MASK, 0x20);
}

Test(walk, a_rule_that_cannot_be_expressed_is_not_passed_by_a_frame_pointer)
{
	program(
		(struct unwind_rule[]){
			{ .cfa = UNWIND_CFA_END, .cfa_add = UNWIND_END_UNSUPPORTED }, root },
		2);
	w.pc = CODE + 0x10;
	w.fp = w.sp + 64;
	*at(w.fp + 8) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_UNSUPPORTED_RULE);
	cr_assert_eq(w.count, 1);
}

Test(walk, a_return_address_that_is_none_sets_no_bits_of_its_frame)
{
	program((struct unwind_rule[]){ by_rsp16, root }, 2);
	w.pc = CODE + 0x10;
	*at(w.sp + 8) = 0xfff5123456789abc;
	run();
	cr_assert_eq(w.reason, WALK_NO_MAPPING);
	cr_assert_eq(w.count, 2);
	cr_assert_eq(w.words[1], 0x123456789abc);
}

Test(walk, a_return_address_at_the_end_of_a_range_belongs_to_the_call_before_it)
{
	program((struct unwind_rule[]){ by_rsp16,
					root,
					{ .cfa = UNWIND_CFA_END, .cfa_add = UNWIND_END_GAP } },
		3);
	w.pc = CODE + 0x10;
	*at(w.sp + 8) = CODE + 0x200;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 2);
}

Test(walk, rbp_is_restored_from_the_frame_and_used_by_the_caller)
{
	struct unwind_rule saves = { .cfa = UNWIND_CFA_REG,
				     .cfa_reg = UNWIND_REG_RSP,
				     .cfa_off = 24,
				     .rbp = UNWIND_RBP_CFA,
				     .rbp_off = -16 };
	struct unwind_rule uses = { .cfa = UNWIND_CFA_REG,
				    .cfa_reg = UNWIND_REG_RBP,
				    .cfa_off = 16 };

	program((struct unwind_rule[]){ saves, uses, root }, 3);
	w.pc = CODE;
	*at(w.sp + 8) = w.sp + 512;
	*at(w.sp + 16) = CODE + 0x150;
	*at(w.sp + 520) = CODE + 0x250;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 3);
}

Test(walk, a_plt_slot_behind_its_push_has_one_word_more)
{
	struct unwind_rule plt = { .cfa = UNWIND_CFA_PLT, .cfa_off = 11 };

	for (int pushed = 0; pushed < 2; pushed++) {
		program((struct unwind_rule[]){ plt, root }, 2);
		w.pc = CODE + 0x20 + (pushed ? 11 : 6);
		*at(w.sp + (pushed ? 8 : 0)) = CODE + 0x110;
		*at(w.sp + (pushed ? 0 : 8)) = 5;
		run();
		cr_assert_eq(w.reason, WALK_COMPLETE);
		cr_assert_eq(w.count, 2);
	}
}

Test(walk, a_cfa_may_lie_in_memory)
{
	struct unwind_rule deref = {
		.cfa = UNWIND_CFA_DEREF, .cfa_reg = UNWIND_REG_RSP, .cfa_off = 8, .cfa_add = 8
	};

	program((struct unwind_rule[]){ deref, root }, 2);
	w.pc = CODE;
	*at(w.sp + 8) = w.sp + 800;
	*at(w.sp + 800) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.sp, STACK + 1024 + 808);
}

Test(walk, a_return_address_in_a_register_is_the_leafs_alone)
{
	struct unwind_rule vfork = {
		.cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_REG_RSP, .ra = UNWIND_RA_REG, .ra_reg = 5
	};

	program((struct unwind_rule[]){ vfork, root }, 2);
	w.pc = CODE;
	w.regs[5] = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 2);

	program((struct unwind_rule[]){ by_rsp16, vfork }, 2);
	w.pc = CODE;
	*at(w.sp + 8) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_UNSUPPORTED_RULE);
}

Test(walk, a_leafs_caller_may_keep_its_cfa_in_a_register_of_the_leaf)
{
	struct unwind_rule rax = { .cfa = UNWIND_CFA_REG, .cfa_reg = 0, .cfa_off = 8 };

	program((struct unwind_rule[]){ by_rsp16, rax, root }, 3);
	w.pc = CODE;
	w.regs[0] = w.sp + 512;
	*at(w.sp + 8) = CODE + 0x110;
	*at(w.sp + 512) = CODE + 0x210;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 3);

	/* Not two calls from the leaf. */
	program((struct unwind_rule[]){ by_rsp16, rax, root }, 3);
	w.pc = CODE;
	w.regs[0] = w.sp + 512;
	*at(w.sp + 8) = CODE + 0x10;
	*at(w.sp + 24) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_UNSUPPORTED_RULE);
	cr_assert_eq(w.count, 3);
}

Test(walk, a_signal_frame_goes_on_from_the_interrupted_registers)
{
	struct unwind_rule signal = { .flags = UNWIND_SIGNAL_FRAME };

	program((struct unwind_rule[]){ by_rsp16, signal, by_rsp16, root }, 4);
	w.pc = CODE;
	uint64_t frame = w.sp + 16;
	*at(w.sp + 8) = CODE + 0x101;
	*at(frame + 120) = 77;
	*at(frame + 160) = frame + 2000;
	*at(frame + 168) = CODE + 0x200;
	*at(frame + 2008) = CODE + 0x310;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 4);
	cr_assert(w.words[2] & SAMPLE_FRAME_EXACT, "interrupted at the first byte of its function");
}

Test(walk, without_rows_the_frame_pointer_is_followed_and_the_frames_say_so)
{
	program(NULL, 0);
	w.pc = CODE + 0x10;
	w.fp = w.sp + 64;
	*at(w.fp) = w.sp + 128;
	*at(w.fp + 8) = CODE + 0x20;
	*at(w.sp + 128) = 0;
	*at(w.sp + 136) = CODE + 0x30;
	run();
	cr_assert_eq(w.reason, WALK_NO_ROOT);
	cr_assert_eq(w.count, 3);
	cr_assert(!(w.words[0] & SAMPLE_FRAME_FP));
	cr_assert(w.words[1] & w.words[2] & SAMPLE_FRAME_FP);
}

Test(walk, a_frame_pointer_that_leads_nowhere_ends_as_no_rows)
{
	program(NULL, 0);
	w.pc = CODE;
	w.fp = 12345;
	run();
	cr_assert_eq(w.reason, WALK_NO_ROWS);
	cr_assert_eq(w.at_slot, slot);

	program(NULL, 0);
	w.pc = CODE;
	w.fp = w.sp + 64;
	*at(w.fp) = w.fp + 64;
	*at(w.fp + 8) = 0x1234567;
	run();
	cr_assert_eq(w.reason, WALK_NO_ROWS);
	cr_assert_eq(w.count, 1, "what is not mapped is no frame");
}

Test(walk, a_stack_that_does_not_rise_is_cut)
{
	struct unwind_rule still = { .cfa = UNWIND_CFA_REG,
				     .cfa_reg = UNWIND_REG_RSP,
				     .cfa_off = 0 };

	program(&still, 1);
	w.pc = CODE;
	run();
	cr_assert_eq(w.reason, WALK_NO_PROGRESS);
}

Test(walk, a_stack_of_more_than_the_limit_is_cut_as_too_deep)
{
	struct unwind_rule leaf = { .cfa = UNWIND_CFA_REG,
				    .cfa_reg = UNWIND_REG_RSP,
				    .cfa_off = 8 };

	program(&leaf, 1);
	w.pc = CODE;
	for (size_t i = 0; i < 4096; i++)
		stack[i] = CODE + 0x10;
	w.sp = STACK + 8;
	run();
	cr_assert_eq(w.reason, WALK_DEPTH);
	cr_assert_eq(w.count, SAMPLE_MAX_USER);
}

Test(walk, the_end_of_readable_memory_is_said)
{
	program(&by_rsp16, 1);
	w.pc = CODE;
	w.sp = STACK + sizeof(stack) - 8;
	run();
	cr_assert_eq(w.reason, WALK_STACK_UNREADABLE);
}

Test(walk, the_last_words_of_a_stack_are_read_one_by_one)
{
	program((struct unwind_rule[]){ by_rsp16, root }, 2);
	w.pc = CODE;
	w.sp = STACK + sizeof(stack) - 16;
	*at(w.sp + 8) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
}

Test(walk, a_pc_in_no_mapping_is_shown_and_said)
{
	program((struct unwind_rule[]){ by_rsp16 }, 1);
	w.pc = CODE;
	*at(w.sp + 8) = 0x123456;
	run();
	cr_assert_eq(w.reason, WALK_NO_MAPPING);
	cr_assert_eq(w.count, 2);
	cr_assert_eq(w.words[1], 0x123456);
}

Test(walk, rows_that_are_on_their_way_are_said)
{
	program(&root, 1);
	w.pc = CODE;
	cr_assert_eq(tables_file_new(t, &slot), 0);
	struct tables_mapping m = {
		.start = CODE, .end = CODE + 0x10000, .offset = 0, .slot = slot
	};
	struct process_entry p;
	cr_assert_eq(tables_walk_maps(t, &m, 1, &p), 0);
	walk_begin(&w, &p, true);
	walk_place(&w);
	run();
	cr_assert_eq(w.reason, WALK_ROWS_PENDING);
}

/* The bytes around a leaf's pc, and where its return address then lies, in words above RSP. */
static const struct {
	const char *code; /* four bytes before pc, four from it on */
	int above;
} leaf_code[] = {
	{ "\x90\x90\x90\x90\x55\x48\x89\xe5", 0 }, /* push rbp; mov rbp, rsp */
	{ "\x90\x90\x90\x90\x55\x48\x8b\xec", 0 }, /* the same, as others encode it */
	{ "\x90\x90\x90\x90\xf3\x0f\x1e\xfa", 0 }, /* endbr64 */
	{ "\x90\x90\x90\x55\x48\x89\xe5\x90", 1 }, /* behind the push */
	{ "\x90\x90\x90\x90\x5d\xc3\x90\x90", 1 }, /* pop rbp; ret */
	{ "\x90\x90\x90\x5d\xc3\x90\x90\x90", 0 }, /* ret */
	{ "\x90\x90\x90\x90\xc2\x08\x00\x90", 0 }, /* ret 8 */
};

Test(walk, a_frame_pointer_step_in_a_prologue_or_at_a_return_does_not_skip_the_caller)
{
	for (size_t i = 0; i < sizeof(leaf_code) / sizeof(leaf_code[0]); i++) {
		memcpy(image + 0x10 - 4, leaf_code[i].code, 8);
		program(NULL, 0);
		w.pc = CODE + 0x10;
		w.fp = w.sp + 64; /* the caller's, or pushed */
		*at(w.sp) = leaf_code[i].above ? w.fp : CODE + 0x20;
		*at(w.sp + 8) = leaf_code[i].above ? CODE + 0x20 : 3;
		*at(w.fp) = 0;
		*at(w.fp + 8) = CODE + 0x30;
		run();
		cr_assert_eq(w.reason, WALK_NO_ROOT, "case %zu: %d", i, w.reason);
		cr_assert_eq(w.count, 3, "case %zu: %u", i, w.count);
		cr_assert_eq(w.words[1] & SAMPLE_FRAME_OFFSET_MASK, 0x20);
	}
}

Test(walk, a_trampoline_without_a_frame_pointer_is_told_by_what_follows_its_call)
{
	program(NULL, 0);
	memcpy(image + 0x20, "\x48\x83\xc4\x18\xc3\x90\x90\x90", 8);
	w.pc = CODE + 0x10;
	w.fp = w.sp + 64;
	*at(w.fp) = w.sp + 160;
	*at(w.fp + 8) = CODE + 0x20; /* in the trampoline: 24 bytes, then its return address */
	*at(w.fp + 16 + 24) = CODE + 0x30;
	*at(w.sp + 160) = 0;
	*at(w.sp + 168) = CODE + 0x40;
	run();
	cr_assert_eq(w.reason, WALK_NO_ROOT, "%d", w.reason);
	cr_assert_eq(w.count, 4);
	cr_assert_eq(w.words[2] & SAMPLE_FRAME_OFFSET_MASK, 0x30);
}

Test(walk, a_frame_pointer_of_zero_is_no_root)
{
	program(NULL, 0);
	w.pc = CODE + 0x10;
	run();
	cr_assert_eq(w.reason, WALK_NO_ROWS);
}

/* By rule 0 to what returns to zero by rule 1. */
static int ends_at_zero(uint8_t leaf_flags, uint8_t caller_flags)
{
	struct unwind_rule leaf = by_rsp16, caller = by_rsp16;

	leaf.flags = leaf_flags;
	caller.flags = caller_flags;
	program((struct unwind_rule[]){ leaf, caller }, 2);
	w.pc = CODE + 0x10;
	*at(w.sp + 8) = CODE + 0x110;
	*at(w.sp + 24) = 0;
	run();
	cr_assert_eq(w.count, 2);
	return w.reason;
}

Test(walk, a_return_address_of_zero_is_a_root_where_no_guess_led_to_it)
{
	const uint8_t table = UNWIND_DERIVED, guess = UNWIND_DERIVED | UNWIND_GUESSED;

	cr_assert_eq(ends_at_zero(0, 0), WALK_COMPLETE);
	cr_assert_eq(ends_at_zero(table, table), WALK_COMPLETE, "Go's tables");
	cr_assert_eq(ends_at_zero(guess, 0), WALK_NO_ROOT);
	cr_assert_eq(ends_at_zero(0, guess), WALK_NO_ROOT);
	cr_assert_eq(w.at_slot, slot);

	/* Nor in the leaf, as of GHC's code, by any row. */
	for (int by_table = 0; by_table < 2; by_table++) {
		struct unwind_rule rule = by_rsp16;

		rule.flags = by_table ? 0 : guess;
		program(&rule, 1);
		w.pc = CODE;
		*at(w.sp + 8) = 0;
		run();
		cr_assert_eq(w.reason, WALK_NO_ROOT);
	}
}

Test(walk, guesses_and_frame_pointers_that_lead_to_a_root_are_complete)
{
	const struct unwind_rule gap = { .cfa = UNWIND_CFA_END, .cfa_add = UNWIND_END_GAP };
	struct unwind_rule guess = by_rsp16;

	guess.flags = UNWIND_DERIVED | UNWIND_GUESSED;
	program((struct unwind_rule[]){ guess, gap, root }, 3);
	w.pc = CODE + 0x10;
	w.fp = w.sp + 64;
	*at(w.sp + 8) = CODE + 0x110;
	*at(w.fp) = 0;
	*at(w.fp + 8) = CODE + 0x210;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 3);
}

#define LEAF (CODE + 0x80)    /* without rows */
#define FAR (CODE + 0x3a0)    /* likewise */
#define CALLER (CODE + 0x90)  /* likewise, behind a call */
#define MAIN (CODE + 0x110)   /* the root */
#define INNER (CODE + 0x200)  /* a leaf with rows */
#define SECOND (CODE + 0x340) /* behind a call, without rows */

/* From where there are no rows to the root, by a frame pointer 8 words above RSP. */
static void without_rows(uint64_t pc)
{
	const struct unwind_rule gap = { .cfa = UNWIND_CFA_END, .cfa_add = UNWIND_END_GAP };
	struct unwind_rule call = by_rsp16;

	call.cfa_off = 8;
	memset(image, 0x90, sizeof(image));
	memset(stack, 0, sizeof(stack));
	memset(w.regs, 0, sizeof(w.regs));
	program((struct unwind_rule[]){ gap, root, call, gap, gap }, 5);
	w.pc = pc;
	if (pc == INNER) {
		*at(w.sp - 8) = CALLER;
		w.sp -= 8;
		w.fp = w.sp + 72;
	} else {
		w.fp = w.sp + 64;
	}
	*at(w.fp) = w.fp + 256;
	*at(w.fp + 8) = MAIN;
}

/* The n-th word above where the stack pointer is in the frame without rows. */
static uint64_t *above(unsigned n)
{
	return at(w.fp - 64 + 8 * n);
}

static uint8_t *code_at(uint64_t address)
{
	return address >= MADE ? made + (address - MADE) : image + (address - CODE);
}

static void at_code(uint64_t address, const char *bytes, size_t n)
{
	memcpy(code_at(address), bytes, n);
}

/* A call of `target` that ends at pc. */
static void calls(uint64_t pc, uint64_t target)
{
	int32_t by = (int32_t)(target - pc);

	*code_at(pc - 5) = 0xe8;
	memcpy(code_at(pc - 4), &by, sizeof(by));
}

static void ends(uint16_t reason, const char *what)
{
	const unsigned count = w.pc == INNER ? 3 : 2;

	run();
	cr_assert_eq(w.reason, reason, "%s: %d", what, w.reason);
	cr_assert_eq(w.count, count, "%s: all that was found is shown", what);
	cr_assert_eq(w.at_slot, reason ? slot : 0);
}

#define PUSH_MOV "\x55\x48\x89\xe5"
#define PUSH_MOV_2 "\x55\x48\x8b\xec"

Test(walk, a_leaf_without_rows_may_have_no_frame_where_a_word_leads_into_code)
{
	without_rows(LEAF);
	*above(3) = STACK + 2000;
	ends(WALK_COMPLETE, "none does");
	without_rows(LEAF);
	*above(0) = MAIN;
	ends(WALK_CALLER_UNSURE, "the first");
	without_rows(LEAF);
	*above(5) = MAIN;
	ends(WALK_CALLER_UNSURE, "the sixth");
	without_rows(LEAF);
	*above(6) = MAIN;
	ends(WALK_COMPLETE, "what older calls left");
	without_rows(LEAF);
	*above(8) = CALLER;
	*at(w.fp) = MAIN;
	ends(WALK_COMPLETE, "where RBP points");
}

Test(walk, a_leaf_without_rows_may_have_no_frame_where_a_register_leads_into_code)
{
	without_rows(LEAF);
	w.regs[0] = CODE + 0x20; /* rax */
	calls(CODE + 0x20, LEAF);
	ends(WALK_COMPLETE, "not popped");
	for (int back = 1; back < 80; back++) {
		for (int call = 0; call < 2; call++) {
			without_rows(FAR);
			at_code(FAR - back, "\x58", 1);
			if (call)
				calls(CODE + 0x20, LEAF);
			w.regs[0] = CODE + 0x20;
			ends(back <= 32 || (call && back <= 64) ? WALK_CALLER_UNSURE
								: WALK_COMPLETE,
			     "popped");
		}
	}
	without_rows(CODE + 0x38);
	w.regs[0] = CODE + 0x20;
	ends(WALK_CALLER_UNSURE, "where little code is before");
	static const uint8_t numbers[] = { 0, 2, 1, 3, 7, 6, 4, 5 };
	for (int i = 0; i < 16; i++) {
		if (i == 4 || i == 5)
			continue;
		for (int other = 0; other < 2; other++) {
			without_rows(LEAF);
			at_code(LEAF - 9, i < 8 ? "\x48\x58" : "\x41\x58", 2);
			image[LEAF - 8 - CODE] += i & 7;
			w.regs[(i < 8 ? numbers[i] : i) ^ other] = CODE + 0x20;
			if ((i ^ other) == 4 || (i < 8 && (numbers[i] ^ other) >= 6))
				continue;
			ends(other ? WALK_COMPLETE : WALK_CALLER_UNSURE, "the one that is popped");
		}
	}
	without_rows(INNER);
	calls(CODE + 0x20, LEAF);
	w.regs[0] = CODE + 0x20;
	ends(WALK_COMPLETE, "not what a caller had");

	/* As it was interrupted by a signal. */
	for (int held = 0; held < 2; held++) {
		struct unwind_rule signal = { .flags = UNWIND_SIGNAL_FRAME };
		const struct unwind_rule gap = { .cfa = UNWIND_CFA_END, .cfa_add = UNWIND_END_GAP };

		memset(stack, 0, sizeof(stack));
		program((struct unwind_rule[]){ gap, root, signal }, 3);
		w.pc = CODE + 0x200;
		*at(w.sp + 120) = w.sp + 1064;
		*at(w.sp + 144) = held ? CODE + 0x20 : 0; /* rax */
		*at(w.sp + 160) = w.sp + 1000;
		*at(w.sp + 168) = LEAF;
		*at(w.sp + 1072) = MAIN;
		run();
		cr_assert_eq(w.reason, held ? WALK_CALLER_UNSURE : WALK_COMPLETE, "%d", w.reason);
		cr_assert_eq(w.count, 3);
	}
}

Test(walk, a_frame_that_was_set_up_shortly_before_is_the_functions_own)
{
	for (int i = 0; i < 2; i++) {
		without_rows(LEAF);
		at_code(LEAF - 40, i ? PUSH_MOV_2 : PUSH_MOV, 4);
		*above(0) = MAIN;
		ends(WALK_COMPLETE, "set up");
	}
	static const char *const over[] = { "\xc3", "\xc9", "\x5d", "\xe9", "\xeb", "\xcc" };
	for (size_t i = 0; i < sizeof(over) / sizeof(over[0]); i++) {
		without_rows(LEAF);
		at_code(LEAF - 40, PUSH_MOV, 4);
		at_code(LEAF - 20, over[i], 1);
		*above(0) = MAIN;
		ends(WALK_CALLER_UNSURE, "and taken down, or another function's");
	}
}

Test(walk, a_caller_without_rows_returns_behind_a_call)
{
	without_rows(INNER);
	ends(WALK_COMPLETE, "no word");
	without_rows(INNER);
	*above(2) = SECOND;
	ends(WALK_COMPLETE, "behind no call");
	without_rows(INNER);
	*above(2) = MADE + 0x40;
	ends(WALK_CALLER_UNSURE, "behind no call of generated code");
	static const char *const call[] = {
		"\xff\xd0",
		"\xff\x17",
		"\xff\x14\x24",
		"\xff\x50\x08",
		"\xff\x54\x24\x08",
		"\xff\x90\x00\x01\x00\x00",
		"\x41\xff\xd7",
		"\xff\x15\x00\x00\x00\x00",
		"\xff\x94\x24\x00\x01\x00\x00",
		"\xe8\x10\x00\x00\x00",
	};
	static const size_t length[] = { 2, 2, 3, 3, 4, 6, 3, 6, 7, 5 };
	for (size_t i = 0; i < sizeof(call) / sizeof(call[0]); i++) {
		without_rows(INNER);
		at_code(SECOND - length[i], call[i], length[i]);
		*above(2) = SECOND;
		ends(WALK_CALLER_UNSURE, "behind a call");
	}
}

Test(walk, a_function_has_the_frame_that_the_one_which_was_called_makes)
{
	for (int larger = 0; larger < 2; larger++) {
		without_rows(INNER);
		calls(MAIN, CODE + 0x30);
		at_code(CODE + 0x34, PUSH_MOV_2 "\x48\x83\xec\x40", 8);
		if (larger)
			image[0x34 + 7] = 0x30;
		calls(SECOND, CODE + 0x60);
		*above(1) = SECOND;
		ends(larger ? WALK_CALLER_UNSURE : WALK_COMPLETE, "64 bytes");
	}
	without_rows(INNER);
	calls(MAIN, CODE + 0x30);
	at_code(CODE + 0x34, PUSH_MOV "\x48\x81\xec\x40\x00\x00\x00", 11);
	calls(SECOND, CODE + 0x60);
	*above(1) = SECOND;
	ends(WALK_COMPLETE, "in four bytes");
}

Test(walk, a_word_is_left_behind_where_the_frame_of_its_function_has_no_room)
{
	for (int room = 0; room < 2; room++) {
		without_rows(INNER);
		at_code(SECOND - 100, PUSH_MOV "\x48\x83\xec\x20", 8);
		at_code(SECOND - 2, "\xff\xd6", 2);
		*above(room ? 3 : 4) = SECOND;
		ends(room ? WALK_CALLER_UNSURE : WALK_COMPLETE, "32 bytes above");
	}
}

Test(walk, a_frame_is_set_up_by_hotspots_stubs_too)
{
	without_rows(LEAF);
	at_code(LEAF - 40, "\x48\x89\x6c\x24\x10\x48\x8b\xec\x48\x83\xc5\x10", 12);
	*above(0) = MAIN;
	ends(WALK_COMPLETE, "mov rbp, rsp; add rbp, 16");
}

Test(walk, where_the_stack_pointer_is_the_frame_pointer_no_return_address_lies_between)
{
	without_rows(LEAF);
	w.sp = w.fp;
	*at(w.fp) = MAIN;
	ends(WALK_COMPLETE, "pop rbp");
}

Test(walk, the_callers_frame_pointer_that_is_given_back_early_is_not_followed_in_peace)
{
	static const char give[] = "\x48\x8b\x6d\x00";

	without_rows(LEAF);
	at_code(LEAF - 20, give, 4);
	ends(WALK_CALLER_UNSURE, "mov rbp, [rbp]");
	without_rows(LEAF);
	at_code(LEAF - 40, PUSH_MOV, 4);
	at_code(LEAF - 4, give, 4);
	ends(WALK_CALLER_UNSURE, "of a frame");
	without_rows(LEAF);
	at_code(LEAF - 20, give, 4);
	at_code(LEAF - 4, "\xff\xe1", 2);
	ends(WALK_COMPLETE, "before a jump away");
	without_rows(INNER);
	at_code(CALLER - 20, give, 4);
	ends(WALK_COMPLETE, "a caller");
}

/* LEAF's bytes, of which the first `back` lie before pc. */
static void returns_to(const char *bytes, size_t n, unsigned back, unsigned above_sp, bool pushed)
{
	without_rows(LEAF);
	w.fp = 0;
	at_code(LEAF - back, bytes, n);
	*at(w.sp + above_sp) = SECOND;
	if (pushed)
		*at(w.sp + above_sp - 8) = w.sp + 512;
	else
		w.fp = w.sp + 512;
	*at(w.sp + 512) = 0;
	*at(w.sp + 520) = MAIN;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE, "%u of %zu bytes: %d", back, n, w.reason);
	cr_assert_eq(w.count, 3);
}

#define RETURNS(bytes, back, above_sp, pushed) \
	returns_to(bytes, sizeof(bytes) - 1, back, above_sp, pushed)

Test(walk, prologues_and_epilogues_tell_where_the_return_address_is)
{
	static const char bang[] = "\x89\x84\x24\x00\xc0\xfe\xff\x55\x48\x83\xec\x10";
	static const char poll[] = "\x48\x83\xc4\x20\x5d\x49\x3b\xa7\x40\x03\x00\x00"
				   "\x0f\x87\x10\x00\x00\x00\xc3";

	RETURNS(PUSH_MOV, 0, 0, false);
	RETURNS(PUSH_MOV, 1, 8, true);
	RETURNS("\xf3\x0f\x1e\xfa", 0, 0, false);
	RETURNS("\x5d\xc3", 0, 8, true);
	RETURNS("\x5d\xc3", 1, 0, false);
	RETURNS("\xc2\x10\x00", 0, 0, false);
	RETURNS("\x48\x83\xc4\x20\x5d\xc3", 0, 40, true);
	RETURNS(bang, 0, 0, false);
	RETURNS(bang, 7, 0, false);
	RETURNS(bang, 8, 8, true);
	RETURNS(poll, 0, 40, true);
	RETURNS(poll, 4, 8, true);
	RETURNS(poll, 5, 0, false);
	RETURNS(poll, 12, 0, false);
	RETURNS(poll, 18, 0, false);
	RETURNS("\x48\x8b\xe5\x5d\x48\x83\xf9\x02\x7f\x03\xc2\x10\x00", 4, 0, false);
	RETURNS("\x48\x8b\xe5\x5d\x48\x83\xf9\x02\x7f\x03\xc2\x10\x00", 8, 0, false);
	RETURNS("\x48\x89\xec\x5d", 4, 0, false);
}

Test(walk, what_is_stored_upwards_is_no_prologue)
{
	without_rows(LEAF);
	at_code(LEAF, "\x89\x84\x24\x00\x40\x01\x00\x55", 8);
	ends(WALK_COMPLETE, "mov [rsp + N], eax; push rbp");
}

Test(walk, a_stub_that_saves_the_callers_frame_pointer_does_not_own_it)
{
	for (int still = 0; still < 2; still++) {
		without_rows(INNER);
		w.fp = w.sp + 512;
		at_code(CALLER - 40, "\x52\x48\x83\xec\x08\x48\x89\x2c\x24", 9);
		*at(w.sp + 8) = still ? w.fp : 0;
		calls(SECOND, CALLER);
		*at(w.sp + 16) = SECOND;
		*at(w.fp) = 0;
		*at(w.fp + 8) = MAIN;
		run();
		cr_assert_eq(w.count, still ? 4 : 3);
		cr_assert_eq(w.reason, still ? WALK_COMPLETE : WALK_CALLER_UNSURE, "%d", w.reason);
	}
}

#define FUNCTION (MADE + 0x100)

/* A function of generated code that has called itself. */
Test(walk, a_function_that_has_its_frame_was_not_called_by_a_word_in_it)
{
	for (int kind = 0; kind < 4; kind++) {
		without_rows(LEAF);
		memset(made, 0x90, sizeof(made));
		w.pc = kind == 1 ? FUNCTION + 0x10 : FUNCTION + 0xa0;
		if (kind != 2)
			at_code(FUNCTION, PUSH_MOV, 4);
		if (kind == 3)
			at_code(w.pc - 4, "\x5d", 1);
		/* Far enough for the frame to be forgotten. */
		at_code(FUNCTION + 8, "\xeb", 1);
		calls(FUNCTION + 0x80, FUNCTION);
		*above(1) = FUNCTION + 0x80;
		run();
		cr_assert_eq(w.reason, kind ? WALK_CALLER_UNSURE : WALK_COMPLETE, "%d: %d", kind,
			     w.reason);
	}
}

Test(walk, a_frame_of_no_known_size_is_not_anothers)
{
	for (int between = 0; between < 2; between++) {
		without_rows(INNER);
		at_code(SECOND - 100, PUSH_MOV "\x48\x83\xec\x20", 8);
		if (between)
			at_code(SECOND - 40, PUSH_MOV "\x41\x57", 6);
		at_code(SECOND - 2, "\xff\xd6", 2);
		*above(4) = SECOND;
		ends(between ? WALK_CALLER_UNSURE : WALK_COMPLETE, "of the function before");
	}
}

/* Generated code that is called by generated code has a frame; what its frame holds says nothing.
 */
Test(walk, behind_a_frame_pointer_that_was_followed_none_is_asked_about)
{
	without_rows(LEAF);
	*at(w.fp) = w.fp + 64;
	*at(w.fp + 8) = CALLER;
	calls(CODE + 0x20, LEAF);
	*at(w.fp + 16) = CODE + 0x20;
	*at(w.fp + 72) = MAIN;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE, "%d", w.reason);
	cr_assert_eq(w.count, 3);
}

/* What returns there is what was called, and not the code whose RBP leads there. */
Test(walk, a_call_of_a_function_with_rows_says_that_it_is_skipped)
{
	static const uint64_t targets[] = { INNER, LEAF - 40 };

	for (int rows = 0; rows < 2; rows++) {
		const uint16_t reason = rows ? WALK_COMPLETE : WALK_CALLER_UNSURE;

		without_rows(LEAF);
		at_code(LEAF - 40, PUSH_MOV, 4);
		calls(MAIN, targets[rows]);
		ends(reason, "direct");
		without_rows(LEAF);
		at_code(LEAF - 40, PUSH_MOV, 4);
		at_code(MAIN - 12, "\x48\xb8", 2);
		memcpy(code_at(MAIN - 10), &targets[rows], sizeof(targets[rows]));
		at_code(MAIN - 2, "\xff\xd0", 2);
		ends(reason, "by a register that was loaded before");
		without_rows(LEAF);
		*at(w.fp) = w.fp + 64;
		*at(w.fp + 8) = CALLER;
		*at(w.fp + 72) = MAIN;
		calls(MAIN, targets[rows]);
		run();
		cr_assert_eq(w.reason, reason, "further up: %d", w.reason);
		cr_assert_eq(w.count, 3);
	}
}

/* It was not found by RBP: that may be its caller's. */
Test(walk, behind_a_prologue_or_a_return_it_is_asked_whose_frame_pointer_it_is)
{
	for (int word = 0; word < 2; word++) {
		without_rows(LEAF);
		at_code(LEAF, "\xc3", 1);
		*above(0) = CALLER;
		calls(CODE + 0x20, LEAF - 40);
		*above(3) = word ? CODE + 0x20 : 0;
		run();
		cr_assert_eq(w.reason, word ? WALK_CALLER_UNSURE : WALK_COMPLETE, "%d", w.reason);
		cr_assert_eq(w.count, 3);
	}
}

/* As over a copy of the stack. */
Test(walk, code_that_cannot_be_read_proves_nothing)
{
	without_rows(CODE + 4);
	ends(WALK_CALLER_UNSURE, "nothing before it");
	without_rows(CODE + 8);
	ends(WALK_COMPLETE, "enough before it");
}

/* libjvm jumps to a stub of HotSpot's that has no frame. */
Test(walk, a_function_with_rows_may_have_jumped_to_a_leaf)
{
	for (unsigned n = 0; n < 2; n++) {
		without_rows(LEAF);
		calls(CODE + 0x20, INNER);
		*above(n) = CODE + 0x20;
		ends(n ? WALK_COMPLETE : WALK_CALLER_UNSURE, "on top of the stack");
	}
	without_rows(INNER);
	calls(CODE + 0x20, INNER);
	*above(0) = CODE + 0x20;
	ends(WALK_COMPLETE, "a caller");
}

#define PAIR "\x48\x89\x2c\x24\x48\x8b\xec" /* mov [rsp], rbp; mov rbp, rsp */
#define CALLEE (CODE + 0x40)
#define ROUTINE (CODE + 0x70)

/* SBCL's: the frame that RBP points at was called before MAIN. A word is left that an indirect call
 * had laid. */
static void sbcl(uint64_t pc)
{
	without_rows(pc);
	at_code(MAIN - 12, PAIR, 7);
	calls(MAIN, CALLEE);
	at_code(CALLEE, "\x8f\x45\x08", 3); /* pop [rbp+8] */
	at_code(SECOND - 2, "\xff\xd0", 2);
	*above(2) = SECOND;
}

/* RBP is the callee's, which returns nowhere yet; it leads to its caller's frame. */
static void sbcl_callee(uint64_t pc)
{
	sbcl(pc);
	*at(w.fp + 264) = MAIN;
	*at(w.fp + 8) = CALLER;
}

static void leads_over_second(const char *what)
{
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE, "%s: %d", what, w.reason);
	cr_assert_eq(w.count, 3, "%s: %u", what, w.count);
	cr_assert_eq(w.words[1] & SAMPLE_FRAME_OFFSET_MASK, SECOND - CODE, "%s", what);
}

Test(walk, a_function_of_sbcl_has_its_own_frame_whatever_older_calls_left)
{
	sbcl(LEAF);
	ends(WALK_COMPLETE, "by both");
	sbcl(LEAF);
	at_code(CALLEE, "\x90", 1);
	ends(WALK_COMPLETE, "by what is before the call");
	sbcl(LEAF);
	at_code(MAIN - 12, "\x90\x90\x90\x90", 4);
	ends(WALK_COMPLETE, "by what the call leads to");
	sbcl(LEAF);
	at_code(CALLEE, "\x90", 1);
	at_code(MAIN - 12, "\x90\x90\x90\x90", 4);
	ends(WALK_CALLER_UNSURE, "not SBCL's");
	static const char *const call[] = {
		"\x49\x89\x28\x49\x8b\xe8\xb8\x02\xd0\x2c\x50\xff\xd0", /* by r8, a constant */
		"\x49\x89\x29\x49\x8b\xe9\x90\x90\x90\xff\x50\xfd",
		"\x49\x89\x29\x49\x8b\xe9\xff\x50\xfd",
		"\x49\x89\x29\x49\x8b\xe9\x8d\x58\xf5\xf6\xc3\x0f\x74\x09\xff\x14\x25\x20\x04\x00"
		"\x50\xeb\x03\xff\x50\xfd",
		"\x49\x89\x29\x49\x8b\xea\xff\x50\xfd",
	};
	static const size_t length[] = { 13, 12, 9, 26, 9 };
	static const bool is[] = { true, false, true, true, false };
	for (size_t i = 0; i < sizeof(length) / sizeof(length[0]); i++) {
		sbcl(LEAF);
		at_code(MAIN - 12, "\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90\x90", 12);
		at_code(MAIN - length[i], call[i], length[i]);
		ends(is[i] ? WALK_COMPLETE : WALK_CALLER_UNSURE, "a call");
	}
}

Test(walk, before_sbcls_call_the_frame_pointer_is_the_callees)
{
	static const char *const before[] = { PAIR, PAIR "\xb8\x02\xd0\x2c\x50",
					      PAIR "\x8d\x58\xf5" };
	static const char *const behind[] = { "\xe8\x00\x01\x00\x00", "\xff\xd0",
					      "\xf6\xc3\x0f\x74\x07\xe8\x00\x00\x00\x00" };
	static const size_t length[] = { 7, 12, 10 }, rest[] = { 5, 2, 10 };

	for (size_t i = 0; i < sizeof(length) / sizeof(length[0]); i++) {
		sbcl_callee(LEAF);
		at_code(LEAF - length[i], before[i], length[i]);
		at_code(LEAF, behind[i], rest[i]);
		ends(WALK_COMPLETE, "ahead");
	}
	sbcl(LEAF);
	at_code(LEAF - 10, PAIR, 7);
	ends(WALK_CALLER_UNSURE, "by code that is not known");
}

Test(walk, where_sbcls_function_begins_the_return_address_is_on_top)
{
	static const char *const jump[] = { "\x8f\x45\x08", "\xff\x60\xfd",
					    "\x48\x8b\x05\xe9\xff\xff\xff\xff\x60\xfd",
					    "\x48\x8b\x40\xf9\xff\x60\xfd",
					    "\xff\x25\x10\x00\x00\x00" };
	static const size_t length[] = { 3, 3, 10, 7, 6 };

	for (size_t i = 0; i < sizeof(length) / sizeof(length[0]); i++) {
		sbcl_callee(LEAF);
		at_code(LEAF, jump[i], length[i]);
		*above(0) = MAIN;
		ends(WALK_COMPLETE, "a function, or what jumps to one");
	}
}

Test(walk, a_routine_of_sbcl_returns_behind_the_call_that_leads_to_it)
{
	for (uint64_t n = 0; n < 4; n++) {
		sbcl(LEAF);
		calls(SECOND, ROUTINE);
		*above(2) = 0;
		*above((unsigned)n) = SECOND;
		leads_over_second("a direct call");
	}
	sbcl(LEAF);
	at_code(SECOND - 7, "\xff\x14\x25\x20\x00\x40\x00", 7);
	image[0x20] = ROUTINE & 0xff;
	image[0x21] = ROUTINE >> 8 & 0xff;
	memcpy(image + 0x22, "\x40\x00\x00\x00\x00\x00", 6);
	leads_over_second("by a word");
	sbcl(LEAF);
	calls(SECOND, LEAF + 8);
	ends(WALK_COMPLETE, "to elsewhere");
	sbcl(LEAF);
	calls(SECOND, ROUTINE);
	at_code(ROUTINE, "\x8f\x45\x08", 3);
	ends(WALK_COMPLETE, "to a part of a function, which has its own frame");
	sbcl_callee(LEAF);
	at_code(SECOND - 12, PAIR, 7);
	calls(SECOND, ROUTINE);
	*at(w.fp + 8) = 0;
	leads_over_second("as a function is called");
}

Test(walk, a_routine_of_sbcl_may_be_called_by_one_without_a_frame)
{
	sbcl(LEAF);
	calls(CODE + 0x20, ROUTINE);
	calls(SECOND, CODE + 0x10);
	*above(0) = CODE + 0x20;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE, "%d", w.reason);
	cr_assert_eq(w.count, 4, "%u", w.count);
	cr_assert_eq(w.words[1] & SAMPLE_FRAME_OFFSET_MASK, 0x20);
	cr_assert_eq(w.words[2] & SAMPLE_FRAME_OFFSET_MASK, SECOND - CODE);
}

Test(walk, many_values_of_sbcl_are_returned_below_where_rbx_points)
{
	sbcl(LEAF);
	at_code(LEAF - 4, "\x48\x8b\x6d\x00\xff\x73\xf8\xc3", 8);
	w.regs[UNWIND_REG_RBX] = w.sp + 32;
	calls(SECOND, CALLEE);
	*above(3) = SECOND;
	leads_over_second("values");
}

Test(walk, an_index_is_the_leafs_or_its_callers)
{
	struct unwind_rule indexed = { .cfa = UNWIND_CFA_DEREF,
				       .cfa_reg = UNWIND_REG_RSP,
				       .cfa_off = 8,
				       .cfa_add = 8,
				       .index_reg = 9,
				       .index = 4 };

	for (unsigned calls = 0; calls < 3; calls++) {
		program((struct unwind_rule[]){ by_rsp16, indexed, root }, 3);
		w.pc = calls ? CODE : CODE + 0x100;
		w.regs[9] = 6;
		for (unsigned i = 0; i < calls; i++)
			*at(w.sp + i * 16 + 8) = i + 1 < calls ? CODE + 0x20 : CODE + 0x110;
		*at(w.sp + calls * 16 + 56) = w.sp + 512;
		*at(w.sp + 512) = CODE + 0x210;
		run();
		cr_assert_eq(w.reason, calls < 2 ? WALK_COMPLETE : WALK_UNSUPPORTED_RULE);
		cr_assert_eq(w.count, calls < 2 ? calls + 2 : 3);
	}
}

Test(walk, a_number_that_rsp_was_lowered_by_leads_to_the_cfa)
{
	struct unwind_rule sum = {
		.cfa = UNWIND_CFA_SUM, .cfa_reg = UNWIND_REG_RSP, .cfa_off = 16, .cfa_add = 8
	};
	struct unwind_rule by_index = { .cfa = UNWIND_CFA_REG,
					.cfa_reg = UNWIND_REG_RSP,
					.cfa_off = 8,
					.index = 1,
					.index_reg = 11 };

	cr_assert(unwind_rule_valid(&sum) && unwind_rule_valid(&by_index));
	program((struct unwind_rule[]){ by_index, sum, root }, 3);
	w.pc = CODE + 0x10;
	w.regs[11] = 96;
	*at(w.sp + 96) = CODE + 0x110;
	*at(w.sp + 104 + 16) = 48;
	*at(w.sp + 104 + 48) = CODE + 0x210;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 3);
	cr_assert_eq(w.sp, STACK + 1024 + 104 + 56);
	/* Down, or nowhere. */
	for (unsigned i = 0; i < 2; i++) {
		program((struct unwind_rule[]){ sum, root }, 2);
		w.pc = CODE + 0x10;
		*at(w.sp + 16) = -(i ? 8ull : 264ull);
		*at(w.sp - 264) = *at(w.sp - 8) = CODE + 0x110;
		run();
		cr_assert_eq(w.reason, WALK_NO_PROGRESS);
	}
}

/* Where only assembly lies between, which keeps what its caller keeps. */
Test(walk, a_cfa_in_a_register_is_known_behind_helpers_of_helpers)
{
	struct unwind_rule kept = { .cfa = UNWIND_CFA_REG, .cfa_reg = 10, .cfa_off = 8 };
	struct unwind_rule helper = by_rsp16;

	for (unsigned by_hand = 0; by_hand < 2; by_hand++) {
		helper.flags = by_hand ? UNWIND_DERIVED | UNWIND_GUESSED : 0;
		program((struct unwind_rule[]){ helper, kept, root }, 3);
		w.pc = CODE + 0x10;
		w.regs[10] = STACK + 2048;
		*at(w.sp + 8) = CODE + 0x20;
		*at(w.sp + 24) = CODE + 0x30;
		*at(w.sp + 40) = CODE + 0x110;
		*at(STACK + 2048) = CODE + 0x210;
		run();
		cr_assert_eq(w.reason, by_hand ? WALK_COMPLETE : WALK_UNSUPPORTED_RULE);
		cr_assert_eq(w.count, by_hand ? 5 : 4);
	}
}

/* The outermost frame of a nest is told from inner ones by the leaf's register, however deep. */
Test(walk, each_frame_of_a_nest_is_found)
{
	struct unwind_rule nest = { .cfa = UNWIND_CFA_NEST,
				    .cfa_reg = 11,
				    .cfa_off = 8,
				    .cfa_add = 64,
				    .cfa_mid = 16,
				    .index_reg = 5,
				    .flags = UNWIND_DERIVED | UNWIND_GUESSED };

	cr_assert(unwind_rule_valid(&nest));
	for (unsigned inner = 0; inner < 4; inner++) {
		program((struct unwind_rule[]){ nest, root }, 2);
		w.pc = CODE + 0x10;
		w.regs[11] = STACK + 2072; /* which is 2048, aligned */
		*at(w.regs[11]) = CODE + 0x110;
		w.sp = STACK + 2048 - 64 - 16 * inner;
		for (unsigned i = 0; i < inner; i++)
			*at(w.sp + 8 + 16 * i) = CODE + 0x20;
		run();
		cr_assert_eq(w.reason, WALK_COMPLETE);
		cr_assert_eq(w.count, inner + 2);
		cr_assert_eq(w.sp, STACK + 2080);
	}
	/* Above the outermost one is none of the nest's. */
	program((struct unwind_rule[]){ nest, root }, 2);
	w.pc = CODE + 0x10;
	w.regs[11] = STACK + 2072;
	w.sp = STACK + 2048 - 56;
	run();
	cr_assert_eq(w.reason, WALK_NO_PROGRESS);
	/* Of what called something else nobody knows the register. */
	program((struct unwind_rule[]){ by_rsp16, by_rsp16, nest, root }, 4);
	w.pc = CODE + 0x10;
	w.regs[11] = STACK + 2072;
	w.sp = STACK + 2048 - 64 - 32;
	*at(w.sp + 8) = CODE + 0x110;
	*at(w.sp + 24) = CODE + 0x210;
	run();
	cr_assert_eq(w.reason, WALK_UNSUPPORTED_RULE);
}

Test(walk, loads_may_lead_to_a_lower_stack_and_back)
{
	struct unwind_rule down = {
		.cfa = UNWIND_CFA_DEREF, .cfa_reg = UNWIND_REG_RSP, .cfa_off = 8, .cfa_add = 8
	};
	struct unwind_rule twice = { .cfa = UNWIND_CFA_DEREF_TWICE,
				     .cfa_reg = UNWIND_REG_RSP,
				     .cfa_off = 56,
				     .cfa_mid = -16,
				     .cfa_add = 8 };

	program((struct unwind_rule[]){ down, twice, root }, 3);
	w.pc = CODE;
	*at(w.sp + 8) = STACK + 128; /* near by, as small stacks of one heap are */
	*at(STACK + 128) = CODE + 0x110;
	*at(STACK + 136 + 56) = STACK + 2048 + 16;
	*at(STACK + 2048) = STACK + 512;
	*at(STACK + 512) = CODE + 0x210;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 3);
	cr_assert_eq(w.sp, STACK + 520);
}

Test(walk, loads_that_lead_in_circles_end)
{
	struct unwind_rule to = {
		.cfa = UNWIND_CFA_DEREF, .cfa_reg = UNWIND_REG_RSP, .cfa_off = 0, .cfa_add = 8
	};

	program(&to, 1);
	w.pc = CODE + 0x10;
	*at(w.sp) = w.sp - 520; /* two places that lead to each other */
	*at(w.sp - 520) = CODE + 0x10;
	*at(w.sp - 512) = w.sp - 8;
	*at(w.sp - 8) = CODE + 0x10;
	run();
	cr_assert_eq(w.reason, WALK_NO_PROGRESS);
	cr_assert_eq(w.count, 2 * WALK_SWITCHES + 1);

	/* To itself: not even once. */
	program(&to, 1);
	w.pc = CODE + 0x10;
	*at(w.sp) = w.sp - 8;
	*at(w.sp - 8) = CODE + 0x10;
	run();
	cr_assert_eq(w.reason, WALK_NO_PROGRESS);
	cr_assert_eq(w.count, 1);
}

Test(walk, rbx_of_a_caller_is_where_rows_say_that_it_was_saved)
{
	struct unwind_rule saves = by_rsp16, uses = { .cfa = UNWIND_CFA_REG,
						      .cfa_reg = UNWIND_REG_RBX,
						      .cfa_off = 16 };

	saves.rbx = 2;
	for (int saved = 0; saved < 2; saved++) {
		program((struct unwind_rule[]){ saved ? saves : by_rsp16, by_rsp16, uses, root },
			4);
		w.pc = CODE + 0x10;
		w.regs[UNWIND_REG_RBX] = saved ? 99 : w.sp + 512;
		*at(w.sp) = saved ? w.sp + 512 : 98;
		*at(w.sp + 8) = CODE + 0x110;
		*at(w.sp + 24) = CODE + 0x210;
		*at(w.sp + 520) = CODE + 0x310;
		run();
		cr_assert_eq(w.reason, WALK_COMPLETE, "%d", w.reason);
		cr_assert_eq(w.count, 4);
	}
}

/* racecall of Go's race detector: what it calls pushes R12, or leaves it alone, and rows that do
 * not speak of R12 do not say that they leave it alone. */
Test(walk, r12_of_a_caller_is_where_rows_that_speak_of_it_say)
{
	struct unwind_rule speaks = by_rsp16, uses = { .cfa = UNWIND_CFA_REG,
						       .cfa_reg = UNWIND_REG_R12,
						       .cfa_off = 16 };

	speaks.flags = UNWIND_R12;
	for (int kind = 0; kind < 3; kind++) {
		struct unwind_rule leaf = kind == 2 ? by_rsp16 : speaks, middle = speaks;

		leaf.rbx = kind == 1 ? 2 : 0;
		program((struct unwind_rule[]){ leaf, middle, uses, root }, 4);
		w.pc = CODE + 0x10;
		w.regs[UNWIND_REG_R12] = kind == 1 ? 99 : w.sp + 512;
		*at(w.sp) = kind == 1 ? w.sp + 512 : 98;
		*at(w.sp + 8) = CODE + 0x110;
		*at(w.sp + 24) = CODE + 0x210;
		*at(w.sp + 520) = CODE + 0x310;
		run();
		cr_assert_eq(w.reason, kind == 2 ? WALK_UNSUPPORTED_RULE : WALK_COMPLETE, "%d",
			     w.reason);
		cr_assert_eq(w.count, kind == 2 ? 3 : 4);
	}
}

/* Go's asyncPreempt: the first byte of the next row is where its caller stopped. */
Test(walk, what_was_put_on_the_stack_interrupts_its_caller_at_the_pc_itself)
{
	struct unwind_rule puts = by_rsp16, other = by_rsp16;

	other.cfa_off = 512;
	for (int interrupts = 0; interrupts < 2; interrupts++) {
		puts.flags = interrupts ? UNWIND_INTERRUPTS | UNWIND_DERIVED : UNWIND_DERIVED;
		program((struct unwind_rule[]){ puts, other, by_rsp16, root }, 4);
		w.pc = CODE + 0x10;
		*at(w.sp + 8) = CODE + 0x200;
		*at(w.sp + 24) = CODE + 0x310;
		*at(w.sp + 16 + 512 - 8) = CODE + 0x350;
		run();
		cr_assert_eq(w.reason, WALK_COMPLETE, "%d", w.reason);
		cr_assert_eq(w.count, 3);
		cr_assert_eq(w.words[2] & SAMPLE_FRAME_OFFSET_MASK, interrupts ? 0x310 : 0x350);
	}
}

Test(walk, registers_of_an_interrupted_frame_are_in_the_ucontext)
{
	/* r10 at 40 + 16, rdi at 40 + 64 of the ucontext. */
	struct unwind_rule signal = { .flags = UNWIND_SIGNAL_FRAME },
			   by_r10 = { .cfa = UNWIND_CFA_REG, .cfa_reg = 10, .cfa_off = 8 },
			   vfork = { .cfa = UNWIND_CFA_REG,
				     .cfa_reg = UNWIND_REG_RSP,
				     .ra = UNWIND_RA_REG,
				     .ra_reg = 5 };

	for (int i = 0; i < 2; i++) {
		program((struct unwind_rule[]){ by_rsp16, signal, i ? by_r10 : vfork, root }, 4);
		w.pc = CODE;
		uint64_t frame = w.sp + 16;
		*at(w.sp + 8) = CODE + 0x101;
		*at(frame + 40 + 16) = frame + 3000;
		*at(frame + 40 + 64) = CODE + 0x310;
		*at(frame + 160) = frame + 2000;
		*at(frame + 168) = CODE + 0x200;
		*at(frame + 3000) = CODE + 0x310;
		run();
		cr_assert_eq(w.reason, WALK_COMPLETE, "%d: %d", i, w.reason);
		cr_assert_eq(w.count, 4);
	}
}

Test(walk, go_switches_of_stacks_are_followed_in_either_direction)
{
	/* g at tls - 8, g.m at 48, m's other g at 192, its sched.sp at 56. */
	struct unwind_rule go = { .cfa = UNWIND_CFA_GO_SWITCH,
				  .cfa_add = -8,
				  .rbp_reg = 6,
				  .cfa_reg = 24,
				  .ra_reg = 7,
				  .cfa_off = 8 };
	const uint64_t tls = STACK + 20000, g = STACK + 21000, m = STACK + 22000,
		       other = STACK + 23000, left[] = { STACK + 512, STACK + 4096 };

	for (int i = 0; i < 2; i++) {
		program((struct unwind_rule[]){ go, root }, 2);
		w.pc = CODE + 0x10;
		env.tls = tls;
		*at(tls - 8) = g;
		*at(g + 48) = m;
		*at(m + 192) = other;
		*at(other + 56) = left[i];
		*at(left[i]) = CODE + 0x110;
		run();
		cr_assert_eq(w.reason, WALK_COMPLETE);
		cr_assert_eq(w.sp, left[i] + 8);
	}
	program(&go, 1);
	w.pc = CODE + 0x10;
	env.tls = 0;
	run();
	cr_assert_eq(w.reason, WALK_STACK_UNREADABLE);
}

Test(walk, g_of_a_shared_library_is_where_a_word_of_it_says)
{
	const uint64_t tls = STACK + 20000, g = STACK + 21000, m = STACK + 22000,
		       other = STACK + 23000;
	const struct unwind_rule go = { .cfa = UNWIND_CFA_GO_SWITCH,
					.flags = UNWIND_TLS_WORD,
					.cfa_add = 0x20,
					.rbp_reg = 6,
					.cfa_reg = 24,
					.ra_reg = 7,
					.cfa_off = 8 };
	const struct unwind_rule senseless = { .cfa = UNWIND_CFA_REG, .flags = UNWIND_TLS_WORD };

	cr_assert(unwind_rule_valid(&go) && !unwind_rule_valid(&senseless));
	for (int i = 0; i < 2; i++) {
		program((struct unwind_rule[]){ go, root }, 2);
		w.pc = CODE + 0x10;
		env.tls = tls;
		env.g_below = i ? 160 : 0;
		memcpy(image + 0x20, &(int64_t){ i ? 0 : -160 }, 8);
		*at(tls - 160) = g;
		*at(g + 48) = m;
		*at(m + 192) = other;
		*at(other + 56) = STACK + 512;
		*at(STACK + 512) = CODE + 0x110;
		run();
		cr_assert_eq(w.reason, WALK_COMPLETE);
		cr_assert_eq(w.sp, STACK + 520);
	}
}

Test(walk, the_pc_of_a_goroutine_whose_stack_is_being_moved_is_in_its_g)
{
	struct unwind_rule go = { .cfa = UNWIND_CFA_GO_SWITCH,
				  .cfa_add = -8,
				  .rbp_reg = 6,
				  .cfa_reg = 24,
				  .ra_reg = 7,
				  .rbp = UNWIND_RBP_UNDEFINED,
				  .ra = UNWIND_RA_CFA_OFF,
				  .rbp_off = 64 };
	const uint64_t tls = STACK + 20000, g = STACK + 21000, m = STACK + 22000,
		       other = STACK + 23000;

	cr_assert(unwind_rule_valid(&go));
	program((struct unwind_rule[]){ go, root }, 2);
	w.pc = CODE + 0x10;
	env.tls = tls;
	*at(tls - 8) = g;
	*at(g + 48) = m;
	*at(m + 192) = other;
	*at(other + 56) = STACK + 4096;
	*at(other + 64) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.sp, STACK + 4096);
	cr_assert_eq(w.count, 2);

	/* The goroutine was taken off the thread meanwhile. */
	program((struct unwind_rule[]){ go, root }, 2);
	w.pc = CODE + 0x10;
	env.tls = tls;
	*at(m + 192) = 0;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 1);
	go.rbp = UNWIND_RBP_CFA;
	cr_assert_not(unwind_rule_valid(&go));
}

Test(walk, a_frame_pointer_may_lead_down_to_another_stack_but_not_in_circles)
{
	const struct unwind_rule by_rbp = { .cfa = UNWIND_CFA_REG,
					    .cfa_reg = UNWIND_REG_RBP,
					    .cfa_off = 16,
					    .rbp = UNWIND_RBP_CFA,
					    .rbp_off = -16 };

	program((struct unwind_rule[]){ by_rbp, root }, 2);
	w.pc = CODE + 0x10;
	w.sp = STACK + 20000;
	w.fp = STACK + 1024;
	*at(w.fp + 8) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.count, 2);

	program(&by_rbp, 1);
	w.pc = CODE + 0x10;
	w.sp = STACK + 20000;
	w.fp = STACK + 1024;
	*at(w.fp) = STACK + 10000;
	*at(w.fp + 8) = CODE + 0x20;
	*at(STACK + 10000) = STACK + 1024;
	*at(STACK + 10008) = CODE + 0x20;
	run();
	cr_assert_eq(w.reason, WALK_NO_PROGRESS);
	cr_assert_leq(w.count, 2 * WALK_JUMPS + 2);

	program((struct unwind_rule[]){ by_rbp, root }, 2);
	w.pc = CODE + 0x10;
	w.fp = w.sp - 512;
	*at(w.fp + 8) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_NO_PROGRESS, "the same stack");
}

Test(walk, go_calls_of_c_keep_the_depth_of_the_stack_they_left)
{
	struct unwind_rule go = {
		.cfa = UNWIND_CFA_GO_DEPTH, .cfa_reg = 1, .cfa_add = 0, .cfa_off = 16
	};
	const uint64_t g = STACK + 21000, high = STACK + 12000;

	program((struct unwind_rule[]){ go, root }, 2);
	w.pc = CODE + 0x10;
	*at(w.sp) = 4000;
	*at(w.sp + 8) = g;
	*at(g + 8) = high;
	*at(high - 4000 + 8) = CODE + 0x110;
	run();
	cr_assert_eq(w.reason, WALK_COMPLETE);
	cr_assert_eq(w.sp, high - 4000 + 16);
}

Test(walk, entries_of_two_runtimes_are_marked_where_they_lie)
{
	program((struct unwind_rule[]){ by_rsp16, root }, 2);
	w.pc = CODE + 0x10;
	w.sample.kernel_frames = w.sample.items = 0;
	/* Frames of 16 bytes each: the first and the third are of one runtime, the second is of
	 * another. */
	const __u64 entries[] = { w.sp + 8, w.sp + 40, w.sp + 24 };

	w.slot = 5;
	walk_entry(&w, entries[0]);
	walk_entry(&w, entries[1]);
	w.turn++;
	w.slot = 6;
	walk_entry(&w, entries[2]);
	walk_place(&w);
	for (unsigned i = 0; i < 3; i++)
		*at(w.sp + 8 + 16 * i) = CODE + 0x20;
	*at(w.sp + 56) = CODE + 0x110;
	struct walk again = w;

	run();
	cr_assert_eq(w.count, 5);
	cr_assert_eq(w.words[2] >> RUNTIME_ITEM_SLOT_SHIFT & RUNTIME_ITEM_SLOT_MASK, 5);
	cr_assert_eq(w.words[4] >> RUNTIME_ITEM_SLOT_SHIFT & RUNTIME_ITEM_SLOT_MASK, 6);
	for (unsigned i = 0; i < 5; i++)
		cr_expect_eq(!!(w.words[w.base + i] & SAMPLE_FRAME_ENTRY), i < 3);

	again.turn = 0;
	again.entry_at = 0;
	memset(again.entries, 0, sizeof(again.entries));
	walk_find_entries(&again);
	cr_expect_eq(again.entry_at, entries[0]);
	cr_expect_eq(again.entries[0].at, entries[0]);
	cr_expect_eq(again.entries[1].at, entries[2]);
	walk_mark(&again);
	cr_expect_eq(again.entry_at, entries[2]);
	walk_mark(&again);
	cr_expect_eq(again.entry_at, entries[1]);
	walk_mark(&again);
	cr_expect_eq(again.entry_at, 0);
}
