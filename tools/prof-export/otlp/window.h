/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A window: the samples of a span of time, ready to be packed. Each process is a resource. Samples
 * with the same resource, source, stack, thread, cpu, link and labels form one sample with many
 * timestamps. A loss is a sample with a value and no timestamp; all losses belong to one resource.
 *
 * A window is not packed directly. window_part copies what is needed, because a window can have
 * unused entries: those of a sample that finally did not fit. The latest facts about a process
 * apply to all of its samples in the window. So two processes may get equal attributes, for example
 * when a program executes itself; the copy has one resource for both.
 *
 * The window keeps track of the size of its request and refuses what would exceed the ceiling. So a
 * user with endless names only makes windows shorter. All memory is charged to the pool, except for
 * the bytes of one name and one resource.
 */
#ifndef PROF_EXPORT_OTLP_WINDOW_H
#define PROF_EXPORT_OTLP_WINDOW_H

#include "tools/prof-export/model/model.h"
#include "tools/prof-export/otlp/dictionary.h"
#include "tools/prof-export/otlp/locations.h"

struct window_resource {
	/* The process; window_process finds the resource by these fields. */
	struct window_process {
		uint64_t pid, start_ns, execs;
	} process;
	uint32_t at, len; /* position and length of its attributes in window.packed */
};

#define WINDOW_ATTRIBUTES 3 /* thread.name, thread.id, cpu.logical_number */
#define WINDOW_LABELS 64    /* of a sample, at most */

struct window_sample {
	/* All fields have 32 bits, so that there is no padding to hash. 0: none. labels: the number
	 * in window.labels, plus 1. */
	uint32_t resource, source, stack, link, attributes[WINDOW_ATTRIBUTES], labels;
	uint32_t value; /* value of a loss; else 0 */
};

/* A sample of the stream. */
struct window_tick {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint32_t sample;
	uint32_t value; /* WINDOW_BOTH: index in window.values */
};

/* The shape of a profile's samples. */
enum window_shape {
	WINDOW_TIMES, /* timestamps, each of which counts 1 */
	WINDOW_BOTH,  /* timestamps, with a value each */
	WINDOW_VALUE, /* one value */
};

/* The source that triggered samples, such as a timer or an event. Each source of a resource becomes
 * a profile. */
struct window_source {
	enum window_shape shape;
	/* Type and unit of the values, as entries of the dictionary; 0: unused. */
	uint32_t type, unit;
	uint32_t period_type, period_unit; /* 0: it has no period */
	uint64_t period;
};
#define WINDOW_SOURCES 16 /* limit; source 0 is the event of the stream's header */

struct window {
	struct pool *pool; /* borrowed */
	size_t max;	   /* limit of the request, in bytes */
	size_t size;	   /* upper bound of the request's size without the dictionary */
	struct dictionary dictionary;
	struct locations locations;
	struct window_source sources[WINDOW_SOURCES];
	uint32_t source_count; /* including source 0 */
	uint64_t period;       /* of source 0; 0: unknown yet */
	POOL_ARRAY(struct window_resource) resources;
	POOL_ARRAY(uint8_t) packed; /* attributes of the resources */
	POOL_ARRAY(struct window_sample) samples;
	POOL_ARRAY(struct window_tick) ticks;
	POOL_ARRAY(uint64_t) values;
	struct table_strings labels;  /* sets of attributes; each is a list of 32-bit numbers */
	struct table_ids label_lists; /* by the model's number + 1 */
	struct table_index process_index, resource_index, sample_index;
	struct buf text; /* temporary */
};

/* Returns 0 or -ENOBUFS. window_done frees the window, also after an error. */
int window_begin(struct window *w, struct pool *pool, size_t max, enum reporting_receiver receiver);
void window_done(struct window *w);
/* Raises the ceiling. */
void window_widen(struct window *w, size_t max);
/* Forgets the model's numbers, which are no longer valid. */
void window_forget(struct window *w);

/* Adds a sample at this time, with at most this many frames (locations_stack). Returns 0, -ENOBUFS
 * if it does not fit, or -ENOMEM. */
int window_add(struct window *w, const struct model *m, const struct model_sample *s,
	       uint64_t time_ns, uint32_t most);
/* Updates the attributes of this process, if it is in the window. */
void window_process(struct window *w, const struct model *m, const struct epoch_process *p);
/* Adds n samples that were lost for this reason. Errors of window_add. */
int window_lose(struct window *w, const struct model *m, const char *reason, uint64_t n);

/* Fills *part, an empty window after window_begin, with the ticks in [from, to) and with what these
 * need. Returns 0, -ENOBUFS or -ENOMEM. */
int window_part(const struct window *w, size_t from, size_t to, struct window *part);

struct span window_packed(const struct window *w, uint32_t resource);
/* Returns the number of attributes in a set of labels, and *ret, the attributes. */
uint32_t window_labels(const struct window *w, uint32_t set, uint32_t ret[static WINDOW_LABELS]);

#endif
