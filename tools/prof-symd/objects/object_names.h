/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of an object (runtime.h), as prof-symd stores them: its names, the lines of its
 * positions, and its source file, which objects of one file share. All are in one block. Lines are
 * stored as differences from the previous one, seven bits a byte, since most are small.
 */
#ifndef PROF_SYMD_OBJECTS_OBJECT_NAMES_H
#define PROF_SYMD_OBJECTS_OBJECT_NAMES_H

#include "common/names/names.h"
#include "common/names/runtime/runtime.h"

#define OBJECT_NAMES_SOURCES 1024 /* a power of two */

struct object_names;
struct object_names_source;

/* Recent source files, for further objects to share: the last one of each hash. Zero-initialise,
 * then set the seed. */
struct object_names_sources {
	struct object_names_source *recent[OBJECT_NAMES_SOURCES]; /* with counted references */
	uint64_t seed;
};

/* Sources that objects still use stay alive. */
void object_names_sources_done(struct object_names_sources *s);
/* *ret_bytes: memory that it takes, without a source that was there before. 0, -ENOMEM. */
int object_names_new(const struct runtime_object *from, struct object_names_sources *s,
		     struct object_names **ret, size_t *ret_bytes);
void object_names_free(struct object_names *k);
/* Whether it is internal to the runtime, not a function of the program. */
bool object_names_hidden(const struct object_names *k);
/* Copies the names into the calls of *ret, of which the last one is the object itself, and those
 * before are inlined. position: as in a frame's mark. */
void object_names_tell(const struct object_names *k, uint32_t position, struct names *ret);

#endif
