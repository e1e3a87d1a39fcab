/* SPDX-License-Identifier: Apache-2.0 */
/* A handmade program for tests of walk: its stack, a file whose rules the tests choose, and code
 * that belongs to no file. */
#ifndef TESTS_UNIT_WALK_FIXTURE_H
#define TESTS_UNIT_WALK_FIXTURE_H

#include <criterion/criterion.h>
#include <string.h>
#include "bpf/walk/walk.h"
#include "common/walk/tables/tables.h"
#include "tests/memory_tables.h"

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

static inline long read_stack(void *ctx, void *dst, uint32_t size, uint64_t addr)
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
static inline void program(const struct unwind_rule *rules, uint32_t n)
{
	const struct tables_config c = memory_tables(TABLES_SLAB_BYTES);
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

static inline void run(void)
{
	while (!walk_step(&w))
		;
	tables_free(t);
}

static inline uint64_t *at(uint64_t address)
{
	return &stack[(address - STACK) / 8];
}

static const struct unwind_rule by_rsp16 = { .cfa = UNWIND_CFA_REG,
					     .cfa_reg = UNWIND_REG_RSP,
					     .cfa_off = 16 };
static const struct unwind_rule root = {
	.cfa = UNWIND_CFA_REG, .cfa_reg = UNWIND_REG_RSP, .cfa_off = 8, .ra = UNWIND_RA_UNDEFINED
};

/* --- places without rows --- */

#define LEAF (CODE + 0x80)    /* without rows */
#define FAR (CODE + 0x3a0)    /* likewise */
#define CALLER (CODE + 0x90)  /* likewise, behind a call */
#define MAIN (CODE + 0x110)   /* the root */
#define INNER (CODE + 0x200)  /* a leaf with rows */
#define SECOND (CODE + 0x340) /* behind a call, without rows */

/* A frame without rows that leads to the root by a frame pointer 8 words above RSP. */
static inline void without_rows(uint64_t pc)
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

/* The n-th word above the stack pointer in the frame without rows. */
static inline uint64_t *above(unsigned n)
{
	return at(w.fp - 64 + 8 * n);
}

static inline uint8_t *code_at(uint64_t address)
{
	return address >= MADE ? made + (address - MADE) : image + (address - CODE);
}

static inline void at_code(uint64_t address, const char *bytes, size_t n)
{
	memcpy(code_at(address), bytes, n);
}

/* A call of `target` that ends at pc. */
static inline void calls(uint64_t pc, uint64_t target)
{
	int32_t by = (int32_t)(target - pc);

	*code_at(pc - 5) = 0xe8;
	memcpy(code_at(pc - 4), &by, sizeof(by));
}

static inline void ends(uint16_t reason, const char *what)
{
	const unsigned count = w.pc == INNER ? 3 : 2;

	run();
	cr_assert_eq(w.reason, reason, "%s: %d", what, w.reason);
	cr_assert_eq(w.count, count, "%s: all that was found is shown", what);
	cr_assert_eq(w.at_slot, reason ? slot : 0);
}

#define PUSH_MOV "\x55\x48\x89\xe5"
#define PUSH_MOV_2 "\x55\x48\x8b\xec"

#endif
