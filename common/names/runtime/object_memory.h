/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a process that names one object: pieces that were read, and pieces that are still
 * wanted. A runtime's reader starts from the beginning each time more is there, and asks as if all
 * of it were. So it is written as if it read memory, and all pieces that it wants at one time are
 * asked for in one round.
 */
#ifndef PROFPIPE_OBJECT_MEMORY_H
#define PROFPIPE_OBJECT_MEMORY_H

#include <stdbool.h>
#include "common/base/buf.h"

#define OBJECT_MEMORY_PIECES 16
#define OBJECT_MEMORY_BYTES (96u << 10) /* of one object */

struct object_memory_piece {
	uint64_t address;
	uint32_t wanted;   /* bytes */
	uint32_t have, at; /* once read: bytes, and where in `bytes` */
	bool read;
};

/* Zero-initialise. */
struct object_memory {
	struct object_memory_piece pieces[OBJECT_MEMORY_PIECES];
	unsigned count;
	uint32_t total;	  /* of all wanted */
	bool whole;	  /* there is no more: nothing is wanted, */
	bool lacked;	  /* and something would have been */
	struct buf bytes; /* owned */
};

enum object_memory_verdict {
	OBJECT_MEMORY_WANTED = 1, /* not read yet */
	OBJECT_MEMORY_NONE = 2,	  /* cannot be read, or is more than is read of one object */
};

void object_memory_done(struct object_memory *m);
/* n bytes at address, borrowed until object_memory_put. guess: how many to read if they are not
 * there yet, because those that follow will be needed. 0, enum object_memory_verdict. */
int object_memory_get(struct object_memory *m, uint64_t address, uint32_t n, uint32_t guess,
		      const uint8_t **ret);
/* Bytes that were read already, without being wanted. 0, -ENOMEM; too many pieces are left out. */
int object_memory_add(struct object_memory *m, uint64_t address, struct span bytes);
/* The next piece at or behind *i that is wanted; false: none. */
bool object_memory_next(const struct object_memory *m, unsigned *i);
/* Bytes of piece i from its beginning. 0, -ENOMEM. */
int object_memory_put(struct object_memory *m, unsigned i, struct span bytes);

#endif
