/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages between a process that names generated code and its workers (codeworker.h), which
 * read perf maps and jitdumps. Each is one record of a SEQPACKET socket, in the machine's own
 * layout, since both ends are the same program. Answers are checked like all untrusted bytes, since
 * the worker parses hostile files.
 */
#ifndef COMMON_NAMES_JIT_CODEWIRE_H
#define COMMON_NAMES_JIT_CODEWIRE_H

#include "common/names/jit/codefile.h"

#define CODEWIRE_FILES 128 /* open at a time */
#define CODEWIRE_BATCH 32  /* addresses of one lookup */

enum codewire_kind {
	CODEWIRE_OPEN = 1,  /* with the descriptor; value: bytes of memory; jit: the kind of file */
	CODEWIRE_READ = 2,  /* value: about how many bytes */
	CODEWIRE_FIND = 3,  /* the addresses that follow, at time_ns */
	CODEWIRE_FLUSH = 4, /* the file has ended */
	CODEWIRE_CLOSE = 5, /* has no answer */
};

enum codewire_flag {
	CODEWIRE_BEHIND = 1, /* these are the flags of struct codefile_progress */
	CODEWIRE_ANEW = 2,
	CODEWIRE_FULL = 4,
	CODEWIRE_MALFORMED = 8,
	CODEWIRE_FLAGS = 15,
};

/* A request; of `addresses`, the first `count` are sent. */
struct codewire_ask {
	uint32_t kind;
	uint32_t file; /* below CODEWIRE_FILES, chosen by the requester */
	uint64_t value;
	uint32_t jit, count;
	uint64_t time_ns;
	uint64_t addresses[CODEWIRE_BATCH];
};

/* The head of an answer. It is followed by `count` results, the calls of those that were found, and
 * their text. verdict: the result of the function of codefile.h. bytes: memory that the file takes
 * now. */
struct codewire_head {
	int32_t verdict;
	uint32_t count;
	uint64_t bytes, read;
	uint32_t flags, text_len;
};

struct codewire_answer {
	struct codewire_head head;
	struct codefile_answer results[CODEWIRE_BATCH];
};

#define CODEWIRE_MAX (128u << 10)

/* Returns the size of a request in bytes. */
size_t codewire_size(const struct codewire_ask *a);
/* Whether the received bytes, of this length, are a request that a worker can serve. */
bool codewire_is_ask(const struct codewire_ask *a, size_t size);
/* Writes an answer and returns its size in bytes. names holds the calls of the results that were
 * found, in that order. into: CODEWIRE_MAX bytes. */
size_t codewire_put(const struct codewire_answer *a, const struct names *names, uint8_t *into);
/* Reads the answer to this request from untrusted bytes. *ret_names owns its text. Returns false if
 * this is not an answer to the request; the outputs are then invalid. */
bool codewire_take(struct span bytes, const struct codewire_ask *to, struct codewire_answer *ret,
		   struct names *ret_names);

#endif
