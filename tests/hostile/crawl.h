/* SPDX-License-Identifier: Apache-2.0 */
/* A crawl through the memory of a process: asks for the places to which all words of the answers
 * point, and for their pages. It counts the bytes that it got, and looks for a text in them. */
#ifndef TESTS_HOSTILE_CRAWL_H
#define TESTS_HOSTILE_CRAWL_H

#include "common/base/bytes/span.h"
#include "common/wire/msg.h"

#define CRAWL_QUEUE (1u << 21)
#define CRAWL_SEEN (1u << 22)
#define CRAWL_AT_ONCE 31

struct crawl {
	const char *secret;
	uint64_t bytes, found; /* different ones */
	uint64_t asked[CRAWL_AT_ONCE], lengths[CRAWL_AT_ONCE];
	uint64_t queue[CRAWL_QUEUE], longs[CRAWL_QUEUE];
	uint32_t head, tail, long_head, long_tail;
	uint64_t known[CRAWL_QUEUE * 2], seen[CRAWL_SEEN]; /* hash sets: addresses, words given */
};

/* Adds an address and its page. */
void crawl_add(struct crawl *c, uint64_t address);
/* Takes some memory of the process. */
void crawl_take(struct crawl *c, uint64_t address, struct span bytes);
/* The same of an answer to what is asked. */
void crawl_answer(struct crawl *c, const struct msg_memory_answer *m);
/* Sets what to ask for next. Returns how many pieces that are. */
uint32_t crawl_next(struct crawl *c);
/* These n pieces were answered. */
void crawl_done(struct crawl *c, uint32_t n);
/* Asks for everything once more. */
void crawl_again(struct crawl *c);
/* How many pieces were not asked for yet. */
uint32_t crawl_left(const struct crawl *c);

#endif
