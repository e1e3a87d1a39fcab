/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pair: a message of the bus, and the file of the descriptor lane that belongs to it. Both have
 * the same id, and either may come first. The half that comes first waits here for the other one,
 * up to PAIRS_WAIT_NS.
 *
 * The caller must alternate between adding halves and taking pairs, so that a full table never
 * refuses a half.
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
/* There may be no room for the next half. */
bool pairs_full(const struct pairs *p);
/* A message came. with_file: a file will also come. A second message with the same id is
 * ignored. */
void pairs_message(struct pairs *p, uint64_t id, bool with_file, uint64_t now_ns);
/* A file came. Takes fd; -1: the lane lost it. A second file with the same id is closed. */
void pairs_file(struct pairs *p, uint64_t id, int fd, uint64_t now_ns);
/* Takes the oldest pair that is complete or has waited long enough for its other half. If the table
 * is full, takes the oldest pair in any case. The caller then owns ret->fd, which is -1 unless both
 * halves came. Returns false if there is none. */
bool pairs_take(struct pairs *p, uint64_t now_ns, struct pair *ret);
/* The time, for poll, until pairs_take gives up waiting for the oldest pair; -1: the table is
 * empty. */
int pairs_wait_ms(const struct pairs *p, uint64_t now_ns);

#endif
