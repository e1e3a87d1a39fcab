/* SPDX-License-Identifier: Apache-2.0 */
#include "common/walk/weave.h"

#include <stddef.h>

struct weaver {
	const struct weave_input *in;
	const struct weave_config *config;
	struct weave_run runs[TABLES_PROCESS_RUNTIMES_MAX];
	uint32_t run_count;
	struct weave_frame *frames;
	uint32_t count, max;
	bool truncated;
};

static unsigned item_kind(uint64_t word)
{
	return (unsigned)(word >> RUNTIME_ITEM_SHIFT);
}

static uint16_t item_slot(uint64_t word)
{
	return (uint16_t)(word >> RUNTIME_ITEM_SLOT_SHIFT & RUNTIME_ITEM_SLOT_MASK);
}

/* --- items by runtime --- */

static void find_entry(const uint64_t *items, struct weave_run *r)
{
	r->entry_at = 0;
	for (r->entry = r->next; r->entry < r->end && !r->entry_at; r->entry++) {
		uint64_t word = items[(size_t)2 * r->entry];

		if (item_kind(word) == RUNTIME_ENTRY)
			r->entry_at = word & RUNTIME_ADDRESS_MASK;
	}
}

uint32_t weave_split(const uint64_t *items, uint32_t count,
		     struct weave_run ret[static TABLES_PROCESS_RUNTIMES_MAX])
{
	uint32_t runs = 0;

	for (uint32_t i = 0; i < count; i++) {
		uint16_t slot = item_slot(items[(size_t)2 * i]);

		if (runs && (ret[runs - 1].slot == slot || runs == TABLES_PROCESS_RUNTIMES_MAX))
			ret[runs - 1].end = i + 1;
		else
			ret[runs++] = (struct weave_run){ .slot = slot, .next = i, .end = i + 1 };
	}
	for (uint32_t i = 0; i < runs; i++)
		find_entry(items, &ret[i]);
	return runs;
}

struct weave_run *weave_nearest(struct weave_run *runs, uint32_t count)
{
	struct weave_run *best = NULL;

	for (struct weave_run *r = runs; r < runs + count; r++) {
		if (r->entry_at && (!best || r->entry_at < best->entry_at))
			best = r;
	}
	return best;
}

void weave_pass(const uint64_t *items, struct weave_run *r)
{
	r->next = r->entry;
	find_entry(items, r);
}

/* --- frames --- */

/* Returns the runtime whose loop contains a native frame, or NULL. */
static const struct runtime_config *loop_of(const struct weave_config *c, uint64_t word)
{
	uint16_t slot = sample_frame_slot(word);
	uint64_t offset = word & SAMPLE_FRAME_OFFSET_MASK;
	const struct runtime_config *r = slot && c->runtime ? c->runtime(c->ctx, slot) : NULL;

	if (!r)
		return NULL;
	if (!(word & SAMPLE_FRAME_EXACT))
		offset--;
	for (uint32_t i = 0; i + r->shown < r->ranges && i < RUNTIME_RANGES; i++) {
		if (offset >= r->loop[i].start && offset < r->loop[i].end)
			return r;
	}
	return NULL;
}

/* Emits an item. `at` is the word of the native frame it belongs to, or 0. */
static void take_item(struct weaver *v, const uint64_t *item, uint32_t at)
{
	unsigned kind = item_kind(item[0]);

	if (kind == RUNTIME_FRAME && v->count < v->max)
		v->frames[v->count++] = (struct weave_frame){ .address = item[0] &
									 RUNTIME_ADDRESS_MASK,
							      .mark = item[1],
							      .at = at,
							      .slot = item_slot(item[0]),
							      .interpreted = true };
	if (kind == RUNTIME_SECOND && v->count && v->frames[v->count - 1].interpreted) {
		v->frames[v->count - 1].address2 = item[0] & RUNTIME_ADDRESS_MASK;
		v->frames[v->count - 1].mark2 = item[1];
	}
	v->truncated |= kind == RUNTIME_STOPPED;
}

/* Emits the items of a run up to `end`. */
static void take_items(struct weaver *v, struct weave_run *r, uint32_t end)
{
	for (; r->next < end; r->next++)
		take_item(v, v->in->items + (size_t)2 * r->next, 0);
}

/* Emits the chain that a marked frame runs. The chain ends with an entry that has an address. */
static void take_chain(struct weaver *v)
{
	struct weave_run *r = weave_nearest(v->runs, v->run_count);

	if (!r)
		return;
	take_items(v, r, r->entry);
	weave_pass(v->in->items, r);
}

static struct weave_run *run_of(struct weaver *v, uint64_t word)
{
	for (uint32_t i = 0; i < v->run_count; i++) {
		if (v->runs[i].slot == sample_frame_slot(word))
			return &v->runs[i];
	}
	return NULL;
}

/* For runtimes without addresses in their entries, where each loop frame runs one interpreted frame
 * or a chain of them. Returns where the frames end that the next loop frame runs. */
static uint32_t end_by_loop(const struct weaver *v, const struct weave_run *r, uint32_t by_loop)
{
	uint32_t end = r->next;

	if (by_loop != RUNTIME_CHAIN_BY_LOOP)
		return end < r->end ? end + 1 : end;
	while (end < r->end && item_kind(v->in->items[(size_t)2 * end]) != RUNTIME_ENTRY)
		end++;
	return end < r->end ? end + 1 : end;
}

/* For the same runtimes. Whether the leaf frame runs no interpreted frame, since it has not begun
 * one or has just ended it. */
static bool leaf_has_none(struct weaver *v)
{
	const uint64_t *native = v->in->native;
	const struct weave_run *run = v->in->native_count ? run_of(v, native[0]) : NULL;
	const struct runtime_config *leaf = run ? loop_of(v->config, native[0]) : NULL;
	uint32_t loops = 0, runs = 0;

	if (!leaf || !leaf->by_loop)
		return false;
	for (uint32_t i = 0; i < v->in->native_count; i += sample_frame_words(native[i]))
		loops += sample_frame_slot(native[i]) == run->slot && loop_of(v->config, native[i]);
	for (struct weave_run r = *run; r.next < r.end; runs++)
		r.next = end_by_loop(v, &r, leaf->by_loop);
	return loops == runs + 1;
}

/* Whether the loop called this frame through a stub. */
static bool is_trace(const struct weaver *v, uint32_t at)
{
	const uint64_t word = v->in->native[at];
	const uint32_t next = at + sample_frame_words(word);
	const struct runtime_config *r;

	if (sample_frame_slot(word) || next >= v->in->native_count)
		return false;
	r = loop_of(v->config, v->in->native[next]);
	return r && r->takes & RUNTIME_RULES_GENERATED && (r->rule & 0xffff) == TABLES_RULE_STUB;
}

static void put_native(struct weaver *v, uint32_t at, bool loop)
{
	uint64_t word = v->in->native[at] & ~SAMPLE_FRAME_ENTRY;

	/* A runtime took the frame over, but it is not known what runs in it. */
	if (sample_frame_slot(word) == SAMPLE_FRAME_TAKEN)
		word &= ~(SAMPLE_FRAME_SLOT_MASK << SAMPLE_FRAME_SLOT_SHIFT);
	if (v->count < v->max)
		v->frames[v->count++] =
			(struct weave_frame){ .word = word, .at = at, .loop = loop };
}

/* Emits a frame that a runtime took over. */
static void take_taken(struct weaver *v, uint32_t at)
{
	uint64_t word = v->in->native[at];

	for (uint32_t i = 1; i < sample_frame_words(word) && at + i + 1 < v->in->native_count;
	     i += 2)
		take_item(v, v->in->native + at + i, at);
	if (word & SAMPLE_FRAME_ENTRY)
		take_chain(v);
}

uint32_t weave_all(const struct weave_input *in, const struct weave_config *c,
		   struct weave_frame *ret, uint32_t max, bool *ret_truncated)
{
	const uint64_t *native = in->native;
	struct weaver v = { .in = in, .config = c, .frames = ret, .max = max };

	v.run_count = weave_split(in->items, in->item_count, v.runs);
	bool skip = leaf_has_none(&v);

	for (uint32_t i = 0; i < in->native_count && v.count < max;
	     i += sample_frame_words(native[i])) {
		if (sample_frame_items(native[i])) {
			take_taken(&v, i);
			continue;
		}
		const struct runtime_config *r = loop_of(c, native[i]);
		bool by_loop = r && r->by_loop, entered = native[i] & SAMPLE_FRAME_ENTRY;
		struct weave_run *run = by_loop ? run_of(&v, native[i]) : NULL;

		put_native(&v, i, r != NULL || is_trace(&v, i));
		if (r && !by_loop && entered && i + 1 < in->native_count &&
		    !sample_frame_slot(native[i + 1]))
			put_native(&v, ++i, true);
		if (run && run->next < run->end && !(skip && i == 0))
			take_items(&v, run, end_by_loop(&v, run, r->by_loop));
		else if (!by_loop && entered)
			take_chain(&v);
	}
	for (uint32_t i = 0; i < v.run_count; i++)
		take_items(&v, &v.runs[i], v.runs[i].end);
	*ret_truncated = v.truncated;
	return v.count;
}

uint32_t weave(const struct sample *s, const struct weave_config *c,
	       struct weave_frame ret[static WEAVE_MAX], bool *ret_truncated)
{
	const struct weave_input in = { .native = sample_user_frames(s),
					.items = sample_items(s),
					.native_count = s->user_frames,
					.item_count = s->items };

	return weave_all(&in, c, ret, WEAVE_MAX, ret_truncated);
}
