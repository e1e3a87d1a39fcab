/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users whose files made a worker wait in the kernel: a user can hold a lock of their own file for
 * ever. Their files are not read for a minute, and for twice as long after each further time, up to
 * 16 minutes. Otherwise each of their files would cost all others a worker and its time.
 */
#ifndef COMMON_BASE_TABLES_BLOCKERS_H
#define COMMON_BASE_TABLES_BLOCKERS_H

#include <stdbool.h>
#include <stdint.h>

#define BLOCKERS_MAX 64 /* users known at a time; the one whose rest ends first is replaced */
#define BLOCKERS_REST_NS 60000000000ull
#define BLOCKERS_LONGEST_NS (16 * BLOCKERS_REST_NS)

/* All zero at first. */
struct blockers {
	struct blocker {
		uint32_t user;
		uint64_t until_ns, rest_ns; /* rest_ns 0: unused */
	} at[BLOCKERS_MAX];
	unsigned len;
};

/* Returns the id under which a user is known: from 65,536 on the first of a block of 65,536, since
 * one user may have such a block. */
uint32_t blockers_user(uint32_t uid);
/* Records that a file of this user made a worker wait. now_ns: CLOCK_MONOTONIC. */
void blockers_note(struct blockers *b, uint32_t uid, uint64_t now_ns);
/* Whether the files of this user are not read now. */
bool blockers_has(const struct blockers *b, uint32_t uid, uint64_t now_ns);

#endif
