/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thinning: which samples are dropped for the cpu limit. Each owner may keep the same number of
 * samples, so an owner with fewer samples loses none. The samples of others are dropped at random,
 * since samples of cpus may alternate.
 *
 * Time is divided into the steps of cpulimit.h. The number of an owner's samples is a mean over the
 * last steps, in which the latest counts for a quarter.
 */
#ifndef PROF_BPF_LIMIT_THINNING_H
#define PROF_BPF_LIMIT_THINNING_H

#include <stdbool.h>
#include <stdint.h>

#define THINNING_OWNERS 255 /* owners known at a time; further ones share an entry */
#define THINNING_UNIT 256   /* unit of a mean: one sample in a step */

struct thinning {
	struct thinning_owner {
		uint64_t key;	/* uid and container */
		uint32_t count; /* samples of this step so far */
		uint32_t mean;	/* mean of earlier steps, in THINNING_UNIT */
	} owners[THINNING_OWNERS + 1];
	uint16_t places[1024]; /* a hash table: 1 + the owner's index; 0: free */
	uint32_t len;	       /* number of owners; the entry after them is that of all others */
	uint32_t random;
	bool active;	/* some samples must be dropped */
	uint32_t share; /* how many samples of a step each owner keeps, in THINNING_UNIT */
};

/* Counts a sample of this owner. Returns whether to drop it. */
bool thinning_drops(struct thinning *d, uint32_t uid, uint32_t container);
/* Ends a step. In the next one, `drop` of CPULIMIT_ALL samples are dropped, but `least` are
 * kept. */
void thinning_step(struct thinning *d, unsigned drop, uint32_t least);

#endif
