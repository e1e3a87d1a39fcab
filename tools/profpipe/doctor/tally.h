/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a profile, counted from its folded stacks (prof-export(1)). Pure. */
#ifndef PROFPIPE_TALLY_H
#define PROFPIPE_TALLY_H

#include <stddef.h>
#include <stdint.h>

struct tally {
	uint64_t samples;
	uint64_t complete;     /* their stacks reach their root */
	uint64_t kernel;       /* have kernel frames */
	uint64_t kernel_named; /* of these, with names */
	uint64_t user_named;   /* have a user frame with a name */
};
/* Adds n bytes of lines; one that is none is passed over. Linear. */
void tally_folded(struct tally *t, const char *text, size_t n);

#endif
