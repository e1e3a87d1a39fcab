/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input: a struct head, then native frames, then the memory of a hostile process from BASE on. A
 * runtime's walk reads it with a hostile config, and its frames are woven. The walk ends, and no
 * frame is lost, added or put before its callee.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include "common/walk/weave.h"
#include "tools/prof-dump/space/interpreted.h"

#define BASE 0x10000u
#define MAX_NATIVE 64

struct head {
	struct runtime_config config;
	uint64_t tls, sp, base;
	uint64_t native;
};

struct image {
	const uint8_t *data;
	size_t size;
};

static long read_user(void *ctx, void *dst, uint32_t size, uint64_t addr)
{
	const struct image *im = ctx;

	if (addr < BASE || addr - BASE > im->size || size > im->size - (addr - BASE))
		return -1;
	memcpy(dst, im->data + (addr - BASE), size);
	return 0;
}

static const struct runtime_config *runtime(void *ctx, uint16_t slot)
{
	return slot & 1 ? ctx : NULL;
}

static uint32_t frames_of(const struct interpreted_items *items, bool *ret_cut)
{
	uint32_t n = 0;

	*ret_cut = false;
	for (uint32_t i = 0; i < items->count; i++) {
		unsigned kind = (unsigned)(items->words[2 * (size_t)i] >> RUNTIME_ITEM_SHIFT);

		n += kind == RUNTIME_FRAME;
		*ret_cut |= kind == RUNTIME_STOPPED;
	}
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct walk w;
	static uint64_t native[MAX_NATIVE];
	struct interpreted_items items = { 0 };
	struct head h;
	struct weave_run runs[TABLES_PROCESS_RUNTIMES_MAX];
	bool walk_cut, cut;
	uint32_t seen = 0;

	if (size < sizeof(h))
		return 0;
	memcpy(&h, data, sizeof(h));
	data += sizeof(h);
	size -= sizeof(h);
	uint32_t count = (uint32_t)(h.native % (MAX_NATIVE + 1));
	if (count > size / 8)
		count = (uint32_t)(size / 8);
	if (count)
		memcpy(native, data, count * sizeof(*native));
	struct image im = { .data = data + count * 8u, .size = size - count * 8u };
	const struct env env = { .read_user = read_user, .ctx = &im, .tls = h.tls };
	const struct process_entry p = { 0 };

	env_current = &env;
	h.config.runtime = RUNTIME_PYTHON;
	w.sp = h.sp;
	walk_begin(&w, &p, 1);
	if (interpreted_walk(&w, &h.config, h.base, &items))
		abort();
	assert(items.count <= INTERPRETED_MAX + 4 && w.sample.items == 0);
	uint32_t run_count = weave_split(items.words, items.count, runs);
	for (uint32_t i = 0; i <= items.count && weave_nearest(runs, run_count); i++)
		interpreted_expect(&items, runs, run_count, &w);
	assert(!weave_nearest(runs, run_count));

	uint32_t frames = frames_of(&items, &walk_cut), max = count + items.count;
	struct weave_frame *woven = calloc(max + 1u, sizeof(*woven));
	const struct weave_config c = { .runtime = runtime, .ctx = &h.config };
	const struct weave_input in = { .native = native,
					.items = items.words,
					.native_count = count,
					.item_count = items.count };
	if (!woven)
		abort();
	uint32_t n = weave_all(&in, &c, woven, max, &cut), plain = 0;

	for (uint32_t i = 0; i < count; i += sample_frame_words(native[i])) {
		plain += !sample_frame_items(native[i]);
		/* The items that run in a frame that was taken over. */
		for (uint32_t k = i + 1; k + 1 < count && k < i + sample_frame_words(native[i]);
		     k += 2) {
			unsigned kind = (unsigned)(native[k] >> RUNTIME_ITEM_SHIFT);

			frames += kind == RUNTIME_FRAME;
			walk_cut |= kind == RUNTIME_STOPPED;
		}
	}
	assert(n == plain + frames && cut == walk_cut);
	for (uint32_t i = 0; i < n; i++) {
		if (woven[i].interpreted)
			continue;
		while (sample_frame_items(native[seen]))
			seen += sample_frame_words(native[seen]);
		assert(woven[i].at == seen);
		assert((woven[i].word ^ native[seen]) << 16 == 0);
		seen++;
	}
	free(woven);
	interpreted_done(&items);
	return 0;
}
