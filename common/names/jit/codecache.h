/* SPDX-License-Identifier: Apache-2.0 */
/* The latest answers of code files: frames of generated code repeat, and a lookup is a request to
 * another process. */
#ifndef COMMON_NAMES_JIT_CODECACHE_H
#define COMMON_NAMES_JIT_CODECACHE_H

#include "common/names/jit/codefile.h"
#include "common/names/names.h"

#define CODECACHE_ANSWERS 256 /* a power of 2 */

/* Zero-initialise. */
struct codecache {
	struct codecache_answer *at; /* CODECACHE_ANSWERS, allocated with the first one */
};

/* Of what an answer is one. generation: as of the process's files; another one has other
 * answers. */
struct codecache_key {
	uint64_t process, address, generation;
};

void codecache_done(struct codecache *c);
/* Keeps an answer, in the place of an older one. call: NULL: there is no name. Does nothing without
 * memory. */
void codecache_put(struct codecache *c, const struct codecache_key *of,
		   const struct codefile_answer *answer, const struct names_call *call);
/* The answer for this time, borrowed until the next codecache_put; NULL: it is not known. */
const struct codecache_answer *codecache_find(const struct codecache *c,
					      const struct codecache_key *of, uint64_t time_ns);
/* Makes *ret the call of the answer. False: the address has no name. */
bool codecache_tell(const struct codecache_answer *k, struct names *ret);

#endif
