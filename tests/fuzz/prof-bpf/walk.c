/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: rows and rules of an extractor that may be compromised, and registers and stack of a
 * process that may be hostile. The deferred walk walks them.
 *
 * An input is a struct head, then rules, rows and the stack.
 */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "bpf/reasons.h"
#include "tests/memory_tables.h"
#include "tools/prof-bpf/stream/deferred.h"

#define CODE 0x400000ull
#define SPAN 0x10000ull

/* exact: bit 0. Bits 1 and 2 tell when the items of a runtime arrive, if at all; the bits above are
 * their number. The items' words come from the stack. */
struct head {
	uint8_t rules, rows, exact, kernel_frames;
	uint32_t base;
	uint64_t pc, sp, fp, span;
};

static struct tables *tables;
static struct deferred_queue *queue;
static struct deferred_sample sample;
static uint16_t slot;
static uint64_t now = 1;
static unsigned emitted;

static ssize_t mappings(void *ctx, const struct sample *s, const struct tables_mapping **ret,
			bool *ret_whole)
{
	static struct tables_mapping m[2];

	m[0] = (struct tables_mapping){ .start = CODE, .end = CODE + SPAN, .slot = slot };
	m[1] = (struct tables_mapping){ .start = CODE + SPAN, .end = CODE + 2 * SPAN, .slot = 0 };
	*ret = m;
	*ret_whole = true;
	return 2;
}

/* Sends the items of the sample, which arrive in a ring of their own. */
static void send_items(void)
{
	static struct {
		struct sample sample;
		uint64_t words[2 * 31];
	} r;

	r.sample = sample.sample;
	r.sample.flags = SAMPLE_ITEMS;
	r.sample.kernel_frames = 0;
	memcpy(r.words, sample.deferred.stack, sizeof(r.words));
	deferred_ahead(queue, &r.sample);
}

static void emit(void *ctx, const struct sample *s)
{
	const unsigned when = sample.deferred.next;

	assert(s->items == (when ? sample.sample.items : 0));
	assert(!s->items || memcmp(sample_items(s), sample.deferred.stack, s->items * 16) == 0);
	assert(s->reason < WALK_REASONS && s->user_frames <= SAMPLE_MAX_USER &&
	       s->kernel_frames <= SAMPLE_MAX_KERNEL);
	emitted++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct head h;

	if (!tables) {
		const struct tables_config c = memory_tables(TABLES_SLAB_BYTES);

		if (tables_new(&c, &tables))
			abort();
		const struct deferred_config d = {
			.tables = tables, .ceiling = 1 << 20, .mappings = mappings, .emit = emit
		};
		if (deferred_new(&d, &queue))
			abort();
	}
	if (size < sizeof(h))
		return 0;
	memcpy(&h, data, sizeof(h));
	data += sizeof(h);
	size -= sizeof(h);
	tables_tick(tables, now);
	if (tables_file_new(tables, &slot))
		abort();
	size_t rules = h.rules * sizeof(struct unwind_rule);
	size_t rows = h.rows * sizeof(struct unwind_row_wire);
	int r = tables_rows_begin(tables, slot, h.base, h.span, h.rows, h.rules);
	if (!r && rules <= size) {
		r = tables_rows_rules(tables, slot, (const void *)data, h.rules);
		data += rules;
		size -= rules;
	}
	if (!r && rows <= size) {
		r = tables_rows_chunk(tables, slot, (const void *)data, h.rows);
		data += rows;
		size -= rows;
	}
	if (!r)
		r = tables_rows_end(tables, slot);
	assert((r == 0) == (tables_file_state(tables, slot) == TABLES_FILE_READY));
	if (r)
		tables_file_none(tables, slot);

	sample.sample = (struct sample){ .time_ns = now, .flags = SAMPLE_DEFERRED };
	sample.sample.kernel_frames = h.kernel_frames % (SAMPLE_MAX_KERNEL + 1);
	sample.deferred.pc = h.pc;
	for (int i = 0; i < 16; i++)
		sample.deferred.regs[i] = h.sp + (uint64_t)i;
	sample.deferred.regs[UNWIND_REG_RBP] = h.fp;
	sample.deferred.regs[UNWIND_REG_RSP] = h.sp;
	sample.deferred.exact = h.exact & 1;
	size = size < DEFERRED_STACK ? size : DEFERRED_STACK;
	memcpy(sample.deferred.stack, data, size);
	sample.deferred.chunks = (uint32_t)((size + DEFERRED_CHUNK - 1) / DEFERRED_CHUNK);
	for (uint32_t i = 0; i < sample.deferred.chunks; i++)
		sample.deferred.chunk_at[i] = (h.sp & ~4095ull) + i * DEFERRED_CHUNK;
	sample.deferred.ranges[DEFERRED_LEAF] = (struct deferred_range){
		h.sp & ~4095ull, (h.sp & ~4095ull) + sample.deferred.chunks * 4096ull
	};
	sample.sample.items = h.exact >> 3;
	sample.deferred.next = h.exact >> 1 & 3; /* 0: never; 1, 3: before; 2: after */
	emitted = 0;
	if (sample.deferred.next & 1)
		send_items();
	deferred_put(queue, &sample);
	if (sample.deferred.next == 2)
		send_items();
	deferred_run(queue, now, true);
	assert(emitted == 1 && deferred_empty(queue));
	tables_file_free(tables, slot);
	now += 2 * TABLES_GRACE_NS;
	return 0;
}
