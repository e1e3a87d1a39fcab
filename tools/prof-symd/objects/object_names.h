/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of an object (runtime.h), as prof-symd stores them: its names, the lines of its
 * positions, and its source file, which objects of one file share. Everything else is in one block.
 * Lines are stored as differences from the previous one, seven bits a byte, since most are small.
 */
#ifndef PROF_SYMD_OBJECTS_OBJECT_NAMES_H
#define PROF_SYMD_OBJECTS_OBJECT_NAMES_H

#include "common/names/names.h"
#include "common/names/runtime/runtime.h"

#define OBJECT_NAMES_SOURCES 1024 /* a power of two */

struct object_names;
struct object_names_source;

/* Recent source files, which further objects can share: the last one of each hash. Zero-initialise,
 * then set the seed. */
struct object_names_sources {
	struct object_names_source *recent[OBJECT_NAMES_SOURCES]; /* reference-counted */
	uint64_t seed;
};

/* Drops the references. Sources that objects still use stay alive. */
void object_names_sources_done(struct object_names_sources *s);
/* Stores the names of an object. *ret_bytes is the memory that they take, without a source that
 * existed before. Returns 0 or -ENOMEM. */
int object_names_new(const struct runtime_object *from, struct object_names_sources *s,
		     struct object_names **ret, size_t *ret_bytes);
void object_names_free(struct object_names *k);
/* Whether the object is internal to the runtime, not a function of the program. */
bool object_names_hidden(const struct object_names *k);
/* Copies the names into the calls of *ret. The last call is the object itself, and those before it
 * are inlined. position: that of a frame's mark. */
void object_names_tell(const struct object_names *k, uint32_t position, struct names *ret);

#endif
