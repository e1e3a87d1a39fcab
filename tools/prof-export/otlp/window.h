/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window: the samples of a span of time, ready to be packed. A resource is a process. Samples of
 * one resource, stack, thread and cpu are one sample with many timestamps. What was lost is a
 * sample with a value and no timestamp, of a resource of its own.
 *
 * The window knows how large its request becomes. It takes nothing that leads beyond the ceiling,
 * so a stranger's endless names only end it earlier. All memory is the pool's, except for the bytes
 * of one name and one resource.
 */
#ifndef PROF_EXPORT_OTLP_WINDOW_H
#define PROF_EXPORT_OTLP_WINDOW_H

#include "tools/prof-export/model/model.h"
#include "tools/prof-export/otlp/dictionary.h"
#include "tools/prof-export/otlp/locations.h"

struct window_resource {
	bool lost;	     /* profpipe itself: what was lost */
	uint32_t packed_end; /* of its bytes in window.packed */
};

/* A process that has samples. One that executed the same program again is the same resource. */
struct window_process {
	uint64_t pid, start_ns, execs;
	uint32_t resource;
};

#define WINDOW_ATTRIBUTES 3 /* thread.name, thread.id, cpu.logical_number */

struct window_sample {
	/* 32 bits only, so that it is hashed as it lies in memory. An attribute 0 is none. */
	uint32_t resource, stack, attributes[WINDOW_ATTRIBUTES];
	uint32_t value; /* of what was lost; 0: it has timestamps */
};

/* A sample of the stream. */
struct window_tick {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t sample;
};

/* What the samples count, as entries of the dictionary. */
struct window_types {
	uint32_t samples, count; /* sample_type */
	uint32_t event, unit;	 /* period_type */
	uint32_t lost;
};

struct window {
	struct pool *pool; /* borrowed */
	size_t max;	   /* of the request, in bytes */
	size_t size;	   /* of it, without the dictionary: no less than it will be */
	struct dictionary dictionary;
	struct locations locations;
	struct window_types types;
	uint64_t period;
	ARRAY(struct window_process) processes;
	ARRAY(struct window_resource) resources;
	ARRAY(uint8_t) packed; /* resources, one behind the other */
	ARRAY(struct window_sample) samples;
	ARRAY(struct window_tick) ticks;
	struct index process_index, resource_index, sample_index;
	struct buf resource;
	bool orphans; /* something was added for a sample that did not fit */
};

/* 0, -ENOBUFS. window_done frees, also after an error. */
int window_begin(struct window *w, struct pool *pool, size_t max, enum reporting_receiver receiver,
		 const struct model *m);
void window_done(struct window *w);
/* Raises the ceiling. */
void window_widen(struct window *w, size_t max);
/* The model's numbers are void. */
void window_forget(struct window *w);

/* Adds a sample at this time, with so many frames at most (locations_stack). 0, -ENOBUFS if it does
 * not fit, -ENOMEM. */
int window_add(struct window *w, const struct model *m, const struct model_sample *s,
	       uint64_t time_ns, uint32_t most);
/* Adds n that were lost for this reason. The same errors. */
int window_lose(struct window *w, const struct model *m, const char *reason, uint64_t n);

/* Fills *part, an empty window after window_begin, with the ticks from `from` to before `to`, and
 * with nothing that these do not need. 0, -ENOBUFS, -ENOMEM. */
int window_part(const struct window *w, size_t from, size_t to, struct window *part);

struct span window_packed(const struct window *w, uint32_t resource);

#endif
