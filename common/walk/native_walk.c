/* SPDX-License-Identifier: Apache-2.0 */
#include "common/walk/native_walk.h"

#include <string.h>
#include "runtimes_walk.h" /* generated from bpf/runtimes.def; includes the walks of all runtimes */

#define RUNTIME(number, NAME, name, title, type, mark) \
	static int name##_takes(struct walk *w, const struct runtime_config *c, uint64_t base) \
	{ \
		static struct name##_walk state; \
\
		memcpy(&state.config, c->own, sizeof(state.config)); \
		state.base = base; \
		state.copies.what = c->copy; \
		return name##_frame(w, &state); \
	}
#include "bpf/runtimes.def"

static int (*const takers[RUNTIME_MAX])(struct walk *w, const struct runtime_config *c,
					uint64_t base) = {
#define RUNTIME(number, NAME, name, title, type, mark) [number] = name##_takes,
#include "bpf/runtimes.def"
};

/* Lets the runtime w->taker walk a frame. Returns enum walk_next, or RUNTIME_DECLINES. */
static int ask(struct walk *w)
{
	const uint32_t at = w->runtime_first + w->taker % TABLES_PROCESS_RUNTIMES_MAX * 8u;
	const struct slab *s = env_slab(at, 8);

	if (!s)
		return RUNTIME_DECLINES;
	const struct runtime_entry e = *ENV_AT(s, at, struct runtime_entry, 8);

	s = env_slab(e.config, RUNTIME_CONFIG_WORDS);
	if (!s || e.runtime >= RUNTIME_MAX || !takers[e.runtime])
		return RUNTIME_DECLINES;
	if (!runtime_has_room(w))
		return walk_stop(w, WALK_DEPTH);
	w->slot = e.slot;
	return takers[e.runtime](
		w, ENV_AT(s, e.config, struct runtime_config, RUNTIME_CONFIG_WORDS), e.base);
}

int native_walk_step(struct walk *w)
{
	int next = walk_step(w);

	/* This ends, since each runtime declines a frame only once. */
	while (next == WALK_IS_TAKEN) {
		next = ask(w);
		if (next != RUNTIME_DECLINES) {
			w->declined = 0;
			break;
		}
		/* The frame may be the runtime's all the same: the copy was too short to tell. */
		if (env_current->is_short)
			return walk_stop(w, WALK_COPY_END);
		walk_decline(w);
		next = walk_step(w);
	}
	return next;
}
