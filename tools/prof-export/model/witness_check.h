/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the samples that came with those that prof-bpf says that it sent (witness.h). */
#ifndef PROF_EXPORT_MODEL_WITNESS_CHECK_H
#define PROF_EXPORT_MODEL_WITNESS_CHECK_H

#include "common/status/witness.h"

struct witness_check {
	struct witness_word word; /* the latest; magic 0: none */
	struct witness_counts came;
	uint64_t unkept;       /* of `came`: counted as lost after that */
	uint64_t taken_before; /* by former prof-bpfs */
	unsigned lives;	       /* of prof-bpf */
	uint64_t unkeyed;      /* samples that came before any word */
	bool broken;	       /* the stream was interrupted */
	bool replayed;	       /* a former prof-export had a part of it, and perhaps words */
	bool joins;	       /* the stream began before this prof-export's part of it */
	bool former;	       /* a sample is older than the prof-bpf of the word */
	bool over;	       /* the stream says that prof-bpf has ended */
	bool judged;
	struct witness_verdict verdict;
};

/* Takes a word. False: it is none. */
bool witness_check_word(struct witness_check *w, const struct witness_word *word);
void witness_check_sample(struct witness_check *w, const struct witness_sample *s);
/* Compares, at the end of the stream. Does nothing if there were several prof-bpfs: then only sums
 * are known. The same without a final word, unless the stream is over. lost: what the output
 * counts. */
void witness_check_judge(struct witness_check *w, const uint64_t lost[static STATUS_REASONS]);
/* Samples that all prof-bpfs took, as far as they said. */
uint64_t witness_check_taken(const struct witness_check *w);

#endif
