/* SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>
#include "tools/prof-bpf/weave.h"

struct weaver {
	const struct weave_input *in;
	const struct weave_config *config;
	uint32_t next; /* item */
	struct weave_frame *frames;
	uint32_t count, max;
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
	if (v->next >= v->in->item_count)
		return 0;
	const uint64_t *item = v->in->items + (size_t)2 * v->next++;
	unsigned kind = item_kind(item[0]);

	if (kind == RUNTIME_FRAME && v->count < v->max)
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
	} while (kind && !(kind == RUNTIME_ENTRY &&
			   v->in->items[(size_t)2 * (v->next - 1)] & RUNTIME_ADDRESS_MASK));
}

/* Where each frame of the loop runs one interpreted frame: whether the leaf's does not yet, or no
 * more. */
static bool leaf_has_none(const struct weave_input *in, const struct weave_config *c)
{
	uint32_t loops = 0, frames = 0;

	for (uint32_t i = 0; i < in->native_count; i++) {
		const struct runtime_config *r = loop_of(c, in->native[i]);

		loops += r && r->by_loop;
		if (i == 0 && !loops)
			return false;
	}
	for (uint32_t i = 0; i < in->item_count; i++)
		frames += item_kind(in->items[(size_t)2 * i]) == RUNTIME_FRAME;
	return loops == frames + 1;
}

static void put_native(struct weaver *v, uint64_t word, bool loop)
{
	if (v->count < v->max)
		v->frames[v->count++] = (struct weave_frame){ .word = word & ~SAMPLE_FRAME_ENTRY,
							      .loop = loop };
}

/* In no file. */
static bool is_generated(uint64_t word)
{
	return !(word >> SAMPLE_FRAME_SLOT_SHIFT & SAMPLE_FRAME_SLOT_MASK);
}

uint32_t weave_all(const struct weave_input *in, const struct weave_config *c,
		   struct weave_frame *ret, uint32_t max, bool *ret_cut)
{
	const uint64_t *native = in->native;
	struct weaver v = { .in = in, .config = c, .frames = ret, .max = max };
	bool skip = in->item_count && leaf_has_none(in, c);

	for (uint32_t i = 0; i < in->native_count && v.count < max; i++) {
		const struct runtime_config *r = loop_of(c, native[i]);
		bool by_loop = r && r->by_loop, entered = native[i] & SAMPLE_FRAME_ENTRY;

		put_native(&v, native[i], r != NULL);
		if (r && !by_loop && entered && i + 1 < in->native_count &&
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

uint32_t weave(const struct sample *s, const struct weave_config *c,
	       struct weave_frame ret[static WEAVE_MAX], bool *ret_cut)
{
	const struct weave_input in = { .native = sample_user_frames(s),
					.items = sample_items(s),
					.native_count = s->user_frames,
					.item_count = s->items };

	return weave_all(&in, c, ret, WEAVE_MAX, ret_cut);
}
