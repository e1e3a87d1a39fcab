/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copies (sealed.h) that are still open in this process or in another, and the memory that they
 * take. Each is charged to the owner for whom it was made (OWNER_COPIES), until its last descriptor
 * is closed.
 */
#ifndef PROF_BPF_OPEN_COPIES_H
#define PROF_BPF_OPEN_COPIES_H

#include <stdint.h>

#define COPIES_MAX 512		    /* copies at once; each costs a descriptor */
#define COPIES_LEAST (64u << 10)    /* less space than this counts as none */
#define COPIES_LOOK_NS 500000000ull /* interval between searches for closed copies */

struct owner;
struct owners;

struct copies {
	uint64_t max;	   /* limit of bytes for all together */
	uint64_t bytes;	   /* of those that exist */
	uint64_t reserved; /* bytes for copies that are being made */
	uint64_t looked_ns;
	struct owners *owners;
	unsigned count;
	struct copy_kept {
		int probe;
		uint64_t bytes;
		struct owner *owner;
	} * at;
};

/* max: limit of bytes. Returns 0 or -ENOMEM. */
int copies_init(struct copies *c, uint64_t max);
void copies_done(struct copies *c);
/* Sets the ledger to charge; NULL: forgets it, with all owners. */
void copies_charge(struct copies *c, struct owners *owners);
/* Returns how much memory a copy for an owner (NULL: no owner) may take: what is left, or the
 * owner's fair share if little is left. 0: none; then the owner counts as refused. */
uint64_t copies_room(struct copies *c, struct owner *owner);
/* Records a copy, and owns its probe from then on. */
void copies_add(struct copies *c, int probe, uint64_t bytes, struct owner *owner);
/* Forgets copies that are not open anywhere any more. */
void copies_look(struct copies *c, uint64_t now_ns);

#endif
