/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a process that is needed to name one object: pieces that were read, and pieces that
 * are still wanted. A runtime's reader (struct runtime_ops, name) is written as if all memory were
 * available. If pieces are missing, it is started again after they have come. So each round
 * requests all pieces that the reader wants at one time.
 */
#ifndef COMMON_NAMES_RUNTIME_OBJECT_MEMORY_H
#define COMMON_NAMES_RUNTIME_OBJECT_MEMORY_H

#include <stdbool.h>
#include "common/base/bytes/buf.h"

#define OBJECT_MEMORY_PIECES 64
#define OBJECT_MEMORY_BYTES (96u << 10) /* limit for one object */

struct object_memory_piece {
	uint64_t address;
	uint32_t wanted;   /* bytes */
	uint32_t have, at; /* once read: how many bytes, and their offset in `bytes` */
	bool read;
};

/* Zero-initialise. */
struct object_memory {
	/* Finds the memory that was copied for another object of the process. Set by the caller, or
	 * NULL. The result is borrowed. */
	struct object_memory *(*other)(void *ctx, uint64_t address, uint64_t check);
	void *other_ctx;
	struct object_memory_piece *pieces; /* owned */
	unsigned count, cap;
	uint32_t total;	  /* bytes wanted by all pieces */
	bool whole;	  /* set by the caller: no more memory will come, so no pieces are wanted */
	bool lacked;	  /* the reader wanted more although `whole` was set */
	struct buf bytes; /* owned */
};

enum object_memory_verdict {
	OBJECT_MEMORY_WANTED = 1, /* not read yet */
	OBJECT_MEMORY_NONE = 2,	  /* unreadable, beyond the limits above, or no memory is left */
};

void object_memory_done(struct object_memory *m);
/* Finds n bytes at address, borrowed until object_memory_put. guess: how many bytes to request if
 * they are not there yet; more than n if the reader will need those that follow. Returns 0 or enum
 * object_memory_verdict. */
int object_memory_get(struct object_memory *m, uint64_t address, uint32_t n, uint32_t guess,
		      const uint8_t **ret);
/* Returns at most n bytes from an address on that were copied or read; borrowed. Requests
 * nothing. */
struct span object_memory_have(const struct object_memory *m, uint64_t address, uint32_t n);
/* Returns the copy of another object, borrowed, or NULL. */
struct object_memory *object_memory_other(const struct object_memory *m, uint64_t address,
					  uint64_t check);
/* Adds bytes that were read before they were requested. Pieces beyond the limits are ignored.
 * Returns 0 or -ENOMEM. */
int object_memory_add(struct object_memory *m, uint64_t address, struct span bytes);
/* Finds the next wanted piece from *i on. Returns false if there is none. */
bool object_memory_next(const struct object_memory *m, unsigned *i);
/* Stores the bytes that were read of piece i, from its start on. Returns 0 or -ENOMEM. */
int object_memory_put(struct object_memory *m, unsigned i, struct span bytes);

#endif
