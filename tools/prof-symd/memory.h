/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was read of a process's memory to name one object, and what is still wanted. A runtime's
 * reader starts from the beginning each time that more is there, and asks as if all of it were: so
 * it is written as one that reads memory, and all that it wants at one time becomes one round.
 */
#ifndef PROFPIPE_MEMORY_H
#define PROFPIPE_MEMORY_H

#include <stdbool.h>
#include "common/buf.h"

#define MEMORY_PIECES 16
#define MEMORY_BYTES (96u << 10) /* of one object */

struct memory_piece {
	uint64_t address;
	uint32_t wanted;   /* bytes */
	uint32_t have, at; /* once read: bytes, and where in `bytes` */
	bool read;
};

/* Zero-initialise. */
struct memory {
	struct memory_piece pieces[MEMORY_PIECES];
	unsigned count;
	uint32_t total;	  /* of all wanted */
	bool whole;	  /* there is no more: nothing is wanted, */
	bool lacked;	  /* and something would have been */
	struct buf bytes; /* owned */
};

enum memory_verdict {
	MEMORY_WANTED = 1, /* not read yet */
	MEMORY_NONE = 2,   /* cannot be read, or is more than is read of one object */
};

void memory_done(struct memory *m);
/* n bytes at address, borrowed until memory_put. guess: how many to read when they were not: what
 * follows will be needed. 0, enum memory_verdict. */
int memory_get(struct memory *m, uint64_t address, uint32_t n, uint32_t guess, const uint8_t **ret);
/* Bytes that were read already, without being wanted. 0, -ENOMEM; too many pieces are left out. */
int memory_add(struct memory *m, uint64_t address, struct span bytes);
/* The next piece at or behind *i that is wanted; false: none. */
bool memory_next(const struct memory *m, unsigned *i);
/* Bytes of piece i from its beginning. 0, -ENOMEM. */
int memory_put(struct memory *m, unsigned i, struct span bytes);

#endif
