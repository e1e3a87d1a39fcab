/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of interpreted frames. What the runtimes' readers (runtime.h) want of processes' memory is
 * asked for by batches, one under way of each process, and what comes of it is kept: least recently
 * used first when it is more than OBJECTS_MAX or the budget.
 *
 * An object that could not be read stays without a name: another may lie there now, and what its
 * address means is not asked again for OBJECTS_RETRY_NS.
 */
#ifndef PROFPIPE_OBJECTS_H
#define PROFPIPE_OBJECTS_H

#include "common/wire/msg.h"
#include "common/names/names.h"
#include "common/names/runtime/runtime.h"

#define OBJECTS_MAX (1u << 16)
#define OBJECTS_BUDGET (8u << 20)     /* bytes of objects with names */
#define OBJECTS_READING 4096	      /* objects that are read at one time */
#define OBJECTS_PROCESSES 4096	      /* processes that are asked for at one time */
#define OBJECTS_WAIT_NS 1000000000ull /* for all of one object */
#define OBJECTS_RETRY_NS 10000000000ull
#define OBJECTS_AGAIN_NS 50000000ull /* after an answer that it was too much for now */
#define OBJECTS_PIECES 256	     /* of one request */
#define OBJECTS_BYTES (128u << 10)   /* of one request */
#define OBJECTS_TAKEN 512	     /* that no frame is of yet */
#define OBJECTS_REQUEST (1ull << 62) /* in the ids of all requests, and in no others */

struct objects_request {
	uint64_t id, process;
	uint32_t pid;
	struct u64s addresses, lengths; /* borrowed during the call */
};

enum objects_verdict {
	OBJECTS_LATER = 1,   /* it is being read */
	OBJECTS_HIDDEN = 2,  /* the runtime's own, no frame of the program */
	OBJECTS_UNNAMED = 3, /* why is said in place of a name; it may have one later */
};

struct objects;

/* ask sends a request, which objects_answer will answer, during the call or later. 0; -EAGAIN: not
 * now; another -errno: never. -errno. */
int objects_new(int (*ask)(void *, const struct objects_request *), void *ctx,
		struct objects **ret);
/* Bytes of objects with names, where it is not to be OBJECTS_BUDGET; twice as much may be held of
 * what is being read. */
void objects_budget(struct objects *o, size_t bytes);
void objects_free(struct objects *o);
/* Asks ahead, with the next objects_send. */
void objects_want(struct objects *o, const struct runtime_build *b, uint64_t process, uint32_t pid,
		  uint64_t address, uint64_t mark, uint64_t now_ns);
/* What an object is called and the line of the mark's position, or why that is not known; give_up:
 * it is not waited for. 0, enum objects_verdict, -ENOMEM. */
int objects_lookup(struct objects *o, const struct runtime_build *b, uint64_t process, uint32_t pid,
		   uint64_t address, uint64_t mark, bool give_up, uint64_t now_ns,
		   struct names *ret);
/* Asks for what is wanted; gives up what is overdue. */
int objects_send(struct objects *o, uint64_t now_ns);
/* What lay at an object when its frame was sampled first, before the frame itself: it is named from
 * that, where it is enough, and without its lines where the object is gone by the time that more is
 * asked for. The OBJECTS_TAKEN last are kept until they are wanted, but for those that have names
 * already. -ENOMEM. */
int objects_take(struct objects *o, const struct msg_object *m);
/* True where the id is one of ours. -ENOMEM. */
int objects_answer(struct objects *o, const struct msg_memory_answer *m, uint64_t now_ns);
/* The process is gone. */
void objects_drop(struct objects *o, uint64_t process);
/* The builds are void from here on, and asked for anew what is being read; names are not, since
 * those of code that is freed cannot be had again. Processes that had no frame since the last time
 * are dropped: nobody may have said that they ended. */
void objects_renew(struct objects *o, uint64_t now_ns);
/* When objects_send has something to give up, 0: never. */
uint64_t objects_deadline(const struct objects *o);

struct objects_counts {
	uint64_t named, gone, refused, evicted, requests, pieces, bytes, rounds;
	uint64_t answers, waited_ns, least_ns; /* from asking to the answer: all, and the fastest */
	size_t kept, held_bytes;
};
struct objects_counts objects_counts(const struct objects *o);

#endif
