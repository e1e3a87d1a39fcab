/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locations: the model's frames and stacks as entries of a dictionary.
 *
 * A native frame has its ELF address, minus one for a caller, and a mapping whose range is in the
 * file's own addresses: the segment, or else the whole file. The mapping has the file's build ids,
 * so that a backend can find names that are missing here. A kernel frame has the mapping of its
 * module, or "vmlinux". Interpreted frames have neither an address nor a mapping. Frames outside
 * files, which no backend can name, have their label (label.h) as the name.
 *
 * A truncated stack ends in a location of the type "abort-marker", whose function is called
 * "[truncated: reason]". That function's file is the file in which the walk ended.
 */
#ifndef PROF_EXPORT_OTLP_LOCATIONS_H
#define PROF_EXPORT_OTLP_LOCATIONS_H

#include "common/base/command/reporting.h"
#include "tools/prof-export/model/model.h"
#include "tools/prof-export/otlp/dictionary.h"

/* A mapping that was added: its range, the model's strings that it was made of, and its number; 0:
 * none. */
struct locations_mapping {
	uint64_t memory_start, memory_limit, file_offset;
	uint32_t path, build_id, go_build_id, htlhash;
	uint32_t number;
};
#define LOCATIONS_MAPPINGS 64
#define LOCATIONS_TYPES 8

struct locations {
	struct dictionary *dictionary; /* borrowed */
	enum reporting_receiver receiver;
	struct table_ids frames, stacks; /* by the model's number + 1 */
	/* Mappings and types that were used lately, so that a new address in a known file costs
	 * little: the place of a mapping is computed from its strings. */
	struct locations_mapping mappings[LOCATIONS_MAPPINGS];
	struct locations_type {
		const char *name;
		uint32_t attribute;
	} types[LOCATIONS_TYPES];
	POOL_ARRAY(int32_t) list; /* list of the stack that is being added */
	struct buf name;
};

void locations_init(struct locations *l, struct dictionary *d, enum reporting_receiver receiver);
/* Forgets all numbers, after the model or the dictionary has been emptied. */
void locations_forget(struct locations *l);
void locations_done(struct locations *l);

/* Adds the sample's stack. most: the maximum number of frames from the leaf on; if more exist, adds
 * a mark. Returns 0, -ENOBUFS at the dictionary's ceilings, or -ENOMEM. */
int locations_stack(struct locations *l, const struct model *m, const struct model_sample *s,
		    uint32_t most, uint32_t *ret);
/* Adds a stack whose only frame is this mark. Errors of locations_stack. */
int locations_mark(struct locations *l, struct str mark, uint32_t *ret);

#endif
