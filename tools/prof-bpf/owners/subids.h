/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subordinate ids (subuid(5)): a user may have blocks of them, each usually of 65,536. A
 * set-user-ID program of such an id runs as an ordinary process of that id. So the ids of all
 * blocks of one user count as one owner, which has the lowest of them.
 */
#ifndef PROF_BPF_OWNERS_SUBIDS_H
#define PROF_BPF_OWNERS_SUBIDS_H

#include <stddef.h>
#include <stdint.h>

/* All zero at first: no ids. */
struct subids {
	struct subids_block {
		uint64_t user; /* a hash of its name */
		uint32_t first, last, as;
	} * blocks; /* sorted by first; owned */
	size_t len;
};

/* Adds the blocks of a text in the form of /etc/subuid: "user:first:count" in each line. Skips
 * other lines. Returns 0 or -ENOMEM. */
int subids_add(struct subids *s, const char *text);
/* Reads /etc/subuid anew, and in a container also that of the host. Without the files there are no
 * such ids. Returns 0, or -ENOMEM: *s stays as it is. */
int subids_read(struct subids *s);
/* Returns the id that stands for this one: itself, unless it is in a block. */
uint32_t subids_owner(const struct subids *s, uint32_t uid);
void subids_done(struct subids *s);

#endif
