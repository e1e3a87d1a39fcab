/* SPDX-License-Identifier: Apache-2.0 */
/* A crawl through the memory of a process: requests the places to which all words of the answers
 * point, and their pages. It counts the bytes that it got, and searches them for a text. */
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
/* Adds some memory of the process. */
void crawl_take(struct crawl *c, uint64_t address, struct span bytes);
/* Adds the answer to a request. */
void crawl_answer(struct crawl *c, const struct msg_memory_answer *m);
/* Sets the next request. Returns its number of pieces. */
uint32_t crawl_next(struct crawl *c);
/* These n pieces were answered. */
void crawl_done(struct crawl *c, uint32_t n);
/* Requests everything again. */
void crawl_again(struct crawl *c);
/* The number of pieces that were not requested yet. */
uint32_t crawl_left(const struct crawl *c);

#endif
