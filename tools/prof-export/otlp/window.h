/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window: the samples of a span of time, ready to be packed. A resource is a process. Samples of
 * one resource, source, stack, thread, cpu, link and labels are one sample with many timestamps.
 * A loss is a sample with a value and no timestamp, of a resource of its own.
 *
 * A window is not packed as it is, but copied by window_part. It may have entries that nothing
 * refers to, for a sample that did not fit in the end. The latest facts about a process hold for
 * all of its samples in the window. So the attributes of two processes may become the same, as of a
 * program that executed itself; a part has one resource for both.
 *
 * The window knows how large its request becomes. It takes nothing that leads beyond the ceiling,
 * so a user's endless names only end it earlier. All memory is the pool's, except for the bytes
 * of one name and one resource.
 */
#ifndef PROF_EXPORT_OTLP_WINDOW_H
#define PROF_EXPORT_OTLP_WINDOW_H

#include "tools/prof-export/model/model.h"
#include "tools/prof-export/otlp/dictionary.h"
#include "tools/prof-export/otlp/locations.h"

struct window_resource {
	/* The process: window_process finds it by these. */
	struct window_process {
		uint64_t pid, start_ns, execs;
	} process;
	uint32_t at, len; /* of its bytes in window.packed */
};

#define WINDOW_ATTRIBUTES 3 /* thread.name, thread.id, cpu.logical_number */
#define WINDOW_LABELS 64    /* of a sample, at most */

struct window_sample {
	/* 32 bits only, so that it is hashed as it lies in memory. 0: none. labels: one more than
	 * their number in window.labels. */
	uint32_t resource, source, stack, link, attributes[WINDOW_ATTRIBUTES], labels;
	uint32_t value; /* of what was lost */
};

/* A sample of the stream. */
struct window_tick {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t sample;
	uint32_t value; /* WINDOW_BOTH: its place in window.values */
};

/* The shape of a profile's samples. */
enum window_shape {
	WINDOW_TIMES, /* timestamps, each of which counts 1 */
	WINDOW_BOTH,  /* timestamps, with a value each */
	WINDOW_VALUE, /* one value */
};

/* The source that drove samples. Each source of a resource is a profile. */
struct window_source {
	enum window_shape shape;
	uint32_t type, unit; /* of the values, as entries of the dictionary; 0: nothing uses it */
	uint32_t period_type, period_unit; /* 0: it has no period */
	uint64_t period;
};
#define WINDOW_SOURCES 16 /* at most; source 0 is the event of the stream's header */

struct window {
	struct pool *pool; /* borrowed */
	size_t max;	   /* of the request, in bytes */
	size_t size;	   /* of it, without the dictionary: no less than it will be */
	struct dictionary dictionary;
	struct locations locations;
	struct window_source sources[WINDOW_SOURCES];
	uint32_t source_count; /* including source 0 */
	uint64_t period;       /* of source 0; 0: not known yet */
	ARRAY(struct window_resource) resources;
	ARRAY(uint8_t) packed; /* resources */
	ARRAY(struct window_sample) samples;
	ARRAY(struct window_tick) ticks;
	ARRAY(uint64_t) values;
	struct strings labels;	/* sets of attributes: numbers of 32 bits */
	struct ids label_lists; /* by the model's number + 1 */
	struct index process_index, resource_index, sample_index;
	struct buf text; /* being made */
};

/* 0, -ENOBUFS. window_done frees, also after an error. */
int window_begin(struct window *w, struct pool *pool, size_t max, enum reporting_receiver receiver);
void window_done(struct window *w);
/* Raises the ceiling. */
void window_widen(struct window *w, size_t max);
/* The model's numbers are void. */
void window_forget(struct window *w);

/* Adds a sample at this time, with at most this many frames (locations_stack). 0, -ENOBUFS if it
 * does not fit, -ENOMEM. */
int window_add(struct window *w, const struct model *m, const struct model_sample *s,
	       uint64_t time_ns, uint32_t most);
/* More may be known of this process now. */
void window_process(struct window *w, const struct model *m, const struct epoch_process *p);
/* Adds n that were lost for this reason. The same errors. */
int window_lose(struct window *w, const struct model *m, const char *reason, uint64_t n);

/* Fills *part, an empty window after window_begin, with the ticks from `from` to before `to`, and
 * with nothing that these do not need. 0, -ENOBUFS, -ENOMEM. */
int window_part(const struct window *w, size_t from, size_t to, struct window *part);

struct span window_packed(const struct window *w, uint32_t resource);
/* The attributes of a set of labels. Returns how many there are. */
uint32_t window_labels(const struct window *w, uint32_t set, uint32_t ret[static WINDOW_LABELS]);

#endif
