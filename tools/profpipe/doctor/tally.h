/* SPDX-License-Identifier: Apache-2.0 */
/* A tally: counts of the samples in folded stacks (prof-export(1)). Pure. */
#ifndef PROFPIPE_DOCTOR_TALLY_H
#define PROFPIPE_DOCTOR_TALLY_H

#include <stddef.h>
#include <stdint.h>

struct tally {
	uint64_t samples;
	uint64_t complete;     /* samples with stacks that reach their root */
	uint64_t kernel;       /* samples with kernel frames */
	uint64_t kernel_named; /* of these, samples with names of kernel functions */
	uint64_t user_named;   /* samples with a user frame that has a name */
};
/* Counts n bytes of lines, and skips invalid lines. Takes linear time. */
void tally_folded(struct tally *t, const char *text, size_t n);

#endif
