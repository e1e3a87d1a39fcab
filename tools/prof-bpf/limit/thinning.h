/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thinning: which samples are dropped for the cpu limit. Each owner may keep samples that cost the
 * same, so an owner with fewer or cheaper samples loses none. The samples of others are dropped at
 * random, since samples of cpus may alternate.
 *
 * A sample costs one unit, and one more for each THINNING_BYTES of the stream and of memory that it
 * needs: new frames and functions are what costs the tools most.
 *
 * Time is divided into the steps of cpulimit.h. The cost of an owner's samples is a mean over the
 * last steps, in which the latest counts for a quarter.
 */
#ifndef PROF_BPF_LIMIT_THINNING_H
#define PROF_BPF_LIMIT_THINNING_H

#include <stdbool.h>
#include <stdint.h>

#define THINNING_OWNERS 255 /* owners known at a time; further ones share an entry */
#define THINNING_UNIT 256   /* unit of a mean: one sample in a step */
#define THINNING_BYTES 2048 /* taking and naming this much costs about as much as a sample */

struct owners;

struct thinning {
	struct thinning_owner {
		uint64_t key;	 /* uid and container */
		uint32_t count;	 /* samples of this step so far, */
		uint32_t kept;	 /* and those of them that were kept */
		uint64_t caused; /* struct owner: caused, at the end of the last step */
		/* In THINNING_UNIT: the mean cost of a sample's bytes, and that of all samples of a
		 * step. */
		uint64_t extra, mean;
	} owners[THINNING_OWNERS + 1];
	uint16_t places[1024]; /* a hash table: 1 + the owner's index; 0: free */
	uint32_t len;	       /* number of owners; the entry after them is that of all others */
	uint32_t random;
	bool active;	/* some samples must be dropped */
	uint64_t share; /* cost of the samples that each owner keeps in a step, in THINNING_UNIT */
};

/* Counts a sample of this owner. Returns whether to drop it. */
bool thinning_drops(struct thinning *d, uint32_t uid, uint32_t container);
/* Ends a step. In the next one, `drop` of CPULIMIT_ALL parts of all cost are dropped, but samples
 * that cost as much as `least` cheap ones are kept. owners: what each has caused so far. */
void thinning_step(struct thinning *d, unsigned drop, uint32_t least, const struct owners *owners);

#endif
