/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of generated code (JIT), from each process's perf map and jitdump.
 *
 *  - Both files of a process are requested at the first frame in its generated code. They stay
 *    open, and new bytes are read as they grow.
 *  - A runtime may write a name at any time, even after the code ran. So callers hold back frames
 *    that have no name yet.
 *  - A missing file is requested again, less and less often.
 *  - An open file stays open until its process ends, so that its last lines can still be read
 *    then.
 *  - Files are read in pieces, at a bounded rate for each process.
 *  - Owners share processes, open files, memory and requests. When one of these runs short, the
 *    owner that holds the most loses some.
 *  - The files are parsed in worker processes, if there is a keeper (codereader.h). A file that
 *    a worker dies on has no names.
 */
#ifndef COMMON_NAMES_JIT_JIT_H
#define COMMON_NAMES_JIT_JIT_H

#include "common/base/shares/holdings.h"
#include "common/base/tables/idmap.h"
#include "common/names/jit/codecache.h"
#include "common/names/jit/codereader.h"
#include "common/names/names.h"
#include "common/wire/msg.h"

/* Limit of bytes for all maps and dumps together; one file may take two thirds. */
#define JIT_MEMORY (96u << 20)
#define JIT_PROCESSES 4096     /* known at once */
#define JIT_OPEN 96	       /* files open at once */
#define JIT_IN_FLIGHT 12       /* requests at a time */
#define JIT_TICK_NS 5000000ull /* reading time of one call of jit_tick */
/* Timeout of an answer, and of all answers when a process ends. */
#define JIT_WAIT_NS 2000000000ull
#define JIT_REREAD_NS 250000000ull     /* wait between two reads of a file that lacks a name */
#define JIT_RETRY_NS 1000000000ull     /* wait before a missing file is requested again */
#define JIT_RETRY_MAX_NS 8000000000ull /* the wait is doubled each time, up to this */
#define JIT_PIECE (1u << 20)	       /* bytes of one read */
#define JIT_EXPECTED CODEREADER_BATCH  /* addresses that are looked up together */
/* How much of one process's files is read: bytes at first, and more bytes each second. */
#define JIT_BURST (128ull << 20)
#define JIT_RATE (4ull << 20)
/* Set in the ids of all requests from here, and not in those from filestore.h. */
#define JIT_REQUEST (1ull << 63)

/* A request for a file of a process. `process` is its id in the stream. */
struct jit_request {
	uint64_t id, process;
	uint32_t pid;
	enum msg_jit_kind kind;
};

struct jit_process;
struct jit {
	/* Sends a request. The caller passes the answer to jit_answer, during this call or later.
	 * Returns 0; -EAGAIN: it was not sent, and jit_tick repeats it; another -errno: the file
	 * counts as missing. */
	int (*ask)(void *ctx, const struct jit_request *rq);
	void *ctx;
	/* may_read tells whether the files of a process may be read now; if not, they are read
	 * later. took reports that reading began at begun_ns and has ended. Both may be NULL. */
	bool (*may_read)(void *ctx, uint64_t process, uint64_t now_ns);
	void (*took)(void *ctx, uint64_t process, uint64_t begun_ns);
	/* Returns the owner of a process. Owners share the resources. NULL: all processes have one
	 * owner. */
	uint64_t (*owner_of)(void *ctx, uint64_t process);
	void *turns_ctx;
	/* Reports that the names of this process's file are lost, because its reader crashed on it.
	 * May be NULL. */
	void (*say_lost)(void *ctx, uint64_t process, uint32_t pid);
	void *say_lost_ctx;
	size_t file_max, total_max; /* bytes of memory */
	struct idmap ids;	    /* id of a process to its slot in `processes` */
	struct jit_process **processes;
	uint32_t len, cap;
	uint32_t *free_slots, free_len;
	struct holdings processes_of, open_of, bytes_of, asked_of; /* of each owner */
	uint32_t next; /* the slot at which the next jit_tick continues */
	uint64_t next_request, tick_ns;
	uint64_t version;		     /* rises with each new name of any process */
	uint64_t truncated, malformed, lost; /* numbers of files, since the start */
	struct codecache cache;		     /* the latest answers */
	uint64_t generation;		     /* the highest generation of any process */
	uint64_t expects;		     /* the process that `expected` belongs to */
	uint64_t expected[JIT_EXPECTED];
	unsigned expected_len;
};

enum jit_verdict {
	JIT_UNKNOWN = 1, /* no name so far */
	JIT_LATER = 2,	 /* an answer is still pending, or the file was not read to its end */
};

/* Initializes *j. total_max: bytes of memory; one file may take two thirds. Returns 0 or -errno. */
int jit_init(struct jit *j, size_t total_max, int (*ask)(void *, const struct jit_request *),
	     void *ctx);
void jit_done(struct jit *j);
/* Requests the files of a process before the first lookup. */
void jit_want(struct jit *j, uint64_t process, uint32_t pid, uint64_t now_ns);
/* Announces further lookups for the same time as the next one, so that one request can answer all
 * of them. */
void jit_expect(struct jit *j, uint64_t process, const uint64_t *addresses, unsigned count);
/* Looks up the call at an address of a process, as of time_ns. Returns 0, enum jit_verdict or
 * -ENOMEM. */
int jit_lookup(struct jit *j, uint64_t process, uint32_t pid, uint64_t address, uint64_t time_ns,
	       uint64_t now_ns, struct names *ret);
/* Whether code of this process was looked up or announced (jit_want). */
bool jit_knows(const struct jit *j, uint64_t process);
/* Returns the bytes of memory that all files take. */
size_t jit_bytes(const struct jit *j);
/* Returns a number that rises with each new name of this process. */
uint64_t jit_version(const struct jit *j, uint64_t process);
/* Tries a last time to find names of a process that ends: reads its files to their end, and
 * requests missing ones once more. Returns 0: done, no further names can come; JIT_LATER; or
 * -ENOMEM. */
int jit_settle(struct jit *j, uint64_t process, uint64_t now_ns);
/* Takes an answer to a request. fd is -1 if the file is missing. Returns true if the id is one of
 * ours; fd is then owned by *j. Otherwise returns false, and fd stays the caller's. */
bool jit_answer(struct jit *j, uint64_t id, int fd, uint64_t now_ns);
/* Forgets a process that ended. */
void jit_drop(struct jit *j, uint64_t process);
void jit_drop_all(struct jit *j);
/* Reads files that lack names, repeats requests, and gives up overdue ones. */
void jit_tick(struct jit *j, uint64_t now_ns);
/* Returns when jit_tick has something to do next; 0: nothing. */
uint64_t jit_deadline(const struct jit *j, uint64_t now_ns);

#endif
