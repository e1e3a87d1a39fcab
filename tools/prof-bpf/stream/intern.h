/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames and stacks by content: each gets an id the first time it is seen, so that the stream
 * defines it once. Two are the same only if every field is. Ids start at 1 and are not given back
 * until all are forgotten, which whoever owns it does when the ceiling is reached, with a new
 * epoch.
 */
#ifndef PROFPIPE_INTERN_H
#define PROFPIPE_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct intern;

struct intern_frame {
	uint64_t offset;	/* file offset, or address */
	uint64_t mark;		/* interpreted: as in the stream */
	uint32_t file, process; /* ids, or 0 */
	uint16_t kind, runtime; /* enum frame_kind, enum runtime */
	uint32_t flags;		/* enum frame_flags */
};

enum intern_verdict { INTERN_FULL = 1 };

/* ceiling: bytes. -ENOMEM, -EIO of getrandom. */
int intern_new(size_t ceiling, struct intern **ret);
void intern_free(struct intern *in);
/* Forgets everything. */
void intern_reset(struct intern *in);
/* 0 with the id, and whether this is the first time; INTERN_FULL; -ENOMEM. */
int intern_frame(struct intern *in, const struct intern_frame *f, uint32_t *ret_id, bool *ret_new);
/* frames: ids, leaf first. The same results. */
int intern_stack(struct intern *in, const uint32_t *frames, uint32_t n, uint32_t reason,
		 uint32_t at_file, uint32_t *ret_id, bool *ret_new);
/* A kernel function by its start address: an id of its own. */
int intern_function(struct intern *in, uint64_t start, uint32_t *ret_id, bool *ret_new);
/* What interpreted frames are in, which many of them share: it has no id. A hash alone is kept:
 * one in some 100,000 that is new is said not to be. */
int intern_object(struct intern *in, uint64_t process, uint64_t address, uint64_t check,
		  bool *ret_new);

#endif
