/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ledger: how much each owner holds of scarce resources, so that no owner deprives the others.
 *
 * An owner is the user of a process, or the user who made its user namespace, within one container
 * (struct sample: owner_uid, owner_container). Costs are charged to the owner of the process that
 * causes them, not to the owner of a file that it uses.
 *
 * A resource is divided only when it is scarce. Then owners with more than a fair share lose some
 * to owners with less. There are two kinds of resources: those that are held and given back
 * (slots), and those that are spent (cpu time), which the ledger gradually forgets.
 */
#ifndef PROF_BPF_OWNERS_OWNERS_H
#define PROF_BPF_OWNERS_OWNERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "common/base/tables/hashtable.h"

#define OWNERS_MAX 4096
#define OWNERS_HALVED_NS 30000000000ull /* after this time, spent resources count half */

enum owner_resource {
#define OWNER_RESOURCE(NAME, name, text) OWNER_##NAME,
#include "tools/prof-bpf/owners/resources.def"
#undef OWNER_RESOURCE
	OWNER_RESOURCES,
};

/* Samples of an owner that prof-bpf lost. */
enum owner_loss { OWNER_LOST_QUEUE_FULL, OWNER_LOST_CPU_LIMIT, OWNER_LOST_LIMIT, OWNER_LOSSES };

/* Budgets of an owner's time (timebudget.h). */
enum owner_budget {
	OWNER_BUDGET_MAPS,	 /* mappings (host/shares/mapping_turns.h), */
	OWNER_BUDGET_SMALL_MAPS, /* and those of small processes beyond that */
	OWNER_BUDGET_WALKS,	 /* deferred walks (stream/walk_turns.h) */
	OWNER_BUDGET_OFFERS,	 /* offers of files (peers/offers.h) */
	OWNER_BUDGETS,
};

struct owner_key {
	uint32_t uid, container;
};

struct owner {
	struct owner_key key;
	uint32_t number;    /* from 1 to OWNERS_MAX - 1; another owner may get it later */
	uint32_t processes; /* number of processes and other objects that refer to it */
	uint64_t held[OWNER_RESOURCES];
	uint64_t spent_ns[OWNER_RESOURCES]; /* as of the time in `period` */
	uint64_t refused[OWNER_RESOURCES];  /* how often it did not get what it asked for */
	uint64_t lost[OWNER_LOSSES];	    /* losses that owners_tell_losses must still report */
	uint64_t period;
	uint64_t paid_ns[OWNER_BUDGETS]; /* when each budget covers what it spent */
	uint64_t caused; /* bytes of the stream, and of memory, that its samples needed so far */
	uint64_t tick, tick_spent_ns; /* spent on small processes in this tick of the host */
	uint64_t searched_in; /* the last search for a file's processes (host/lookups/mappers.h), */
	uint32_t search_left; /* and how many of its mappings this one may still look at */
	UT_hash_handle hh;
	struct owner *prev, *next; /* list of owners without references, oldest first */
};

/* Returns the owner as it is written in the stream. */
static inline uint64_t owner_word(const struct owner *w)
{
	return (uint64_t)w->key.container << 32 | w->key.uid;
}

#define OWNER_TEXT 48
/* Writes `user 5`, or with a container `user 5 (container 7)`, or `profpipe (user 2000000001)` for
 * its own tools, for messages. Returns `to`. */
const char *owner_text(const struct owner *w, char to[static OWNER_TEXT]);

struct owners;
struct subids;

/* Makes an empty ledger; the caller owns *ret. Returns 0 or -ENOMEM. */
int owners_new(struct owners **ret);
void owners_free(struct owners *o);
/* From now on, subordinate ids count as the owner that stands for them. s is borrowed. */
void owners_fold(struct owners *o, const struct subids *s);
/* Returns the key under which the owner with this key is known. */
struct owner_key owners_key(const struct owners *o, struct owner_key key);
/* Returns the owner with this key, with a reference for owner_put. Never NULL: if there are too
 * many owners, or no memory, it is the owner that stands for all others. */
struct owner *owners_get(struct owners *o, struct owner_key key);
struct owner *owner_get(struct owner *w);
/* Returns the owner with this key, without a reference; NULL: it is not known. */
const struct owner *owners_find(const struct owners *o, struct owner_key key);
void owner_put(struct owners *o, struct owner *w);
/* Returns the owner with this number, or NULL. */
struct owner *owners_numbered(const struct owners *o, uint32_t number);

/* The owner takes n more of a resource, or gives n back. */
void owner_hold(struct owners *o, struct owner *w, enum owner_resource t, uint64_t n);
void owner_release(struct owners *o, struct owner *w, enum owner_resource t, uint64_t n);
/* Records that the owner has spent this much time. */
void owner_spend(struct owner *w, enum owner_resource t, uint64_t ns, uint64_t now_ns);
/* Returns the part of that time that still counts. */
uint64_t owner_spent(const struct owner *w, enum owner_resource t, uint64_t now_ns);
/* Divides the time that owners may spend (turns.h) by this, which is at least 1. */
void owners_set_pace(struct owners *o, unsigned pace);
unsigned owners_pace(const struct owners *o);
/* Returns the sum that all owners hold of a resource. */
uint64_t owners_held(const struct owners *o, enum owner_resource t);
/* Records that the owner did not get n of a resource. */
void owner_refuse(struct owner *w, enum owner_resource t, uint64_t n);

/* Records that a sample of the owner with this key was lost. */
void owners_lose(struct owners *o, struct owner_key key, enum owner_loss l);
/* Calls tell for each owner and kind with the losses since the last call. An owner that was
 * forgotten in between is left out. */
void owners_tell_losses(struct owners *o,
			void (*tell)(void *ctx, const struct owner *w, enum owner_loss l,
				     uint64_t n),
			void *ctx);

/* Returns the fair share (fairshare.h) of `all`. taker counts as one who wants more; NULL: none
 * does. */
uint64_t owners_share(const struct owners *o, const struct owner *taker, enum owner_resource t,
		      uint64_t all);
/* Returns the owner that holds most of a resource; NULL: none holds any. */
struct owner *owners_largest(const struct owners *o, enum owner_resource t);
/* Calls fn for each owner. */
void owners_each(const struct owners *o, void (*fn)(void *ctx, const struct owner *w), void *ctx);

#endif
