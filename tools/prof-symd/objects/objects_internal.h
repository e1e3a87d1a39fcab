/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by objects.c, which keeps objects and names them, and objects_asking.c, which has their
 * memory read. */
#ifndef PROFPIPE_OBJECTS_INTERNAL_H
#define PROFPIPE_OBJECTS_INTERNAL_H

#include "common/base/idmap.h"
#include "tools/prof-symd/objects/object_names.h"
#include "tools/prof-symd/objects/objects.h"

#define OBJECTS_NO_SLOT UINT32_MAX
#define OBJECTS_MAX_ROUNDS 6
#define OBJECTS_RESERVED \
	256 /* of OBJECTS_READING: for those that are waited for, not wanted ahead */

enum object_state { OBJECT_READING = 1, OBJECT_NAMED, OBJECT_GONE, OBJECT_REFUSED };

/* What is held of one while it is read. */
struct reading {
	struct object_memory memory;
	const struct runtime_build *build; /* borrowed */
	uint32_t serial;		   /* of this reading */
	unsigned rounds;
	struct object_names *taken; /* what it is called if no more can be read; NULL: nothing */
	size_t taken_bytes;
};

/* What came ahead of an object's frame. */
struct taken {
	uint64_t key, process, address, check;
	struct object_memory *memory; /* NULL: nothing did */
};

struct object {
	uint64_t address, since_ns;
	uint64_t check : 40; /* as in a mark */
	enum object_state state : 8;
	uint32_t process;	/* its slot */
	uint32_t bytes;		/* charged */
	uint32_t prev, next;	/* by use: the newest first */
	uint32_t of_process[2]; /* the one before and behind of the same process */
	union {
		struct reading *reading;    /* OBJECT_READING */
		struct object_names *names; /* OBJECT_NAMED */
	};
};

struct sent {
	uint32_t object, serial, piece;
};

struct process {
	uint64_t id, request, asked_ns, refused_ns;
	uint64_t not_before_ns;	      /* after an answer that it was too much */
	uint32_t pid, first, reading; /* objects: the first, how many are read */
	uint32_t next_dirty;
	bool dirty, used;
	bool sampled; /* since objects_renew */
	uint32_t sent_count;
	struct sent *sent; /* while a request is under way */
};

struct objects {
	int (*ask)(void *, const struct objects_request *);
	void *ctx;
	struct idmap by_key, by_process, by_request, by_taken;
	struct taken *taken; /* OBJECTS_TAKEN: a ring, made with the first */
	uint32_t taken_next;
	uint64_t seed;
	struct object *at;
	uint32_t len, cap, free_slot; /* free ones by `next` */
	uint32_t newest, oldest;
	struct process *processes;
	uint32_t process_len, process_cap, free_process; /* free ones by next_dirty */
	uint32_t dirty_first, dirty_last;
	uint32_t reading, serial;
	size_t bytes, reading_bytes, budget;
	uint64_t next_request, first_ns; /* first_ns: no object was begun before; 0: none is read */
	uint64_t retry_ns;		 /* when the first not_before_ns is over; 0: none */
	struct runtime_object scratch;
	struct object_sources sources;
	struct objects_counts counts;
	uint64_t addresses[OBJECTS_PIECES], lengths[OBJECTS_PIECES];
};

/* It is no longer read. */
void objects_stop_reading(struct objects *o, struct object *e, enum object_state state,
			  uint64_t now_ns);
void objects_set_dirty(struct objects *o, struct process *p);
void objects_forget_request(struct objects *o, struct process *p);
/* As far as what was read allows. -ENOMEM. */
int objects_try_name(struct objects *o, uint32_t i, uint64_t now_ns);

#endif
