/* SPDX-License-Identifier: Apache-2.0 */
/* A cache of the latest answers from code files (codereader.h). Frames of generated code repeat,
 * and a lookup is a request to another process. */
#ifndef COMMON_NAMES_JIT_CODECACHE_H
#define COMMON_NAMES_JIT_CODECACHE_H

#include "common/names/jit/codefile.h"
#include "common/names/names.h"

#define CODECACHE_ANSWERS 256 /* a power of 2 */

/* Zero-initialise. */
struct codecache {
	struct codecache_answer *at; /* CODECACHE_ANSWERS of them, allocated with the first
				      * answer */
};

/* The key of an answer. generation: a counter of changes to the process's files; another generation
 * has other answers. */
struct codecache_key {
	uint64_t process, address, generation;
};

void codecache_done(struct codecache *c);
/* Stores an answer, in place of an older one. call is NULL if there is no name. Does nothing if
 * memory is short. */
void codecache_put(struct codecache *c, const struct codecache_key *of,
		   const struct codefile_answer *answer, const struct names_call *call);
/* Returns the answer for this time, borrowed until the next codecache_put; NULL: it is not
 * known. */
const struct codecache_answer *codecache_find(const struct codecache *c,
					      const struct codecache_key *of, uint64_t time_ns);
/* Makes *ret hold the call of the answer. Returns false if the address has no name. */
bool codecache_tell(const struct codecache_answer *k, struct names *ret);

#endif
