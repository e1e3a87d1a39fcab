/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies of objects' memory. The kernel's program copies an object at its first sample, so the copy
 * comes before the object's first frame. It is kept until the object is named from it. Owners share
 * the places and the memory: if these are full, the oldest copy of the owner with most bytes is
 * dropped.
 *
 * An empty copy means that the memory of its process may not be copied.
 */
#ifndef PROF_SYMD_OBJECTS_COPIES_H
#define PROF_SYMD_OBJECTS_COPIES_H

#include "common/base/shares/holdings.h"
#include "common/base/tables/idmap.h"
#include "common/names/runtime/runtime.h"
#include "common/wire/msg.h"
#include "tools/prof-symd/objects/forgotten.h"
#include "tools/prof-symd/objects/object_names.h"

#define COPIES_MAX 512

/* Identifies an object and its process. */
struct object_id {
	uint64_t process, address, check;
};

/* Returns a hash of the id, never 0. */
uint64_t object_id_key(const struct object_id *of, uint64_t seed);

struct copies {
	struct copy *at; /* COPIES_MAX of them, allocated with the first copy */
	struct idmap by_key;
	struct holdings bytes;
	size_t most; /* bytes of all copies */
	uint64_t seed;
	uint64_t serial;	     /* serial of the last copy */
	struct forgotten *forgotten; /* takes copies that are dropped; borrowed, may be NULL */
};

/* *c must be zero before. seed: that of object_id_key; bytes: as in copies_limit. Returns 0 or
 * -errno. */
int copies_init(struct copies *c, uint64_t seed, size_t bytes);
/* Sets how many bytes all copies may have. Drops those that are too many. */
void copies_limit(struct copies *c, size_t bytes);
void copies_done(struct copies *c);
/* Stores a copy, charged to this owner, unless the object has one. Returns 0 or -ENOMEM. */
int copies_take(struct copies *c, const struct msg_object *m, uint64_t owner);
bool copies_have(const struct copies *c, const struct object_id *of);
/* Whether the object's copy is empty. If it is, drops it. */
bool copies_take_empty(struct copies *c, const struct object_id *of);

/* The result of naming an object from its copy. */
struct copy_names {
	struct object_names *names; /* the caller frees them; NULL: the copy gave no names */
	size_t bytes;		    /* size of the names (object_names_new) */
	bool whole;		    /* the copy contained all that was needed */
};

/* Names an object from its copy, and drops the copy. *scratch is overwritten; sources are those of
 * object_names_new. Returns 0, also if there is no copy; or -ENOMEM. */
int copies_name(struct copies *c, const struct object_id *of, const struct runtime_build *b,
		struct runtime_object *scratch, struct object_names_sources *sources,
		struct copy_names *ret);

#endif
