/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leftovers: requests in the spool for endpoints that are not given any more. They wait there in
 * case such an endpoint comes back, but count in the size of the spool: if it is full, the oldest
 * of them are dropped before any other request.
 */
#ifndef PROF_SEND_QUEUE_LEFTOVERS_H
#define PROF_SEND_QUEUE_LEFTOVERS_H

#include "tools/prof-send/queue/spool.h"

struct leftover {
	uint64_t key, serial, bytes, written_ns;
};
/* Zero-initialise; leftovers_done frees it. */
struct leftovers {
	struct leftover *list; /* the oldest first */
	size_t n, cap;
	size_t dropped; /* of them, from the beginning on */
	uint64_t bytes; /* of the rest */
};

/* Searches the folder for requests with other keys than these, and removes torn ones. Returns 0 or
 * -errno. */
int leftovers_find(const struct spool *s, const uint64_t *keys, size_t key_count,
		   struct leftovers *ret);
/* Drops the oldest ones until the rest has at most this many bytes. Returns how many it dropped. */
size_t leftovers_keep(struct leftovers *l, const struct spool *s, uint64_t max);
void leftovers_done(struct leftovers *l);

#endif
