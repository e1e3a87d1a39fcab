/* SPDX-License-Identifier: Apache-2.0 */
/* A tally counts the samples in folded stacks (prof-export(1)). Pure. */
#ifndef PROFPIPE_DOCTOR_TALLY_H
#define PROFPIPE_DOCTOR_TALLY_H

#include <stddef.h>
#include <stdint.h>

struct tally {
	uint64_t samples;
	uint64_t complete;     /* with stacks that reach their root */
	uint64_t kernel;       /* have kernel frames */
	uint64_t kernel_named; /* of these, with names */
	uint64_t user_named;   /* have a user frame with a name */
};
/* Adds n bytes of lines, and skips invalid ones. Linear. */
void tally_folded(struct tally *t, const char *text, size_t n);

#endif
