/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Thinning: which samples are dropped for the cpu limit. Each owner may keep the same number of
 * samples. So an owner with fewer samples loses none. The others lose theirs by chance, since
 * samples of cpus may alternate.
 *
 * Time is divided into the steps of cpulimit.h. How many samples an owner has is a mean over the
 * last steps, of which the latest counts for a quarter.
 */
#ifndef PROF_BPF_LIMIT_THINNING_H
#define PROF_BPF_LIMIT_THINNING_H

#include <stdbool.h>
#include <stdint.h>

#define THINNING_OWNERS 255 /* known at a time; further ones share a place */
#define THINNING_UNIT 256   /* of a mean: one sample in a step */

struct thinning {
	struct thinning_owner {
		uint64_t key;	/* uid and container */
		uint32_t count; /* samples of this step so far */
		uint32_t mean;	/* of former steps, in THINNING_UNIT */
	} owners[THINNING_OWNERS + 1];
	uint16_t places[1024]; /* by hash: 1 + the owner's; 0: free */
	uint32_t len;	       /* of owners; the place behind them is that of all others */
	uint32_t random;
	bool active;	/* some samples are to be dropped */
	uint32_t share; /* samples that each owner keeps of a step, in THINNING_UNIT */
};

/* A sample of this owner came. Whether to drop it. */
bool thinning_drops(struct thinning *d, uint32_t uid, uint32_t container);
/* A step is over. In the next one, drop `drop` of CPULIMIT_ALL samples, but keep `least`. */
void thinning_step(struct thinning *d, unsigned drop, uint32_t least);

#endif
