/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a struct head, then the memory of a hostile process from BASE on, in which V8's walk takes
 * frames over, with any config. The walk ends in bounded time, and its output is well formed.
 * Objects that it meets are copied and named.
 */
#include <string.h>
#include "bpf/v8/v8_walk.h"
#include "common/names/runtime/v8/v8.h"
#include "tools/prof-dump/space/moving.h"
#define RUNTIME_WALK v8
#include "tests/fuzz/prof-dump/taker.h"

#define BASE 0x10000ull
#define CODE 0x8000ull /* executable, and of no file; its first bytes are in no memory */
#define LOOP 0x4000ull /* of the file: builtins, and then the handlers of bytecodes */
#define FILE_BYTES 0x4000ull

extern const struct runtime_ops v8_runtime;

struct head {
	struct v8_config config;
	uint64_t pc, sp, fp, base;
	uint64_t regs[2]; /* R9, R12 */
	uint64_t exact;
};

struct image {
	const uint8_t *data;
	size_t size;
};

static unsigned reads;
static struct moving moving;
static struct {
	uint64_t key, check;
} met[64];
static unsigned met_count;

static long read_user(void *ctx, void *dst, uint32_t size, uint64_t addr)
{
	const struct image *im = ctx;

	reads++;
	if (addr < BASE || addr - BASE > im->size || size > im->size - (addr - BASE))
		return -1;
	memcpy(dst, im->data + (addr - BASE), size);
	return 0;
}

static void take(void *ctx, const struct runtime_copy *how, uint64_t key, uint64_t check,
		 uint64_t address, const __u64 *told)
{
	(void)ctx;
	if (met_count < sizeof(met) / sizeof(met[0])) {
		met[met_count].key = key;
		met[met_count++].check = check;
	}
	moving_take(&moving, how, key, check, address, told);
}

/* The description of V8 that prof-symd sends. */
#define PIECE(what, most) \
	{ \
		.pointer = (what)*8, .size_bytes = RUNTIME_SIZE_TOLD, .size_at = ((what) + 1) * 8, \
		.bytes = (most) \
	}
static const struct runtime_config config = {
	.takes = RUNTIME_TAKES_GENERATED | RUNTIME_TAKES_LOOP,
	.ranges = 2,
	.shown = 1,
	.loop = { { .start = LOOP + 0x2000, .end = LOOP + FILE_BYTES },
		  { .start = LOOP, .end = LOOP + 0x2000 } },
	.copy = { .steps = 3,
		  .step = { { .bytes = V8_TOLD_WORDS * 8 },
			    PIECE(V8_TOLD_NAME, V8_NAME_BYTES),
			    PIECE(V8_TOLD_POSITIONS, V8_POSITIONS_BYTES) } },
};

static void name(unsigned i)
{
	struct runtime_build b = { .known = true, .config.runtime = RUNTIME_V8 };
	struct object_memory m = { .whole = true };
	struct runtime_object o = { 0 };

	assert(moving_find(&moving, met[i].key, met[i].check, &m) == 0);
	const int r = v8_runtime.name(&b, met[i].key, met[i].check, &m, &o);

	assert(r == 0 || r == RUNTIME_GONE);
	assert(m.count <= OBJECT_MEMORY_PIECES && m.total <= OBJECT_MEMORY_BYTES);
	object_memory_done(&m);
	runtime_object_done(&o);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct walk w;
	static struct v8_walk p;
	struct process_entry process;
	struct head h;
	struct env env = { 0 };

	if (!tables)
		begin_tables(&config);
	if (size < sizeof(h))
		return 0;
	memcpy(&h, data, sizeof(h));
	struct image im = { .data = data + sizeof(h), .size = size - sizeof(h) };
	const struct tables_mapping m[] = {
		{ .start = LOOP, .end = LOOP + FILE_BYTES, .slot = slot, .offset = LOOP },
		{ .start = CODE, .end = BASE + 0x100000 },
	};

	if (tables_walk_maps(tables, m, 2, &process))
		abort();
	tables_env(tables, &env);
	env.read_user = read_user;
	env.object = take;
	env.ctx = &im;
	env.tls = 0x1234;
	env_current = &env;
	memset(&p, 0, sizeof(p));
	p.config = h.config;
	p.base = h.base;
	p.copies.what = config.copy;
	memset(w.regs, 0, sizeof(w.regs));
	w.pc = h.pc;
	w.sp = h.sp;
	w.fp = h.fp;
	w.sample.kernel_frames = w.sample.items = 0;
	walk_begin(&w, &process, h.exact & 1);
	w.regs[V8_REGISTER_OFFSET] = h.regs[0];
	w.regs[V8_REGISTER_BYTECODES] = h.regs[1];
	walk_place(&w);
	reads = met_count = 0;
	const unsigned taken = walk(&w, &p);

	assert(reads < 4000 * (taken + 1) + 100 * SAMPLE_MAX_USER);
	check_frames(&w);
	v8_fetch(&w, &p, h.pc, h.fp);
	for (unsigned i = 0; i < met_count; i++)
		name(i);
	moving_done(&moving);
	return 0;
}
