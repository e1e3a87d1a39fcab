/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a struct head, then the memory of a hostile process from BASE on, in which a runtime takes
 * frames over (tests/skeleton), with a hostile config. The walk ends in bounded time, and its
 * output is well formed. The same memory is named.
 */
#include <string.h>
#include "common/names/runtime/runtime.h"
#include "tests/skeleton/toyjit_walk.h"
#define RUNTIME_WALK toyjit
#include "tests/fuzz/prof-dump/taker.h"

#define BASE 0x10000ull
#define CODE 0x8000ull /* executable, and of no file; its first bytes are in no memory */
#define LOOP 0x800     /* bytes of the file, which the runtime takes as well */
#define MAX_ROUNDS 32

extern const struct runtime_ops toyjit_runtime;

struct head {
	struct toyjit_config config;
	uint64_t pc, sp, fp, base, check;
	uint64_t exact;
};

struct image {
	const uint8_t *data;
	size_t size;
};

static unsigned reads;

static long read_user(void *ctx, void *dst, uint32_t size, uint64_t addr)
{
	const struct image *im = ctx;

	reads++;
	if (addr < BASE || addr - BASE > im->size || size > im->size - (addr - BASE))
		return -1;
	memcpy(dst, im->data + (addr - BASE), size);
	return 0;
}

static void name(const struct image *im, uint64_t check)
{
	struct runtime_build b = { .known = true };
	uint16_t naming[] = { 48, 16, 24, 32, 40, 0, 8 };
	struct runtime_object o = { 0 };
	struct object_memory m = { 0 };
	int r = RUNTIME_WANTS;

	memcpy(b.naming, naming, sizeof(naming));
	assert(toyjit_runtime.is_sane(&b));
	for (int round = 0; round < MAX_ROUNDS && r == RUNTIME_WANTS; round++) {
		o.name.len = o.system_name.len = o.source.len = 0;
		buf_reset(&o.lines);
		r = toyjit_runtime.name(&b, BASE, check >> RUNTIME_CHECK_SHIFT, &m, &o);
		assert(m.count <= OBJECT_MEMORY_PIECES && m.total <= OBJECT_MEMORY_BYTES);
		for (unsigned i = 0; object_memory_next(&m, &i); i++) {
			const uint64_t skip = m.pieces[i].address - BASE;
			const size_t left = m.pieces[i].address >= BASE && skip < im->size
						    ? im->size - (size_t)skip
						    : 0;

			assert(object_memory_put(
				       &m, i,
				       (struct span){ left ? im->data + skip : NULL, left }) == 0);
		}
	}
	assert(r == 0 || r == RUNTIME_GONE || r == RUNTIME_WANTS);
	object_memory_done(&m);
	runtime_object_done(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct walk w;
	static struct toyjit_walk p;
	struct process_entry process;
	struct head h;
	struct env env = { 0 };

	if (!tables)
		begin_tables(&(struct runtime_config){
			.takes = RUNTIME_TAKES_GENERATED | RUNTIME_TAKES_LOOP,
			.ranges = 1,
			.shown = 1,
			.loop = { { 0, LOOP } },
		});
	if (size < sizeof(h))
		return 0;
	memcpy(&h, data, sizeof(h));
	struct image im = { .data = data + sizeof(h), .size = size - sizeof(h) };
	const struct tables_mapping m[] = {
		{ .start = 0x1000, .end = 0x2000, .slot = slot },
		{ .start = CODE, .end = BASE + 0x100000 },
	};

	if (tables_walk_maps(tables, m, 2, &process))
		abort();
	tables_env(tables, &env);
	env.read_user = read_user;
	env.ctx = &im;
	env_current = &env;
	p.config = h.config;
	p.base = h.base;
	memset(w.regs, 0, sizeof(w.regs));
	w.pc = h.pc;
	w.sp = h.sp;
	w.fp = h.fp;
	w.sample.kernel_frames = w.sample.items = 0;
	walk_begin(&w, &process, h.exact & 1);
	walk_place(&w);
	reads = 0;
	const unsigned taken = walk(&w, &p);

	assert(reads < 100 * SAMPLE_MAX_USER && check_frames(&w) == taken);
	toyjit_fetch(&w, &p, h.pc, 0);
	name(&im, h.check);
	return 0;
}
