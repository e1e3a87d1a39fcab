/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include "tools/prof-bpf/weave.h"

struct weaver {
	const struct sample *sample;
	const struct weave_config *config;
	const uint64_t *items;
	uint32_t next; /* item */
	struct weave_frame *frames;
	uint32_t count;
	bool cut;
};

static unsigned item_kind(uint64_t word)
{
	return (unsigned)(word >> RUNTIME_ITEM_SHIFT);
}

static unsigned item_runtime(uint64_t word)
{
	return (unsigned)(word >> RUNTIME_ITEM_RUNTIME_SHIFT & 0xff);
}

/* The runtime in whose loop a native frame is, or NULL. */
static const struct runtime_config *loop_of(const struct weave_config *c, uint64_t word)
{
	uint16_t slot = (uint16_t)(word >> SAMPLE_FRAME_SLOT_SHIFT & SAMPLE_FRAME_SLOT_MASK);
	uint64_t offset = word & SAMPLE_FRAME_OFFSET_MASK;
	const struct runtime_config *r = slot && c->runtime ? c->runtime(c->ctx, slot) : NULL;

	if (!r)
		return NULL;
	if (!(word & SAMPLE_FRAME_EXACT))
		offset--;
	for (uint32_t i = 0; i < r->ranges && i < RUNTIME_RANGES; i++) {
		if (offset >= r->loop[i].start && offset < r->loop[i].end)
			return r;
	}
	return NULL;
}

/* Puts out the next item. Its kind, 0 at the end. */
static unsigned take_item(struct weaver *v)
{
	if (v->next >= v->sample->items)
		return 0;
	const uint64_t *item = v->items + 2u * v->next++;
	unsigned kind = item_kind(item[0]);

	if (kind == RUNTIME_FRAME && v->count < WEAVE_MAX)
		v->frames[v->count++] =
			(struct weave_frame){ .address = item[0] & RUNTIME_ADDRESS_MASK,
					      .mark = item[1],
					      .runtime = (uint16_t)item_runtime(item[0]) };
	v->cut |= kind == RUNTIME_STOPPED;
	return kind;
}

/* The chain that a marked frame runs: it ends with an entry that has an address. */
static void take_chain(struct weaver *v)
{
	unsigned kind;

	do {
		kind = take_item(v);
	} while (kind &&
		 !(kind == RUNTIME_ENTRY && v->items[2u * (v->next - 1)] & RUNTIME_ADDRESS_MASK));
}

/* Where each frame of the loop runs one interpreted frame: whether the leaf's does not yet, or no
 * more. */
static bool leaf_has_none(const struct weaver *v, const uint64_t *native)
{
	uint32_t loops = 0, frames = 0;

	for (uint32_t i = 0; i < v->sample->user_frames; i++) {
		const struct runtime_config *r = loop_of(v->config, native[i]);

		loops += r && r->by_loop;
		if (i == 0 && !loops)
			return false;
	}
	for (uint32_t i = 0; i < v->sample->items; i++)
		frames += item_kind(v->items[2u * i]) == RUNTIME_FRAME;
	return loops == frames + 1;
}

static void put_native(struct weaver *v, uint64_t word, bool loop)
{
	if (v->count < WEAVE_MAX)
		v->frames[v->count++] = (struct weave_frame){ .word = word & ~SAMPLE_FRAME_ENTRY,
							      .loop = loop };
}

/* In no file. */
static bool is_generated(uint64_t word)
{
	return !(word >> SAMPLE_FRAME_SLOT_SHIFT & SAMPLE_FRAME_SLOT_MASK);
}

uint32_t weave(const struct sample *s, const struct weave_config *c,
	       struct weave_frame ret[static WEAVE_MAX], bool *ret_cut)
{
	const uint64_t *native = sample_user_frames(s);
	struct weaver v = { .sample = s, .config = c, .items = sample_items(s), .frames = ret };
	bool skip = s->items && leaf_has_none(&v, native);

	for (uint32_t i = 0; i < s->user_frames && v.count < WEAVE_MAX; i++) {
		const struct runtime_config *r = loop_of(c, native[i]);
		bool by_loop = r && r->by_loop, entered = native[i] & SAMPLE_FRAME_ENTRY;

		put_native(&v, native[i], r != NULL);
		if (r && !by_loop && entered && i + 1 < s->user_frames &&
		    is_generated(native[i + 1]))
			put_native(&v, native[++i], true);
		if (by_loop && !(skip && i == 0))
			(void)take_item(&v);
		else if (!by_loop && entered)
			take_chain(&v);
	}
	while (take_item(&v))
		;
	*ret_cut = v.cut;
	return v.count;
}
