/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* The toy's walk: from its innermost frame to the items (runtime.h, runtime_walk.h). */
#ifndef TESTS_SKELETON_TOY_WALK_H
#define TESTS_SKELETON_TOY_WALK_H

#include "bpf/walk/runtime_walk.h"
#include "tests/skeleton/toy.h"

struct toy_walk {
	struct toy_config config;
	__u64 base;
	struct runtime_copies copies;
	__u64 frame; /* the next */
};

/* True if the thread runs the toy. The toy has one thread; a runtime with threads would start from
 * env_tls(). */
ENV_INLINE bool toy_begin(const struct walk *w, struct toy_walk *p)
{
	(void)w;
	return runtime_read(p->base + p->config.top, &p->frame) && p->frame;
}

/* One frame. 0: there is a caller; 1: it was the last. */
ENV_INLINE int toy_step(struct walk *w, struct toy_walk *p)
{
	const struct toy_config *c = &p->config;
	__u64 at = p->frame, function, serial, position, entry, unit, unit_serial;

	if (!at)
		return 1;
	/* Frames may form a circle. */
	if (w->sample.items >= RUNTIME_MAX_ITEMS - 3 ||
	    !runtime_read(at + c->frame_function, &function) ||
	    !runtime_read(function + c->function_serial, &serial) ||
	    !runtime_read(function + c->function_unit, &unit) ||
	    !runtime_read(at + c->frame_position, &position) ||
	    !runtime_read(at + c->frame_entry, &entry) ||
	    !runtime_read(at + c->frame_previous, &p->frame)) {
		walk_item(w, RUNTIME_STOPPED, 0, 0);
		return 1;
	}
	__u64 check = toy_check(serial);

	walk_item(w, RUNTIME_FRAME, function,
		  (position & RUNTIME_POSITION_MASK) | check << RUNTIME_CHECK_SHIFT);
	env_object(w, &p->copies, function, check);
	/* Functions of a unit share it, so it is an object by itself. */
	if (unit && runtime_read(unit + c->function_serial, &unit_serial)) {
		check = toy_check(unit_serial);
		walk_item(w, RUNTIME_SECOND, unit, check << RUNTIME_CHECK_SHIFT);
		env_object(w, &p->copies, unit, check);
	}
	if (entry)
		walk_entry(w, c->chains ? 0 : entry);
	return 0;
}

RUNTIME_TAKES_NOTHING(toy)

#endif
