/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of code in no file: each process's perf map and jitdump, asked for when the first frame of
 * it is in such code, kept open and read on as they grow. Both are what the process wrote, at its
 * own time: what is not known now may be known a moment later, and whoever asks holds such frames
 * back (named.c).
 *
 * A process that has neither is asked for again, less and less often. An open file is kept to its
 * process's end, so that its last lines are read though the process is gone. Reading goes by
 * pieces, and at a rate of so many bytes a second and process, whatever is written.
 */
#ifndef PROFPIPE_JIT_H
#define PROFPIPE_JIT_H

#include "common/wire/msg.h"
#include "common/base/idmap.h"
#include "common/names/names.h"

#define JIT_MEMORY (96u << 20)	       /* of all maps and dumps; of one two thirds */
#define JIT_PROCESSES 4096	       /* looked after at once */
#define JIT_OPEN 96		       /* files open at once: the least recently used is closed */
#define JIT_WAIT_NS 2000000000ull      /* for an answer, and for all at a process's end */
#define JIT_REREAD_NS 250000000ull     /* between two looks at a file that lacks a name */
#define JIT_RETRY_NS 1000000000ull     /* before a file that was not there is asked for again, */
#define JIT_RETRY_MAX_NS 8000000000ull /* and doubled up to this */
#define JIT_PIECE (1u << 20)	       /* bytes read at once */
#define JIT_BURST \
	(128ull << 20) /* bytes read of one process's files, and so many a second more: \
			*/
#define JIT_RATE (4ull << 20)
#define JIT_REQUEST (1ull << 63) /* in the ids of all requests, and in no id of filestore.h's */

/* What to ask for: the file of this kind of this process of the stream. */
struct jit_request {
	uint64_t id, process;
	uint32_t pid;
	enum jit_kind kind;
};

struct jit_process;
struct jit {
	/* Sends a request, which jit_answer will answer, during the call or later. 0; -errno: not
	 * now. */
	int (*ask)(void *ctx, const struct jit_request *rq);
	void *ctx;
	size_t file_max, total_max, bytes; /* of memory */
	struct idmap ids;
	struct jit_process **processes; /* by what ids says */
	uint32_t len, cap;
	uint32_t *free_slots, free_len;
	unsigned open;
	uint64_t next_request, tick_ns;
	uint64_t version;		       /* rises whenever more is known of any */
	uint64_t opened, truncated, malformed; /* counts, since the start */
};

enum jit_verdict {
	JIT_UNKNOWN = 1, /* nothing names it, now */
	JIT_LATER = 2,	 /* an answer is awaited, or not all was read */
};

/* total_max: bytes of memory, of which one file may take two thirds. -errno. */
int jit_init(struct jit *j, size_t total_max, int (*ask)(void *, const struct jit_request *),
	     void *ctx);
void jit_done(struct jit *j);
/* Asks ahead for the files of a process whose code will be looked up. */
void jit_want(struct jit *j, uint64_t process, uint32_t pid, uint64_t now_ns);
/* The call at an address of a process, as of time_ns. 0, enum jit_verdict, -ENOMEM. */
int jit_lookup(struct jit *j, uint64_t process, uint32_t pid, uint64_t address, uint64_t time_ns,
	       uint64_t now_ns, struct names *ret);
/* It was asked for code of this process, or told that it would be. */
bool jit_knows(const struct jit *j, uint64_t process);
/* Rises whenever more is known of this process. */
uint64_t jit_version(const struct jit *j, uint64_t process);
/* The last chance of a process some of whose code had no name, once: reads what is there now, and
 * asks once more for files that were not there. 0 when there is no more to be had, JIT_LATER,
 * -ENOMEM. */
int jit_settle(struct jit *j, uint64_t process, uint64_t now_ns);
/* An answer: fd is taken; -1: there is none. True where the id is one of ours. */
bool jit_answer(struct jit *j, uint64_t id, int fd, uint64_t now_ns);
/* The process is gone. */
void jit_drop(struct jit *j, uint64_t process);
void jit_drop_all(struct jit *j);
/* Reads on where names are lacking, asks again, gives up what is overdue. */
void jit_tick(struct jit *j, uint64_t now_ns);
/* When jit_tick has something to do, 0: nothing. */
uint64_t jit_deadline(const struct jit *j, uint64_t now_ns);

#endif
