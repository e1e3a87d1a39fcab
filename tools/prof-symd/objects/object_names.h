/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What prof-symd stores of an object that it named (runtime.h): its names, the lines of its
 * positions, and its source, which objects of one file share. Each is one block. Most lines differ
 * little from the one before, so the differences are stored, seven bits a byte.
 */
#ifndef PROFPIPE_OBJECT_NAMES_H
#define PROFPIPE_OBJECT_NAMES_H

#include "common/names/names.h"
#include "common/names/runtime/runtime.h"

#define OBJECT_SOURCES 1024 /* a power of two */

struct object_names;
struct object_source;

/* Sources, for others to share: of each hash the last. Zero-initialise, but for the seed. */
struct object_sources {
	struct object_source *recent[OBJECT_SOURCES]; /* owned with those that share them */
	uint64_t seed;
};

/* Those that are shared live on. */
void object_sources_done(struct object_sources *s);
/* *ret_bytes: what it takes, but for a source that was there. -ENOMEM. */
int object_names_new(const struct runtime_object *from, struct object_sources *s,
		     struct object_names **ret, size_t *ret_bytes);
void object_names_free(struct object_names *k);
/* The runtime's own, no function of the program. */
bool object_names_hidden(const struct object_names *k);
/* As the one call of *ret, which has a copy; position: as in a mark. */
void object_names_tell(const struct object_names *k, uint32_t position, struct names *ret);

#endif
