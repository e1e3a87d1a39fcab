/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Interning of frames and stacks: each distinct one gets an id when it is first seen, so that the
 * stream defines it once. Two are equal only if all fields are. Ids start at 1 and are never
 * reused. At the limit the caller forgets all of them and begins a new epoch.
 */
#ifndef PROF_BPF_STREAM_INTERN_H
#define PROF_BPF_STREAM_INTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct intern;

struct intern_frame {
	uint64_t offset;	 /* file offset, or address */
	uint64_t mark;		 /* interpreted: the mark, as in the stream */
	uint32_t file, process;	 /* ids, or 0 */
	uint16_t kind, runtime;	 /* enum msg_frame_kind, enum runtime */
	uint32_t flags;		 /* enum msg_frame_flags */
	uint64_t object2, mark2; /* interpreted: address and mark of a second object; 0: none */
};

enum intern_verdict { INTERN_FULL = 1 };

/* ceiling: limit of bytes. Returns 0, -ENOMEM, or -EIO of getrandom. */
int intern_new(size_t ceiling, struct intern **ret);
void intern_free(struct intern *in);
/* Returns the size of everything that is interned, as it counts towards the limit. */
size_t intern_bytes(const struct intern *in);
/* Forgets everything. */
void intern_reset(struct intern *in);
/* Gives the id, and whether it is new. Returns 0, INTERN_FULL or -ENOMEM. */
int intern_frame(struct intern *in, const struct intern_frame *f, uint32_t *ret_id, bool *ret_new);
/* Prepares for looking up these frames soon, at most INTERN_EXPECTED: their places in the table are
 * fetched into the cpu's cache side by side, instead of one after the other. */
#define INTERN_EXPECTED 32u
void intern_expect(const struct intern *in, const struct intern_frame *f, uint32_t n);
/* Like intern_frame, for a stack. frames: ids, leaf first. */
int intern_stack(struct intern *in, const uint32_t *frames, uint32_t n, uint32_t reason,
		 uint32_t at_file, uint32_t *ret_id, bool *ret_new);
/* Like intern_frame, for a kernel function, by its start address. Its ids are separate. */
int intern_function(struct intern *in, uint64_t start, uint32_t *ret_id, bool *ret_new);
/* Interns the object of interpreted frames, which many of them share; it has no id. Only a hash is
 * stored, so about one new object in 100,000 is taken for a known one. */
int intern_object(struct intern *in, uint64_t process, uint64_t address, uint64_t check,
		  bool *ret_new);

#endif
