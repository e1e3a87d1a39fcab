/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of struct objects, for objects.c, which keeps and names objects, and objects_asking.c,
 * which requests their memory. */
#ifndef PROF_SYMD_OBJECTS_OBJECTS_INTERNAL_H
#define PROF_SYMD_OBJECTS_OBJECTS_INTERNAL_H

#include "common/base/shares/holdings.h"
#include "common/base/tables/idmap.h"
#include "tools/prof-symd/objects/copies.h"
#include "tools/prof-symd/objects/object_names.h"
#include "tools/prof-symd/objects/objects.h"

#define OBJECTS_NO_SLOT UINT32_MAX
/* Places out of OBJECTS_READING that are kept for objects that samples wait for, and not given to
 * those requested in advance. */
#define OBJECTS_RESERVED 256

enum object_state { OBJECT_READING = 1, OBJECT_NAMED, OBJECT_GONE, OBJECT_REFUSED };

/* An object while it is being read. */
struct objects_reading {
	struct object_memory memory;
	const struct runtime_build *build; /* borrowed */
	uint32_t serial;		   /* number of this reading */
	unsigned rounds, attempts;
	struct copy_names copied; /* its names if no more memory can be read */
	bool asked;		  /* it has a key, and another copy was requested */
};

struct object {
	uint64_t address, since_ns;
	uint64_t check : 40; /* as in a mark */
	enum object_state state : 8;
	uint64_t failures : 8;	/* failed attempts to read it */
	bool late : 1;		/* OBJECT_GONE: its memory did not come in time */
	uint32_t process;	/* slot of its process */
	uint32_t bytes;		/* bytes that are charged */
	uint32_t prev, next;	/* list of all objects, most recently used first */
	uint32_t of_process[2]; /* the previous and the next object of the same process */
	union {
		struct objects_reading *reading; /* OBJECT_READING */
		struct object_names *names;	 /* OBJECT_NAMED */
	};
};

struct objects_sent {
	uint32_t object, serial, piece;
};

struct objects_process {
	uint64_t id, owner, request, asked_ns, refused_ns;
	uint64_t not_before_ns;	      /* set after an answer that reports an exceeded rate */
	uint32_t pid, first, reading; /* objects: the first one, and how many are being read */
	uint32_t next_dirty;
	bool dirty, used;
	bool sampled; /* had a frame since the last objects_renew */
	uint32_t sent_count;
	struct objects_sent *sent; /* NULL if no request is open */
};

struct objects {
	int (*ask)(void *, const struct objects_request *);
	void *ctx;
	struct idmap by_key, by_process, by_request;
	struct copies copies;
	struct forgotten forgotten;
	enum unnamed_reason why; /* as objects_why says */
	uint64_t seed;
	struct object *at;
	uint32_t len, cap, free_slot; /* free slots are linked by `next` */
	uint32_t newest, oldest;
	struct objects_process *processes;
	uint32_t process_len, process_cap, free_process; /* free slots are linked by next_dirty */
	uint32_t process_hand; /* the search for a process to forget continues here */
	uint32_t dirty_first, dirty_last;
	uint32_t reading, serial;
	/* budget, most_reading: limits of `bytes` and reading_bytes. */
	size_t bytes, reading_bytes, budget, most_reading, most_copies;
	uint64_t next_request;
	uint64_t first_ns; /* no current reading began before this; 0: no object is being read */
	uint64_t retry_ns; /* when the earliest not_before_ns is over; 0: none */
	struct runtime_object scratch;
	struct names *second; /* used by objects_lookup_second; NULL before its first call */
	struct object_names_sources sources;
	uint64_t (*owner_of)(void *ctx, uint64_t process); /* may be NULL */
	void *owner_ctx;
	struct holdings held_by; /* in bytes */
	struct holdings places_reading, places_asked, places_known;
	bool forbidden; /* reading memory is forbidden */
	struct objects_counts counts;
	uint64_t addresses[OBJECTS_PIECES], lengths[OBJECTS_PIECES];
};

/* Ends the reading of an object. OBJECT_GONE: not because it took too long. */
void objects_stop_reading(struct objects *o, struct object *e, enum object_state state,
			  uint64_t now_ns);
/* Whether only a copy can name the object, and it had one that did not fit. */
bool objects_lacks_copy(const struct objects *o, const struct object *e);
void objects_set_dirty(struct objects *o, struct objects_process *p);
void objects_forget_request(struct objects *o, struct objects_process *p);
/* Names object i if the memory that was read is enough; otherwise it stays as it is. Returns 0 or
 * -ENOMEM. */
int objects_try_name(struct objects *o, uint32_t i, uint64_t now_ns);

#endif
