/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is kept of a named object (runtime.h): its names, the lines of its positions, and its
 * source, which it shares with others of the same file. One block each; the lines, of which most
 * differ little from the one before, as numbers of seven bits a byte.
 */
#ifndef PROFPIPE_KEPT_H
#define PROFPIPE_KEPT_H

#include "tools/prof-symd/names.h"
#include "tools/prof-symd/runtime.h"

#define KEPT_SOURCES 1024 /* a power of two */

struct kept;
struct kept_source;

/* Sources, for others to share: of each hash the last. Zero-initialise, but for the seed. */
struct kept_sources {
	struct kept_source *recent[KEPT_SOURCES]; /* owned with those that share them */
	uint64_t seed;
};

/* Those that are shared live on. */
void kept_sources_done(struct kept_sources *s);
/* *ret_bytes: what it takes, but for a source that was there. -ENOMEM. */
int kept_new(const struct runtime_object *from, struct kept_sources *s, struct kept **ret,
	     size_t *ret_bytes);
void kept_free(struct kept *k);
/* The runtime's own, no function of the program. */
bool kept_hidden(const struct kept *k);
/* As the one call of *ret, which has a copy; position: as in a mark. */
void kept_tell(const struct kept *k, uint32_t position, struct names *ret);

#endif
