/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of the samples in folded stacks (prof-export(1)). Pure. */
#ifndef PROFPIPE_DOCTOR_FOLDED_COUNTS_H
#define PROFPIPE_DOCTOR_FOLDED_COUNTS_H

#include <stddef.h>
#include <stdint.h>

struct folded_counts {
	uint64_t samples;
	uint64_t complete;     /* samples with stacks that reach their root */
	uint64_t kernel;       /* samples with kernel frames */
	uint64_t kernel_named; /* of these, samples with names of kernel functions */
	uint64_t user_named;   /* samples with a user frame that has a name */
};
/* Counts n bytes of lines, and skips invalid lines. Takes linear time. */
void folded_counts_add(struct folded_counts *t, const char *text, size_t n);

#endif
