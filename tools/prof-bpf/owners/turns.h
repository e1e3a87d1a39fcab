/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns: whose work comes next, where any user can cause any amount of work. Each owner has a part
 * of the time, and all together have another. An owner that has used up its part waits while the
 * others continue. Owners who spent little recently may exceed the common part.
 *
 * If all tools together need too much time (limit/throttle.h), the pace divides all parts.
 *
 * An owner that has used up its part may have another part for its small work. Otherwise one large
 * piece of work could use up its time, and its small ones would never be done.
 */
#ifndef PROF_BPF_OWNERS_TURNS_H
#define PROF_BPF_OWNERS_TURNS_H

#include "tools/prof-bpf/owners/owners.h"

/* 1/part of the time, which the budget of an owner or of all measures. */
struct turns_part {
	enum owner_budget budget; /* of an owner */
	unsigned part;		  /* 0: there is no such part */
};

/* The rules for one kind of work. */
struct turns {
	enum owner_resource resource; /* counts the time that an owner spent */
	struct turns_part owner, small;
	unsigned all_part;
	unsigned pace;	    /* owners_pace */
	uint64_t saved_ns;  /* unused time accumulates up to this */
	uint64_t little_ns; /* an owner who recently spent no more never waits for the others */
};

/* Whether the owner may spend time now. small: on small work. all_paid_ns: the budget of all
 * (timebudget.h). debt_ns: the time may be this much ahead of the time that pays for it. */
bool turns_may(const struct turns *t, const struct owner *w, bool small, uint64_t all_paid_ns,
	       uint64_t debt_ns, uint64_t now_ns);
/* Charges this much time to the owner, and to the budget of all. */
void turns_spend(const struct turns *t, struct owner *w, bool small, uint64_t *all_paid_ns,
		 uint64_t ns, uint64_t now_ns);

#endif
