/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a struct head, then the memory of a process with HotSpot, in pieces: address, length in 16
 * bits, bytes. The head chooses a layout: those of three versions, or one that the following bytes
 * are. The walk ends in bounded time, and its output is well formed.
 */
#include <string.h>
#include "bpf/hotspot/hotspot_walk.h"
#include "common/base/bytes/span.h"
#define RUNTIME_WALK hotspot
#include "tests/fuzz/prof-dump/taker.h"
#include "tests/fuzz/take.h"

#define OWN_LAYOUT 3
#define READS_OF_FRAME 400 /* with all calls that are inlined in it */

struct head {
	uint8_t layout, exact;
	uint8_t unused[6];
	uint64_t base;	   /* where the file is */
	uint64_t regs[17]; /* by DWARF number; RIP */
};

static const struct hotspot_config layouts[OWN_LAYOUT] = {
	{ .heaps = 0xec9190,
	  .flags = HOTSPOT_ONE_HEAP | HOTSPOT_CODE_OFFSET | HOTSPOT_DEOPT_OFFSET,
	  .heap_end = 24,
	  .heap_map = 128,
	  .heap_shift = 248,
	  .block = 16,
	  .blob_bytes = 224,
	  .blob_name = 24,
	  .blob_code = 48,
	  .blob_complete = 52,
	  .blob_frame = 60,
	  .method = 80,
	  .deopt = 164,
	  .deopt_mh = 168,
	  .orig_pc = 216,
	  .pcs = 196,
	  .pcs_end = 200,
	  .data = 192,
	  .metadata = 188,
	  .method_const = 8,
	  .const_bytes = 48,
	  .const_pool = 8,
	  .const_size = 24,
	  .const_code_size = 32,
	  .const_name = 34,
	  .const_signature = 36,
	  .frame_bcp = 7 },
	{ .heaps = 0x131c600,
	  .flags = HOTSPOT_DATA_ADDRESS,
	  .array_data = 8,
	  .heap_start = 8,
	  .heap_end = 32,
	  .heap_map = 136,
	  .heap_shift = 256,
	  .block = 16,
	  .blob_bytes = 328,
	  .blob_name = 112,
	  .blob_code = 48,
	  .blob_complete = 36,
	  .blob_frame = 44,
	  .method = 128,
	  .deopt = 144,
	  .deopt_mh = 152,
	  .orig_pc = 316,
	  .pcs = 284,
	  .pcs_end = 288,
	  .data = 136,
	  .metadata = 276,
	  .method_const = 8,
	  .const_bytes = 48,
	  .const_pool = 8,
	  .const_size = 24,
	  .const_code_size = 32,
	  .const_name = 34,
	  .const_signature = 36,
	  .frame_bcp = 8 },
	{ .heaps = 0x17a3990,
	  .flags = HOTSPOT_SHORT_FRAME | HOTSPOT_CODE_OFFSET | HOTSPOT_DEOPT_OFFSET |
		   HOTSPOT_NO_ZEROS,
	  .array_data = 8,
	  .heap_end = 24,
	  .heap_map = 128,
	  .heap_shift = 248,
	  .block = 8,
	  .blob_bytes = 232,
	  .blob_name = 16,
	  .blob_code = 44,
	  .blob_complete = 62,
	  .blob_frame = 52,
	  .method = 88,
	  .deopt = 184,
	  .deopt_mh = 188,
	  .orig_pc = 216,
	  .immutable = 104,
	  .pcs = 204,
	  .pcs_end = 208,
	  .data = 208,
	  .metadata = 36,
	  .mutable_data = 24,
	  .method_const = 8,
	  .const_bytes = 56,
	  .const_pool = 8,
	  .const_size = 24,
	  .const_code_size = 34,
	  .const_name = 36,
	  .const_signature = 38,
	  .frame_bcp = 8,
	  .cont_entry = 1560,
	  .cont_entry_bytes = 64,
	  .super = 120,
	  .layout = 8,
	  .fields = 448,
	  .class_pool = 224,
	  .pool_bytes = 72,
	  .symbol_length = 4,
	  .symbol_text = 6,
	  .thread = 1120,
	  .thread_virtual = 1128,
	  .level = 224,
	  .object_class = 0x1807de0,
	  .oop_base = 0x17a4aa8,
	  .oop_shift = 0x17a4aa0,
	  .class_base = 0x17707f0,
	  .class_shift = 0x17707e8 },
};

static unsigned reads;

static long read_user(void *ctx, void *dst, uint32_t size, uint64_t addr)
{
	struct span all = *(const struct span *)ctx;

	reads++;
	while (all.len) {
		const uint64_t start = take_number(&all, 8);
		struct span piece = take(&all, (size_t)take_number(&all, 2));

		if (addr - start >= piece.len || size > piece.len - (addr - start))
			continue;
		memcpy(dst, piece.data + (addr - start), size);
		return 0;
	}
	return -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct walk w;
	static struct hotspot_walk p;
	struct process_entry process;
	struct env env = { 0 };
	struct head h;

	if (!tables)
		begin_tables(&(struct runtime_config){ .takes = RUNTIME_TAKES_GENERATED });
	if (size < sizeof(h))
		return 0;
	memcpy(&h, data, sizeof(h));
	struct span all = { .data = data + sizeof(h), .len = size - sizeof(h) };

	memset(&p, 0, sizeof(p));
	if (h.layout < OWN_LAYOUT) {
		p.config = layouts[h.layout];
	} else {
		const struct span own = take(&all, sizeof(p.config));

		if (own.len)
			memcpy(&p.config, own.data, own.len);
	}
	/* All memory but the first pages is executable and belongs to no file. */
	const struct tables_mapping m[] = {
		{ .start = 0x1000, .end = 0x2000, .slot = slot },
		{ .start = 0x10000, .end = WALK_ADDRESS_END },
	};

	if (tables_walk_maps(tables, m, 2, &process))
		abort();
	tables_env(tables, &env);
	env.read_user = read_user;
	env.ctx = &all;
	env_current = &env;
	p.base = h.base;
	for (unsigned i = 0; i < 16; i++)
		w.regs[i] = h.regs[i];
	w.pc = h.regs[16];
	w.sp = h.regs[7];
	w.fp = h.regs[6];
	w.sample.kernel_frames = w.sample.items = 0;
	walk_begin(&w, &process, h.exact & 1);
	walk_place(&w);
	reads = 0;
	walk(&w, &p);
	assert(reads < READS_OF_FRAME * SAMPLE_MAX_USER);
	check_frames(&w);
	hotspot_fetch(&w, &p, h.regs[16], h.regs[6]);
	return 0;
}
