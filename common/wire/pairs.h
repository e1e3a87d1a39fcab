/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pair: a message of the bus, and the file of the descriptor lane that belongs to it. Both carry
 * the same id, and either may come first. The first half waits for the other one here, up to
 * PAIRS_WAIT_NS.
 *
 * The caller adds halves and takes pairs in turn, so that a full table never refuses a half.
 */
#ifndef COMMON_WIRE_PAIRS_H
#define COMMON_WIRE_PAIRS_H

#include <stdbool.h>
#include <stdint.h>

#define PAIRS_MAX 64
#define PAIRS_WAIT_NS 1000000000ull

struct pair {
	uint64_t id;
	uint64_t since_ns; /* CLOCK_MONOTONIC, when the first half came */
	bool has_message, has_file;
	int fd; /* owned; -1: none */
};

struct pairs {
	struct pair pair[PAIRS_MAX]; /* the oldest first */
	unsigned count;
};

/* A zeroed struct pairs is empty. */
void pairs_done(struct pairs *p);
/* The next half may have no room. */
bool pairs_full(const struct pairs *p);
/* A message came. with_file: a file also comes. A second message of the same id is ignored. */
void pairs_message(struct pairs *p, uint64_t id, bool with_file, uint64_t now_ns);
/* A file came. Takes fd, which is -1 if the lane lost it. Closes a second file of the same id. */
void pairs_file(struct pairs *p, uint64_t id, int fd, uint64_t now_ns);
/* Takes the oldest pair that is complete, or that has waited long enough for its other half. From a
 * full table, takes the oldest in any case. ret->fd is then the caller's; it is -1 unless both
 * halves came. False: none. */
bool pairs_take(struct pairs *p, uint64_t now_ns, struct pair *ret);
/* Until pairs_take gives up the oldest, for poll; -1: the table is empty. */
int pairs_wait_ms(const struct pairs *p, uint64_t now_ns);

#endif
