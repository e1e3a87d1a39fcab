/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of interpreted frames: a cache of named objects. The runtimes' readers (runtime.h) need
 * memory of processes, which is requested in batches, at most one at a time for each process.
 * Beyond OBJECTS_MAX or the budget, objects are evicted: the least recently used ones of owners
 * whose objects take more memory than the average. Owners also share the places for objects that
 * are read, requested or known at one time: an owner may have as many as are still free, and loses
 * places to an owner with fewer.
 *
 * An object that could not be read stays without a name, since another object may be there by now.
 * Its address is not tried again for a while: OBJECTS_SOON_NS, later up to OBJECTS_RETRY_NS.
 */
#ifndef PROF_SYMD_OBJECTS_OBJECTS_H
#define PROF_SYMD_OBJECTS_OBJECTS_H

#include "bpf/reasons.h"
#include "common/names/names.h"
#include "common/names/runtime/runtime.h"
#include "common/wire/msg.h"

#define OBJECTS_MAX (1u << 16)
#define OBJECTS_BUDGET (32u << 20) /* bytes of all objects */
/* Objects being read at one time; half of them for one owner. */
#define OBJECTS_READING 8192
#define OBJECTS_PROCESSES 4096	      /* processes known at one time */
#define OBJECTS_WAIT_NS 1000000000ull /* timeout of reading one object */
#define OBJECTS_SOON_NS 100000000ull
#define OBJECTS_RETRY_NS 10000000000ull
/* Attempts to read one object, if prof-bpf does not give all of it. */
#define OBJECTS_ATTEMPTS 4
#define OBJECTS_AGAIN_NS 50000000ull /* wait after an answer that reports an exceeded rate */
#define OBJECTS_IN_FLIGHT 32	     /* requests at a time; half of them for one owner */
#define OBJECTS_PIECES 256	     /* pieces of one request */
#define OBJECTS_BYTES (128u << 10)   /* bytes of one request */
/* Set in the ids of all requests from here, and in no others. */
#define OBJECTS_REQUEST (1ull << 62)

struct objects_request {
	uint64_t id, process;
	uint32_t pid;
	struct msg_list addresses, lengths; /* borrowed during the call */
};

enum objects_verdict {
	OBJECTS_LATER = 1,   /* the object is being read */
	OBJECTS_HIDDEN = 2,  /* internal to the runtime, not a frame of the program */
	OBJECTS_UNNAMED = 3, /* the name is a reason instead; it may get a name later */
};

struct objects;

/* ask: sends a request; the answer must be passed to objects_answer, during the call or later. ask
 * returns 0; -EAGAIN: try again later; another -errno: the request cannot be sent at all. Returns 0
 * or -errno. */
int objects_new(int (*ask)(void *, const struct objects_request *), void *ctx,
		struct objects **ret);
/* From now on, objects are charged to the owners of their processes. Without this, all have one
 * owner. */
void objects_owners(struct objects *o, uint64_t (*owner_of)(void *ctx, uint64_t process),
		    void *ctx);
/* Sets whether reading memory is forbidden. Then no object has a name, and none is requested. */
void objects_forbid(struct objects *o, bool forbid);
/* Sets the limit in bytes, instead of OBJECTS_BUDGET: most of it for named objects, an eighth for
 * objects that are being read, and a sixteenth for copies. */
void objects_budget(struct objects *o, size_t bytes);
/* Drops all copies: an allocation failed. */
void objects_relieve(struct objects *o);
void objects_free(struct objects *o);
/* Requests an object in advance; the next objects_send sends the request. */
void objects_want(struct objects *o, const struct runtime_build *b, uint64_t process, uint32_t pid,
		  uint64_t address, uint64_t mark, uint64_t now_ns);
/* Looks up an object's name and the line of the mark's position, or the reason why it has none.
 * give_up: do not wait for the object. Returns 0, enum objects_verdict or -ENOMEM. */
int objects_lookup(struct objects *o, const struct runtime_build *b, uint64_t process, uint32_t pid,
		   uint64_t address, uint64_t mark, bool give_up, uint64_t now_ns,
		   struct names *ret);
/* Returns why the last look-up returned OBJECTS_UNNAMED; 0: the memory may not be read. */
enum unnamed_reason objects_why(const struct objects *o);
/* Looks up the second object of a frame, whose first object has the names in *names, and joins
 * both. The second one's name comes before the first one's. If it has source and line, they replace
 * the first one's. Returns 0: done, or the second object has no name; OBJECTS_LATER; or -ENOMEM. */
int objects_lookup_second(struct objects *o, const struct runtime_build *b, uint64_t process,
			  uint32_t pid, uint64_t address, uint64_t mark, bool give_up,
			  uint64_t now_ns, struct names *names);
/* Sends requests, and gives up overdue objects. */
int objects_send(struct objects *o, uint64_t now_ns);
/* Takes a copy of an object's memory, which was made at its first sample and comes before the
 * frame. The object is named from the copy if that is enough. If not, and the object is gone when
 * more memory is read, it is named without lines. An empty copy means that the process's memory may
 * not be read. Copies of objects without names are kept until they are needed (copies.h). Returns 0
 * or -ENOMEM. */
int objects_take(struct objects *o, const struct msg_object *m);
/* Takes an answer to a request. Returns 0 or -ENOMEM. */
int objects_answer(struct objects *o, const struct msg_memory_answer *m, uint64_t now_ns);
/* Forgets a process that ended. */
void objects_drop(struct objects *o, uint64_t process);
/* Forgets all builds, since their owner frees them, and restarts the reading of objects. Keeps
 * names, since those of freed code would be lost. Drops processes that had no frame since the last
 * call, since their end may not have been reported. */
void objects_renew(struct objects *o, uint64_t now_ns);
/* Forgets a build that its owner is about to free. Objects that are being read with it are given
 * up. */
void objects_forget_build(struct objects *o, const struct runtime_build *b, uint64_t now_ns);
/* Returns when objects_send has something to do next; 0: nothing. */
uint64_t objects_deadline(const struct objects *o);

struct objects_counts {
	uint64_t named, gone, refused, evicted, requests, pieces, bytes, rounds;
	uint64_t answers, waited_ns, least_ns; /* time from request to answer: sum, and shortest */
	size_t kept, held_bytes;
};
struct objects_counts objects_counts(const struct objects *o);

#endif
