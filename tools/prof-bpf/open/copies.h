/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copies (sealed.h) that somebody still has open, in this process or in another, and the memory
 * that they take. Each is charged to the owner for whom it was made (OWNER_COPIES), until its last
 * descriptor is closed.
 */
#ifndef PROF_BPF_OPEN_COPIES_H
#define PROF_BPF_OPEN_COPIES_H

#include <stdint.h>

#define COPIES_MAX 512		    /* at once; each costs a descriptor */
#define COPIES_LEAST (64u << 10)    /* room below this is none */
#define COPIES_LOOK_NS 500000000ull /* how often to look for those that were closed */

struct owner;
struct owners;

struct copies {
	uint64_t max;	   /* bytes of all together */
	uint64_t bytes;	   /* of those that exist */
	uint64_t reserved; /* for those that are being made */
	uint64_t looked_ns;
	struct owners *owners;
	unsigned count;
	struct copy_kept {
		int probe;
		uint64_t bytes;
		struct owner *owner;
	} * at;
};

/* -ENOMEM. */
int copies_init(struct copies *c, uint64_t max);
void copies_done(struct copies *c);
/* The ledger to charge; NULL: forgets it, with all owners. */
void copies_charge(struct copies *c, struct owners *owners);
/* Memory that a copy for an owner (NULL: nobody) may take: what is left, and the owner's fair share
 * if little is. 0: none; the owner was refused. */
uint64_t copies_room(struct copies *c, struct owner *owner);
/* Notes a copy. Takes its probe. */
void copies_add(struct copies *c, int probe, uint64_t bytes, struct owner *owner);
/* Forgets those that nobody has open any more. */
void copies_look(struct copies *c, uint64_t now_ns);

#endif
