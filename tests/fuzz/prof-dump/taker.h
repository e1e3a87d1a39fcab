/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by fuzz targets that walk a runtime's frames (bpf/walk/runtime_walk.h). Include it after
 * the runtime's walk, with RUNTIME_WALK defined as the runtime's name. */
#ifndef TESTS_FUZZ_PROF_DUMP_TAKER_H
#define TESTS_FUZZ_PROF_DUMP_TAKER_H

#include <assert.h>
#include <stdlib.h>
#include "bpf/reasons.h"
#include "common/walk/tables/tables.h"
#include "common/walk/weave.h"
#include "tests/memory_tables.h"

#define TAKER_PASTE(a, b) a##b
#define TAKER_GLUE(a, b) TAKER_PASTE(a, b)
#define TAKER_OF(what) TAKER_GLUE(RUNTIME_WALK, what)

static struct tables *tables;
static uint16_t slot; /* of the runtime's file */

static inline void begin_tables(const struct runtime_config *r)
{
	const struct tables_config c = memory_tables(TABLES_SLAB_BYTES);

	if (tables_new(&c, &tables) || tables_file_new(tables, &slot) ||
	    tables_file_runtime(tables, slot, r))
		abort();
	tables_file_none(tables, slot);
}

/* Walks as the kernel's programs do. Returns the number of frames that the runtime put out. */
static inline unsigned walk(struct walk *w, struct TAKER_OF(_walk) * p)
{
	unsigned steps = 0, taken = 0;
	int next = WALK_GOES_ON;

	while (next != WALK_IS_OVER) {
		next = walk_step(w);
		while (next == WALK_IS_TAKEN) {
			if (!runtime_has_room(w)) {
				next = walk_stop(w, WALK_DEPTH);
				break;
			}
			const uint32_t before = w->count;

			next = runtime_framed(w, TAKER_OF(_frame)(w, p));
			taken += w->count > before;
			if (next == WALK_IS_TAKEN)
				next = walk_step(w);
			else if (next == WALK_GOES_ON)
				next = WALK_IS_TAKEN;
			assert(++steps <= 3 * SAMPLE_MAX_USER);
		}
		assert(++steps <= 3 * SAMPLE_MAX_USER);
	}
	return taken;
}

/* The output is well formed. Returns how many frames have items or a runtime's slot. */
static inline unsigned check_frames(const struct walk *w)
{
	static struct weave_frame woven[SAMPLE_MAX_USER];
	const struct weave_config c = { 0 };
	const struct weave_input in = { .native = (const uint64_t *)w->words + w->base,
					.native_count = w->count };
	unsigned frames = 0;
	bool cut;

	assert(w->reason < WALK_REASONS && w->count <= w->room);
	for (uint32_t i = 0; i < w->count; i += sample_frame_words(w->words[w->base + i])) {
		const uint64_t word = w->words[w->base + i];

		assert(i + sample_frame_words(word) <= w->count);
		frames += sample_frame_slot(word) >= SAMPLE_FRAME_TAKEN;
	}
	weave_all(&in, &c, woven, SAMPLE_MAX_USER, &cut);
	return frames;
}

#endif
