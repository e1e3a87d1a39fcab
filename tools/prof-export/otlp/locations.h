/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locations: the model's frames and stacks as entries of a dictionary.
 *
 * A native frame has its ELF address, one less for a caller, and a mapping in the addresses of its
 * file: the segment, or else all of the file. The mapping has the file's build ids, so that a
 * backend can name what has no names here. A kernel frame has the mapping of its module, or
 * "vmlinux". Interpreted frames have neither address nor mapping. Frames that no backend can name,
 * because they lie in no file, have their label (label.h) for a name.
 *
 * A truncated stack ends in a location of the type "abort-marker", whose function is called
 * "[truncated: reason]". The function's file is the one in which the walk ended.
 */
#ifndef PROF_EXPORT_OTLP_LOCATIONS_H
#define PROF_EXPORT_OTLP_LOCATIONS_H

#include "common/base/reporting.h"
#include "tools/prof-export/model/model.h"
#include "tools/prof-export/otlp/dictionary.h"

struct locations {
	struct dictionary *dictionary; /* borrowed */
	enum reporting_receiver receiver;
	struct ids frames, stacks; /* by the model's number + 1 */
	ARRAY(int32_t) list;	   /* of the stack that is being added */
	struct buf name;
};

void locations_init(struct locations *l, struct dictionary *d, enum reporting_receiver receiver);
/* The model's numbers are void, or the dictionary is. */
void locations_forget(struct locations *l);
void locations_done(struct locations *l);

/* The entry of the sample's stack. most: adds this many frames from the leaf on, and a mark if
 * these are not all. 0, -ENOBUFS at the dictionary's ceilings, -ENOMEM. */
int locations_stack(struct locations *l, const struct model *m, const struct model_sample *s,
		    uint32_t most, uint32_t *ret);
/* The entry of a stack that is nothing but this mark. The same errors. */
int locations_mark(struct locations *l, struct str mark, uint32_t *ret);

#endif
